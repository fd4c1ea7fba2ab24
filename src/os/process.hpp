// SPDX-License-Identifier: Apache-2.0
// Looking at other processes, and ending them.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "os/descriptor.hpp"
#include "os/spawn.hpp"

namespace amasia::os {

// What a process was started with, and its limits as they are now.
struct ProcessImage {
  std::string executable;
  std::vector<std::string> arguments;
  std::vector<std::string> environment;
  std::string working_directory;
  ResourceLimits limits{};
  mode_t file_mode_mask = 022;
};

// Reads /proc and prlimit(2). Needs the same user; fails for a process that has changed it.
Result<ProcessImage> image_of(pid_t process);

// Readable once the process has ended. Refers to the process itself, not to its number.
Result<Descriptor> watch_process(pid_t process);
bool has_ended(int watch) noexcept;
// Whether a signal such as SIGSTOP has stopped all of the process.
bool is_stopped(pid_t process) noexcept;
// Whether a signal or a debugger has.
bool is_stopped_or_traced(pid_t process) noexcept;
// Whether a thread of this name waits in this function of the kernel, as far as the system shows
// that to other processes (/proc/<pid>/task/<id>/wchan).
bool waits_in_kernel(pid_t process, std::string_view thread, std::string_view where);
// Whether there is a controlling terminal.
bool has_terminal() noexcept;

// All processes below `root`, parents before children. A snapshot: more may be born meanwhile.
std::vector<pid_t> descendants_of(pid_t root);
// All processes of this user whose environment, as it was at their start, has this entry.
std::vector<pid_t> processes_with(std::string_view environment_entry);

// From now on orphans below this process become its children.
Status adopt_orphans();
// `signal` to this process when the thread that started it ends.
void request_signal_at_parents_end(int signal) noexcept;
// The name in ps and /proc/<pid>/comm; cut at 15 characters.
void set_process_name(const char* name) noexcept;
// As many open files as the hard limit allows, for this process and those that it starts.
void raise_file_limit() noexcept;
// Cores that this process may run on.
std::vector<int> allowed_cores();

// What this process executes or starts from now on has its addresses randomised, as the system has
// it; the process itself stays as it is.
void randomise_addresses_of_children() noexcept;

// "SIGKILL", or "signal 64" where there is no name.
std::string signal_name(int signal);

}  // namespace amasia::os
