// SPDX-License-Identifier: Apache-2.0
#include "tools/doctor.hpp"

#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "fabric/fabric.hpp"
#include "launch/launch.hpp"
#include "os/os.hpp"

namespace amasia::tools {
namespace {

Finding good(std::string what) { return {Severity::kGood, std::move(what), {}}; }
Finding note(std::string what, std::string advice) {
  return {Severity::kNote, std::move(what), std::move(advice)};
}
Finding problem(std::string what, std::string advice) {
  return {Severity::kProblem, std::move(what), std::move(advice)};
}

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::string size_text(Bytes bytes) {
  if (bytes >= 10 * base::kGiB) return fmt::format("{} GiB", bytes / base::kGiB);
  return fmt::format("{} MiB", bytes / base::kMiB);
}

Finding examine_userfaultfd() {
  const auto opened = os::Userfaultfd::open();
  if (opened.ok()) return good("userfaultfd: allowed, with kernel accesses");
  return problem(opened.error().message,
                 "as root: sysctl -w vm.unprivileged_userfaultfd=1, or chmod a+rw "
                 "/dev/userfaultfd; in a container: allow the userfaultfd system call in its "
                 "seccomp profile; or run as root");
}

// Docker's standard seccomp profile forbids it.
Finding examine_layout() {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(::personality(ADDR_NO_RANDOMIZE) == -1 ? 1 : 0);
  int status = 0;
  if (child > 0) ::waitpid(child, &status, 0);
  if (child > 0 && status == 0) return good("address randomisation: can be switched off");
  return problem("address randomisation: cannot be switched off (personality is refused)",
                 "allow the personality system call (Docker: --security-opt seccomp=unconfined, or "
                 "a profile with personality 0x40000)");
}

Finding examine_limit(int resource, const char* name, const char* flag, rlim_t least,
                      const char* why) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  const std::string value =
      limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
  const std::string what = fmt::format("{} (ulimit {}): {}", name, flag, value);
  if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= least) return good(what);
  const bool can_raise = limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= least;
  return problem(
      what, fmt::format("{}; {}", why,
                        can_raise ? fmt::format("raise it with ulimit {} {}", flag,
                                                least == RLIM_INFINITY ? std::string("unlimited")
                                                                       : std::to_string(least))
                                  : "the hard limit is lower too: ask the "
                                    "administrator"));
}

Finding examine_memory() {
  const Bytes available = os::free_memory().available;
  const std::string what = "memory available: " + size_text(available);
  if (available >= 256 * base::kMiB) return good(what);
  return note(what,
              "nodes on this host share it: each page that several of them use exists once "
              "for each");
}

std::vector<Finding> examine_cgroup() {
  std::vector<Finding> out;
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"}) {
    const std::string text = first_line(path);
    if (text.empty() || text == "max") continue;
    const Bytes limit = std::strtoull(text.c_str(), nullptr, 10);
    if (limit == 0 || limit > (Bytes{1} << 60)) continue;
    const std::string what = "cgroup memory limit: " + size_text(limit);
    out.push_back(limit >= 256 * base::kMiB
                      ? good(what)
                      : note(what, "all nodes on this host together may use no more"));
  }
  if (const std::string text = first_line("/sys/fs/cgroup/cpu.max");
      !text.empty() && !text.starts_with("max")) {
    out.push_back(note("cgroup CPU quota: " + text + " (microseconds of each period)",
                       "nodes stop when it is used up, and others wait for them; give each node a "
                       "whole core"));
  }
  return out;
}

Finding examine_shared_memory() {
  struct statvfs info {};
  if (::statvfs("/dev/shm", &info) != 0) {
    return note("/dev/shm: not there",
                "UCX then cannot use POSIX shared memory between nodes on this host; mount a tmpfs "
                "there");
  }
  const Bytes free = info.f_bavail * info.f_frsize;
  const std::string what = "/dev/shm: " + size_text(free) + " free";
  if (free >= 64 * base::kMiB) return good(what);
  return note(what,
              "UCX needs some 10 MiB a node; enlarge it (Docker: --shm-size=1g), or use "
              "--transport=tcp");
}

std::vector<Finding> examine_transports() {
  const auto found = fabric::ucx_transports();
  if (!found.ok()) {
    return {problem(found.error().message, "reinstall UCX (Debian: libucx0)")};
  }
  const auto has = [&](const char* name) {
    const auto& all = found.value();
    return std::find(all.begin(), all.end(), name) != all.end();
  };
  std::string list;
  for (const std::string& name : found.value()) list += (list.empty() ? "" : " ") + name;
  std::vector<Finding> out;
  const std::string what = fmt::format("UCX {}: {}", fabric::ucx_version(), list);
  if (has("tcp")) {
    out.push_back(good(what));
  } else {
    out.push_back(problem(what,
                          "there is no tcp among the transports: bring up a network "
                          "interface (ip link set lo up)"));
  }
  if (const char* chosen = std::getenv("UCX_TLS"); chosen != nullptr) {
    out.push_back(note(std::string("UCX_TLS=") + chosen,
                       "it comes before --transport; unset it if nodes cannot reach each other"));
  }
  if (const std::string scope = first_line("/proc/sys/kernel/yama/ptrace_scope");
      !scope.empty() && scope != "0") {
    out.push_back(note("kernel.yama.ptrace_scope: " + scope,
                       "large messages between nodes on this host are copied twice; 0 lets UCX "
                       "copy them once (cma)"));
  }
  return out;
}

// Of the processor, as regions that are probed are counted by (docs/decisions/sharing.md).
Finding examine_counters() {
  constexpr std::array kEvents = {os::PerfEvent::kCacheMisses, os::PerfEvent::kInstructions};
  const auto opened = os::PerfGroup::open(kEvents);
  return judge_counters(opened.ok() ? "" : opened.error().message);
}

const char* mark(Severity severity) {
  switch (severity) {
    case Severity::kGood:
      return "ok     ";
    case Severity::kNote:
      return "note   ";
    case Severity::kProblem:
      return "PROBLEM";
  }
  return "";
}

int print(const std::vector<Finding>& findings) {
  int problems = 0;
  for (const Finding& finding : findings) {
    std::printf("%s  %s\n", mark(finding.severity), finding.what.c_str());
    if (!finding.advice.empty()) std::printf("         -> %s\n", finding.advice.c_str());
    if (finding.severity == Severity::kProblem) ++problems;
  }
  return problems;
}

}  // namespace

Finding judge_kernel(const std::string& release) {
  int major = 0, minor = 0;
  std::sscanf(release.c_str(), "%d.%d", &major, &minor);
  const std::string what = "kernel: Linux " + release;
  if (major > 5 || (major == 5 && minor >= 19)) return good(what);
  return problem(what, "write protection of shared memory by userfaultfd begins with Linux 5.19");
}

Finding judge_overcommit(int mode) {
  const std::string what = fmt::format("vm.overcommit_memory: {}", mode);
  if (mode != 2) return good(what);
  return problem(what,
                 "the runtime reserves address space that it does not use; as root: sysctl "
                 "-w vm.overcommit_memory=0");
}

Finding judge_open_files(std::uint64_t hard) {
  constexpr unsigned kSeveralNodes = 2;
  const std::string why = launch::why_too_few_files(hard, kSeveralNodes);
  if (why.empty()) {
    return good("open files (ulimit -Hn): " +
                (hard == RLIM_INFINITY ? std::string("unlimited") : std::to_string(hard)));
  }
  return problem(why,
                 "raise it as root: nofile in /etc/security/limits.conf, LimitNOFILE= of a systemd "
                 "unit, docker run --ulimit nofile=4096");
}

Finding judge_counters(const std::string& refusal) {
  if (refusal.empty()) return good("hardware counters: cache misses and instructions");
  return note("hardware counters: not available, so regions are judged by times alone", refusal);
}

std::vector<Finding> examine_host() {
  std::vector<Finding> out;
  utsname name{};
  ::uname(&name);
  out.push_back(judge_kernel(name.release));
  out.push_back(examine_userfaultfd());
  out.push_back(examine_layout());
  out.push_back(good(fmt::format("cores: {}", os::allowed_cores().size())));
  out.push_back(examine_memory());
  out.push_back(judge_overcommit(std::atoi(first_line("/proc/sys/vm/overcommit_memory").c_str())));
  out.push_back(examine_limit(RLIMIT_AS, "address space", "-v", RLIM_INFINITY,
                              "managed memory takes a fixed range of 1 TiB of addresses"));
  rlimit files{};
  ::getrlimit(RLIMIT_NOFILE, &files);
  out.push_back(judge_open_files(files.rlim_max));
  out.push_back(
      examine_limit(RLIMIT_STACK, "stack", "-s", 64 * base::kKiB, "threads start with that much"));
  out.push_back(examine_limit(RLIMIT_NPROC, "processes and threads", "-u", 64,
                              "a node has a few threads of its own"));
  out.push_back(examine_shared_memory());
  for (Finding& finding : examine_transports()) out.push_back(std::move(finding));
  out.push_back(examine_counters());
  for (Finding& finding : examine_cgroup()) out.push_back(std::move(finding));
  std::string pmix = fabric::pmix_version();
  pmix = pmix.substr(0, pmix.find(','));
  out.push_back(good(pmix + (fabric::started_by_pmix() ? ": this command was started by it"
                                                       : ": no job around this command")));
  return out;
}

int doctor_command(std::span<const char* const> arguments) {
  if (arguments.size() > 1 || (arguments.size() == 1 && arguments[0][0] == '-')) {
    base::log_line(base::LogLevel::kError, "usage: amasia doctor [program]");
    return 2;
  }
  int problems = print(examine_host());
  if (arguments.size() == 1) problems += print(examine_program(arguments[0]));
  if (problems == 0) {
    std::printf("Nothing here prevents a run.\n");
    return 0;
  }
  std::printf("%d problem%s would prevent a run.\n", problems, problems == 1 ? "" : "s");
  return 1;
}

}  // namespace amasia::tools
