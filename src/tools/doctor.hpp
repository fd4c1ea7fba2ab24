// SPDX-License-Identifier: Apache-2.0
// `amasia doctor [program]`: what would keep a program from running across nodes here, and what to
// do about it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "tools/program.hpp"

namespace amasia::tools {

enum class Severity {
  kGood,
  kNote,     // works, but slower, or not in every case
  kProblem,  // prevents a run
};

struct Finding {
  Severity severity = Severity::kGood;
  std::string what;    // one line: the thing and its value
  std::string advice;  // what to do; empty for good ones
};

// Each looks at one thing; none changes anything.
std::vector<Finding> examine_host();
std::vector<Finding> examine_program(const std::string& name);

// Pure parts, for tests.
Finding judge_kernel(const std::string& release);
Finding judge_overcommit(int mode);
Finding judge_open_files(std::uint64_t hard);        // the hard limit; nodes raise the soft one
Finding judge_counters(const std::string& refusal);  // why there are none; empty: there are
Finding judge_openmp(const Program& program, const std::vector<LinkedLibrary>& libraries);

// Prints all; returns 1 if there is a problem, 2 for bad arguments, else 0.
int doctor_command(std::span<const char* const> arguments);

}  // namespace amasia::tools
