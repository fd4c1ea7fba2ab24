// SPDX-License-Identifier: Apache-2.0
#include "os/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

namespace amasia::os {
namespace {

std::string proc_path(pid_t process, const char* file) {
  return "/proc/" + std::to_string(process) + "/" + file;
}

Result<std::string> read_file(const std::string& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return base::errno_error(errno, "cannot read " + path);
  constexpr std::size_t kMostBytes = 64 * base::kMiB;  // arguments take the most, some MiB
  auto text = read_to_end(file, kMostBytes);
  if (!text.ok()) return base::errno_error(text.error().code, "cannot read " + path);
  return text;
}

Result<std::string> read_link(const std::string& path) {
  char buffer[PATH_MAX];
  const ssize_t length = ::readlink(path.c_str(), buffer, sizeof buffer);
  if (length < 0) return base::errno_error(errno, "cannot read the link " + path);
  return std::string(buffer, static_cast<std::size_t>(length));
}

std::vector<std::string> split_at_zeroes(const std::string& text) {
  std::vector<std::string> out;
  for (std::size_t from = 0; from < text.size();) {
    const std::size_t end = std::min(text.find('\0', from), text.size());
    out.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return out;
}

// The file behind /proc/<pid>/exe by its name if that still is the same file, so that the node
// has the name in its turn; else by the link, which works even when the file was removed.
Result<std::string> executable_of(pid_t process) {
  const std::string link = proc_path(process, "exe");
  auto name = read_link(link);
  if (!name.ok()) return name.error();
  struct stat by_name {
  }, by_link{};
  if (::stat(link.c_str(), &by_link) == 0 && ::stat(name.value().c_str(), &by_name) == 0 &&
      by_name.st_dev == by_link.st_dev && by_name.st_ino == by_link.st_ino) {
    return name;
  }
  return link;
}

// The entries of a folder below /proc that are numbers: processes, or threads.
std::vector<pid_t> numbers_in(const std::string& path) {
  std::vector<pid_t> out;
  const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
  if (!folder) return out;
  while (const dirent* entry = ::readdir(folder.get())) {
    pid_t number = 0;
    const char* end = entry->d_name + std::strlen(entry->d_name);
    const auto [stop, error] = std::from_chars(entry->d_name, end, number);
    if (error == std::errc() && stop == end) out.push_back(number);
  }
  return out;
}

std::vector<pid_t> all_processes() { return numbers_in("/proc"); }

struct ProcessState {
  char state = '?';
  pid_t parent = 0;
};

// The name in /proc/<pid>/stat may hold spaces and parentheses.
ProcessState state_of(pid_t process) {
  const auto text = read_file(proc_path(process, "stat"));
  if (!text.ok()) return {};
  const auto name_end = text.value().rfind(')');
  if (name_end == std::string::npos) return {};
  ProcessState read;
  const char* const rest = text.value().c_str() + name_end + 1;
  if (std::sscanf(rest, " %c %d", &read.state, &read.parent) != 2) return {};
  return read;
}

}  // namespace

Result<ProcessImage> image_of(pid_t process) {
  ProcessImage image;
  auto executable = executable_of(process);
  if (!executable.ok()) return executable.error();
  image.executable = executable.value();
  const auto arguments = read_file(proc_path(process, "cmdline"));
  if (!arguments.ok()) return arguments.error();
  image.arguments = split_at_zeroes(arguments.value());
  const auto environment = read_file(proc_path(process, "environ"));
  if (!environment.ok()) return environment.error();
  image.environment = split_at_zeroes(environment.value());
  auto directory = read_link(proc_path(process, "cwd"));
  if (!directory.ok()) return directory.error();
  image.working_directory = directory.value();
  for (std::size_t resource = 0; resource < image.limits.size(); ++resource) {
    if (::prlimit(process, static_cast<__rlimit_resource>(resource), nullptr,
                  &image.limits[resource]) != 0) {
      return base::errno_error(errno, "cannot read resource limits");
    }
  }
  const auto status = read_file(proc_path(process, "status"));
  if (status.ok()) {
    const auto at = status.value().find("\nUmask:");
    if (at != std::string::npos) {
      image.file_mode_mask =
          static_cast<mode_t>(std::strtoul(status.value().c_str() + at + 7, nullptr, 8));
    }
  }
  return image;
}

Result<Descriptor> watch_process(pid_t process) {
  Descriptor made(static_cast<int>(::syscall(SYS_pidfd_open, process, 0)));
  if (!made.valid()) return base::errno_error(errno, "cannot watch a process");
  return made;
}

bool has_ended(int watch) noexcept {
  pollfd ended{watch, POLLIN, 0};
  return ::poll(&ended, 1, 0) > 0;
}

bool is_stopped(pid_t process) noexcept { return state_of(process).state == 'T'; }
bool is_stopped_or_traced(pid_t process) noexcept {
  const char state = state_of(process).state;
  return state == 'T' || state == 't';
}

bool waits_in_kernel(pid_t process, std::string_view thread, std::string_view where) {
  const std::string threads = proc_path(process, "task");
  const auto says = [&](pid_t id, const char* file, std::string_view wanted) {
    const auto text = read_file(threads + "/" + std::to_string(id) + "/" + file);
    if (!text.ok()) return false;
    const std::string_view found = text.value();
    return found.substr(0, found.find('\n')) == wanted;
  };
  const std::vector<pid_t> ids = numbers_in(threads);
  return std::any_of(ids.begin(), ids.end(), [&](pid_t id) {
    return says(id, "comm", thread) && says(id, "wchan", where);
  });
}

bool has_terminal() noexcept {
  return Descriptor(::open("/dev/tty", O_RDWR | O_CLOEXEC | O_NOCTTY)).valid();
}

std::vector<pid_t> descendants_of(pid_t root) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t process : all_processes()) children.emplace(state_of(process).parent, process);
  std::vector<pid_t> out;
  const auto add_children = [&](pid_t parent) {
    const auto [from, to] = children.equal_range(parent);
    for (auto child = from; child != to; ++child) out.push_back(child->second);
  };
  add_children(root);
  for (std::size_t i = 0; i < out.size(); ++i) add_children(out[i]);
  return out;
}

std::vector<pid_t> processes_with(std::string_view environment_entry) {
  std::vector<pid_t> out;
  for (const pid_t process : all_processes()) {
    const auto environment = read_file(proc_path(process, "environ"));
    if (!environment.ok()) continue;
    for (const std::string& entry : split_at_zeroes(environment.value())) {
      if (entry != environment_entry) continue;
      out.push_back(process);
      break;
    }
  }
  return out;
}

Status adopt_orphans() {
  if (::prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) {
    return base::errno_error(errno, "cannot adopt orphaned processes");
  }
  return base::ok();
}

void request_signal_at_parents_end(int signal) noexcept { ::prctl(PR_SET_PDEATHSIG, signal); }

void set_process_name(const char* name) noexcept { ::prctl(PR_SET_NAME, name); }

void raise_file_limit() noexcept {
  rlimit files{};
  if (::getrlimit(RLIMIT_NOFILE, &files) != 0) return;
  files.rlim_cur = files.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &files);
}

std::vector<int> allowed_cores() {
  std::vector<int> out;
  cpu_set_t cores;
  CPU_ZERO(&cores);
  if (::sched_getaffinity(0, sizeof cores, &cores) != 0) return out;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &cores)) out.push_back(core);
  }
  return out;
}

std::string signal_name(int signal) {
  const char* name = ::sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

void randomise_addresses_of_children() noexcept {
  constexpr unsigned long kQuery = 0xffffffff;
  const int now = ::personality(kQuery);
  if (now == -1) return;
  constexpr unsigned long kFixed = ADDR_NO_RANDOMIZE;
  ::personality(static_cast<unsigned long>(now) & ~kFixed);
}

}  // namespace amasia::os
