// SPDX-License-Identifier: Apache-2.0
#include "tools/leftovers.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <set>

namespace amasia::tools {
namespace {

constexpr Nanos kPatience = 3 * base::kSecond;

void pause_briefly() {
  const timespec pause{0, 2 * 1000 * 1000};
  ::nanosleep(&pause, nullptr);
}

constexpr pid_t kDismissed = 0;

// Runs in the keeper: learns the nodes until the launcher's last word, or its end.
void keep(int socket, const std::string& mark, const std::vector<std::string>& cpu_groups) {
  std::set<pid_t> nodes;
  while (true) {
    pid_t word = 0;
    const ssize_t got = ::recv(socket, &word, sizeof word, MSG_WAITALL);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof word) break;
    if (word == kDismissed) return;
    nodes.insert(word);
  }
  const Nanos deadline = os::monotonic_now() + kPatience;
  while (os::monotonic_now() < deadline) {
    bool found = false;
    for (const pid_t process : os::processes_with(mark)) {
      if (process == ::getpid()) continue;
      found = true;
      nodes.insert(process);
      ::kill(process, SIGKILL);
    }
    if (!found) break;
    pause_briefly();
  }
  for (const pid_t process : nodes) remove_segments_of(process);
  os::remove_cpu_groups(cpu_groups);
}

}  // namespace

void end_descendants(pid_t spared) {
  const Nanos deadline = os::monotonic_now() + kPatience;
  std::set<pid_t> ended;
  while (true) {
    while (true) {  // reap first, so that the dead are not counted
      siginfo_t info{};
      if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) break;
      if (info.si_pid == spared) break;
      ::waitpid(info.si_pid, nullptr, WNOHANG);
    }
    bool found = false;
    for (const pid_t process : os::descendants_of(::getpid())) {
      if (process == spared) continue;
      found = true;
      ended.insert(process);
      ::kill(process, SIGKILL);
    }
    if (!found || os::monotonic_now() > deadline) break;
    pause_briefly();
  }
  for (const pid_t process : ended) remove_segments_of(process);
}

void remove_segments_of(pid_t process) {
  const std::string name = fmt::format("/__KMP_REGISTERED_LIB_{}_{}", process, ::getuid());
  ::shm_unlink(name.c_str());
}

Result<Keeper> Keeper::start(const std::string& mark,
                             const std::vector<std::string>& cpu_groups) {
  auto pair = os::make_stream_pair();
  if (!pair.ok()) return pair.error();
  const pid_t child = ::fork();
  if (child < 0) return base::errno_error(errno, "cannot start the keeper process");
  if (child == 0) {
    // Of no terminal and no process group that signals are sent to; and no pipe of the user's is
    // held open by it.
    ::setsid();
    os::set_process_name("amasia-keeper");
    const int mine = pair.value().first.get();
    ::dup2(mine, 0);
    ::close_range(1, ~0U, 0);
    keep(0, mark, cpu_groups);
    ::_exit(0);
  }
  return Keeper(child, std::move(pair.value().second));
}

void Keeper::remember(pid_t process) {
  // A keeper that is gone cannot be told, and nothing else depends on it.
  static_cast<void>(::send(socket_.get(), &process, sizeof process, MSG_NOSIGNAL));
}

Keeper::~Keeper() {
  if (!socket_.valid()) return;
  remember(kDismissed);
  socket_.close();
  ::waitpid(process_, nullptr, 0);
}

}  // namespace amasia::tools
