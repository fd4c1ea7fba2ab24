// SPDX-License-Identifier: Apache-2.0
// The environment of a command that runs across nodes.
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::tools {

struct JobEnvironment {
  std::string library;   // absolute path of libamasia.so
  std::string launcher;  // value of AMASIA_LAUNCHER
};

// `environment` as the user has it, with: the library preloaded before what the user preloads,
// symbols bound at start (lazy binding would write to pages beside the program's data), options as
// variables, and without the variables of a job launcher such as mpirun: only our own launcher is a
// member of that job. On emulated nodes threads of the OpenMP runtime sleep while they wait, unless
// the user says otherwise: spinning would use up the node's part of its core. Pure.
std::vector<std::string> job_environment(const char* const* environment,
                                         const base::Options& options, const JobEnvironment& job);

}  // namespace amasia::tools
