// SPDX-License-Identifier: Apache-2.0
// Starting a process with everything about it decided: what posix_spawn cannot say.
#pragma once

#include <sched.h>
#include <sys/resource.h>
#include <sys/types.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/base.hpp"

namespace amasia::os {

inline constexpr std::size_t kResourceLimits = RLIM_NLIMITS;
using ResourceLimits = std::array<rlimit, kResourceLimits>;

struct SpawnRequest {
  std::string executable;  // a path; looked up by the caller
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_directory;  // "": the caller's
  // -1: the caller's.
  int standard_input = -1, standard_output = -1, standard_error = -1;
  int network_namespace = -1;
  std::vector<int> cores;  // empty: the caller's
  std::string cpu_group;   // the entry of one of CpuGroups; "": the caller's
  std::optional<ResourceLimits> limits;
  std::optional<mode_t> file_mode_mask;
  bool own_process_group = false;
  bool randomised = true;          // address space layout; off is inherited by what it starts
  bool killed_with_parent = true;  // SIGKILL when the calling thread ends, however it ends
};

// Returns the process id once the new image runs. The error says which step failed, with errno.
// A file that the kernel does not know is handed to /bin/sh, as execvp does. The child's signal
// mask is empty. Blocks for milliseconds; safe while other threads run.
Result<pid_t> spawn(const SpawnRequest& request);

// The same in this process: returns only on failure. Uses executable, arguments, environment.
Error replace_process(const SpawnRequest& request);

}  // namespace amasia::os
