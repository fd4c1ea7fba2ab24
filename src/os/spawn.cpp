// SPDX-License-Identifier: Apache-2.0
#include "os/spawn.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/cpu_quota.hpp"
#include "os/packet_socket.hpp"

namespace amasia::os {
namespace {

// What the child needs, made before the fork: afterwards it may only make system calls.
struct Prepared {
  explicit Prepared(const SpawnRequest& from) : request(from) {
    for (const std::string& argument : from.arguments) {
      arguments.push_back(const_cast<char*>(argument.c_str()));
    }
    arguments.push_back(nullptr);
    for (const std::string& entry : from.environment) {
      environment.push_back(const_cast<char*>(entry.c_str()));
    }
    environment.push_back(nullptr);
    shell_arguments = {const_cast<char*>("/bin/sh"), const_cast<char*>(from.executable.c_str())};
    for (std::size_t i = 1; i < arguments.size(); ++i) shell_arguments.push_back(arguments[i]);
    if (from.arguments.empty()) shell_arguments.push_back(nullptr);
    CPU_ZERO(&cores);
    for (const int core : from.cores) CPU_SET(core, &cores);
  }

  const SpawnRequest& request;
  std::vector<char*> arguments, environment, shell_arguments;
  cpu_set_t cores;
};

enum class Step : int {
  kParent, kLayout,
  kCores,
  kQuota,
  kLimits,
  kNamespace,
  kDirectory,
  kStandardFiles,
  kExecute
};

const char* step_name(Step step) {
  switch (step) {
    case Step::kParent:
      return "the parent ended";
    case Step::kLayout:
      return "cannot switch off the randomisation of its addresses (does a container forbid it?)";
    case Step::kCores:
      return "cannot bind it to its cores";
    case Step::kQuota:
      return "cannot hold it to its CPU quota";
    case Step::kLimits:
      return "cannot set its resource limits";
    case Step::kNamespace:
      return "cannot enter its network namespace";
    case Step::kDirectory:
      return "cannot enter its working directory";
    case Step::kStandardFiles:
      return "cannot set its standard files";
    case Step::kExecute:
      return "cannot execute it";
  }
  return "failed";
}

struct Failure {
  Step step;
  int error;
};

bool move_to(int from, int to) {
  if (from < 0) return true;
  if (from == to) {  // already in place, but it must survive the exec
    const int flags = ::fcntl(to, F_GETFD);
    return flags >= 0 && ::fcntl(to, F_SETFD, flags & ~FD_CLOEXEC) == 0;
  }
  return ::dup2(from, to) >= 0;
}

bool move_standard_files(const SpawnRequest& request) {
  // Two of them may be swapped: move all out of the way of 0, 1 and 2 first.
  int from[3] = {request.standard_input, request.standard_output, request.standard_error};
  for (int i = 0; i < 3; ++i) {
    if (from[i] >= 0 && from[i] < 3 && from[i] != i) {
      from[i] = ::fcntl(from[i], F_DUPFD_CLOEXEC, 3);
      if (from[i] < 0) return false;
    }
  }
  return move_to(from[0], 0) && move_to(from[1], 1) && move_to(from[2], 2);
}

bool apply_limits(const ResourceLimits& limits) {
  for (std::size_t resource = 0; resource < limits.size(); ++resource) {
    if (::setrlimit(static_cast<__rlimit_resource>(resource), &limits[resource]) != 0) return false;
  }
  return true;
}

void execute(const Prepared& prepared) {
  ::execve(prepared.request.executable.c_str(), prepared.arguments.data(),
           prepared.environment.data());
  if (errno != ENOEXEC) return;
  ::execve("/bin/sh", prepared.shell_arguments.data(), prepared.environment.data());
}

// Runs in the child. Returns the step that failed, with errno set.
Step become(const Prepared& prepared, pid_t parent) {
  const SpawnRequest& request = prepared.request;
  if (request.killed_with_parent) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    errno = ESRCH;
    if (::getppid() != parent) return Step::kParent;  // it ended before the line above
  }
  if (request.own_process_group) ::setpgid(0, 0);
  if (!request.randomised && ::personality(ADDR_NO_RANDOMIZE) == -1) return Step::kLayout;
  if (!request.cores.empty() && ::sched_setaffinity(0, sizeof prepared.cores, &prepared.cores) != 0)
    return Step::kCores;
  if (!request.cpu_group.empty() && (errno = enter_cpu_group(request.cpu_group.c_str())) != 0)
    return Step::kQuota;
  if (request.network_namespace >= 0 && ::setns(request.network_namespace, CLONE_NEWNET) != 0)
    return Step::kNamespace;
  if (!request.working_directory.empty() && ::chdir(request.working_directory.c_str()) != 0)
    return Step::kDirectory;
  if (!move_standard_files(request)) return Step::kStandardFiles;
  if (request.file_mode_mask) ::umask(*request.file_mode_mask);
  if (request.limits && !apply_limits(*request.limits)) return Step::kLimits;
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  execute(prepared);
  return Step::kExecute;
}

}  // namespace

Result<pid_t> spawn(const SpawnRequest& request) {
  const Prepared prepared(request);
  auto made = make_pipe();  // close-on-exec: end of file says that the exec worked
  if (!made.ok()) return made.error();
  Descriptor reading = std::move(made.value().first), writing = std::move(made.value().second);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) return base::errno_error(errno, "cannot start '" + request.executable + "'");
  if (child == 0) {
    const Step step = become(prepared, parent);
    const Failure failure{step, errno};
    [[maybe_unused]] const auto written = ::write(writing.get(), &failure, sizeof failure);
    ::_exit(127);
  }
  writing.close();
  Failure failure{};
  ssize_t got;
  do {
    got = ::read(reading.get(), &failure, sizeof failure);
  } while (got < 0 && errno == EINTR);
  if (got == 0) return child;
  ::waitpid(child, nullptr, 0);
  return base::errno_error(failure.error,
                           "cannot start '" + request.executable + "': " + step_name(failure.step));
}

Error replace_process(const SpawnRequest& request) {
  const Prepared prepared(request);
  execute(prepared);
  return base::errno_error(errno, "cannot start '" + request.executable + "'");
}

}  // namespace amasia::os
