// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor.hpp"

#include <gtest/gtest.h>

namespace amasia::tools {
namespace {

TEST(Doctor, KernelsFrom5Point19AreGood) {
  EXPECT_EQ(judge_kernel("5.18.0-1-amd64").severity, Severity::kProblem);
  EXPECT_EQ(judge_kernel("5.19.0").severity, Severity::kGood);
  EXPECT_EQ(judge_kernel("6.1.0-18-amd64").severity, Severity::kGood);
  EXPECT_EQ(judge_kernel("4.19").severity, Severity::kProblem);
}

TEST(Doctor, StrictOvercommitIsAProblemWithAdvice) {
  EXPECT_EQ(judge_overcommit(0).severity, Severity::kGood);
  EXPECT_EQ(judge_overcommit(1).severity, Severity::kGood);
  EXPECT_EQ(judge_overcommit(2).severity, Severity::kProblem);
  EXPECT_FALSE(judge_overcommit(2).advice.empty());
}

TEST(Doctor, OpenFilesAreThoseThatAJobNeeds) {
  EXPECT_EQ(judge_open_files(1088).severity, Severity::kGood);
  EXPECT_EQ(judge_open_files(1ULL << 20).what, "open files (ulimit -Hn): 1048576");
  const Finding finding = judge_open_files(256);
  EXPECT_EQ(finding.severity, Severity::kProblem);
  EXPECT_NE(finding.what.find("is 256; a job of 2 nodes needs 1088"), std::string::npos);
  EXPECT_FALSE(finding.advice.empty());
}

TEST(Doctor, MissingCountersAreANoteThatSaysWhatToDo) {
  EXPECT_EQ(judge_counters("").severity, Severity::kGood);
  const Finding finding = judge_counters("set kernel.perf_event_paranoid");
  EXPECT_EQ(finding.severity, Severity::kNote) << "nothing depends on them";
  EXPECT_EQ(finding.advice, "set kernel.perf_event_paranoid");
}

TEST(Doctor, LibompComesBeforeLibgomp) {
  const Program program{.path = "./x", .loader = {}};
  const LinkedLibrary gomp{"libgomp.so.1", "/lib/libgomp.so.1"}, omp{"libomp.so.5", "/l/libomp.so"};
  EXPECT_EQ(judge_openmp(program, {gomp}).what, "OpenMP runtime: libgomp (/lib/libgomp.so.1)");
  EXPECT_EQ(judge_openmp(program, {gomp, omp}).what, "OpenMP runtime: libomp (/l/libomp.so)");
  EXPECT_EQ(judge_openmp(program, {omp, gomp}).what, "OpenMP runtime: libomp (/l/libomp.so)");
  EXPECT_EQ(judge_openmp(program, {}).severity, Severity::kNote);
}

}  // namespace
}  // namespace amasia::tools
