// SPDX-License-Identifier: Apache-2.0
// The environment of a command.
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::tools {

struct JobEnvironment {
  std::string library;   // absolute path of libamasia.so
  std::string launcher;  // value of AMASIA_LAUNCHER
  bool joined = false;   // our launcher has joined the PMIx job that it was started in
};

// `environment` as the user has it, with: the library preloaded before what the user preloads,
// symbols bound at start (lazy binding would write to pages beside the program's data), options as
// variables. Where our own launcher is a member of the job of another one such as mpirun, the
// variables of that are left out; else the program may be (one rank of MPI, on several nodes). On
// emulated nodes threads of the OpenMP runtime sleep while they wait, unless the user says
// otherwise: spinning would use up the node's part of its core. Pure.
std::vector<std::string> job_environment(const char* const* environment,
                                         const base::Options& options, const JobEnvironment& job);

// The same for a command that runs on one node, without our library: its OpenMP runtime is not told
// a schedule that it does not know, and no more threads than --threads has. Pure.
std::vector<std::string> plain_environment(const char* const* environment,
                                           const base::Options& options);

}  // namespace amasia::tools
