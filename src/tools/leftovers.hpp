// SPDX-License-Identifier: Apache-2.0
// That nothing is left behind: neither when the command ends, nor when the launcher is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tools {

// Sends SIGKILL to every process below this one, `spared` and what is below that excepted, until
// there is none, reaps them, and removes the shared memory that they leave. adopt_orphans() must
// have been called. Gives up after some seconds on processes that the kernel does not let go (a
// dead file server).
void end_descendants(pid_t spared);

// Removes the shared memory that a process which was killed, or ended by _exit, has left: libomp
// makes a segment with the process id in its name, and removes it in a destructor.
void remove_segments_of(pid_t process);

// A process that outlives a killed launcher just long enough to end the processes of its job. It
// finds them by `mark`, an entry of their environment, since their parents are gone by then.
class Keeper {
 public:
  // Call while this process has one thread. The keeper holds no descriptor but its socket and
  // belongs to no terminal. `cpu_groups`: what it is to remove at the end (os::CpuGroups).
  static Result<Keeper> start(const std::string& mark,
                              const std::vector<std::string>& cpu_groups = {});
  Keeper(Keeper&&) = default;
  Keeper& operator=(Keeper&&) = delete;
  // A process whose shared memory it is to remove if this process is killed: one that dies with
  // this process can no longer be found by its mark.
  void remember(pid_t process);
  // Dismisses it, in order.
  ~Keeper();
  pid_t process() const { return process_; }

 private:
  Keeper(pid_t process, os::Descriptor socket) : process_(process), socket_(std::move(socket)) {}
  pid_t process_;
  os::Descriptor socket_;
};

}  // namespace amasia::tools
