// SPDX-License-Identifier: Apache-2.0
#include "os/cpu_quota.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "os/clock.hpp"
#include "os/cpu_group_plan.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {
namespace {

constexpr std::int64_t kLeastUs = 1000;

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return out;
}

bool has_cpu(std::string_view list) {
  for (const std::string_view one : split(list, ',')) {
    if (one == "cpu") return true;
  }
  return false;
}

// A line of mountinfo: number, parent, device, root, mount point, options, optional fields, "-",
// type, source, options of the file system.
struct Mount {
  std::string_view root, point, type, options;
};

std::optional<Mount> parse_mount(std::string_view line) {
  const auto fields = split(line, ' ');
  for (std::size_t i = 6; i + 3 < fields.size(); ++i) {
    if (fields[i] == "-") return Mount{fields[3], fields[4], fields[i + 1], fields[i + 3]};
  }
  return std::nullopt;
}

// The path of this process's group: "4:cpu,cpuacct:/a/b", or "0::/a/b" with version 2.
std::optional<std::string_view> group_of(std::string_view groups, int version) {
  for (const std::string_view line : split(groups, '\n')) {
    const auto first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    const bool is_it = version == 2 ? line.starts_with("0::") : has_cpu(controllers);
    if (is_it) return line.substr(second + 1);
  }
  return std::nullopt;
}

// A container may see a part of the hierarchy only, which then is the mount's root.
std::string folder_of(const Mount& mount, std::string_view group) {
  if (mount.root != "/" && group.starts_with(mount.root)) group.remove_prefix(mount.root.size());
  std::string folder(mount.point);
  if (group != "/") folder += group;
  return folder;
}

int write_file(const char* path, const char* text, std::size_t length) noexcept {
  const int file = ::open(path, O_WRONLY | O_CLOEXEC);
  if (file < 0) return errno;
  const ssize_t written = ::write(file, text, length);
  const int error = written == static_cast<ssize_t>(length) ? 0 : errno;
  ::close(file);
  return error;
}

// Error of one step.
Error refused(int error, const CpuGroupStep& step) {
  return base::errno_error(
      error,
      fmt::format("a CPU quota needs root or a delegated control group with the cpu controller "
                  "(systemd-run --user --scope -p Delegate=cpu amasia run ...); cannot {} {}",
                  step.makes_folder() ? "make the control group" : "write '" + step.text + "' to",
                  step.path));
}

// Of the group and those above it, from the top: which do not pass the controller on (version 2).
std::vector<std::string> groups_that_withhold(const CpuHierarchy& hierarchy) {
  std::vector<std::string> found;
  namespace fs = std::filesystem;
  for (fs::path folder = hierarchy.folder;; folder = folder.parent_path()) {
    std::ifstream file(folder / "cgroup.subtree_control");
    bool passes = false;
    for (std::string word; file >> word;) passes |= word == "cpu";
    if (!passes) found.insert(found.begin(), folder);
    if (folder == hierarchy.top || !folder.has_relative_path()) return found;
  }
}

}  // namespace

CpuQuota quota_of(double share) {
  AMASIA_CHECK(share > 0 && share <= 1, "a quota is a part of a core");
  return {kLeastUs, std::lround(static_cast<double>(kLeastUs) / share)};
}

std::optional<CpuHierarchy> find_cpu_hierarchy(std::string_view mounts, std::string_view groups) {
  for (const int version : {1, 2}) {
    const auto group = group_of(groups, version);
    if (!group) continue;
    for (const std::string_view line : split(mounts, '\n')) {
      const auto mount = parse_mount(line);
      if (!mount) continue;
      const bool is_it = version == 2 ? mount->type == "cgroup2"
                                      : mount->type == "cgroup" && has_cpu(mount->options);
      if (is_it) return CpuHierarchy{version, folder_of(*mount, *group), std::string(mount->point)};
    }
  }
  return std::nullopt;
}

Result<CpuGroups> CpuGroups::make(const CpuHierarchy& hierarchy, const std::string& name,
                                  std::span<const CpuQuota> quotas) {
  CpuGroups groups;
  std::vector<std::string> withhold;
  if (hierarchy.version == 2) withhold = groups_that_withhold(hierarchy);
  CpuGroupPlan plan = plan_cpu_groups(hierarchy, name, quotas, withhold);
  for (const CpuGroupStep& step : plan.steps) {
    if (!step.makes_folder()) {
      const int error = write_file(step.path.c_str(), step.text.data(), step.text.size());
      if (error != 0) return refused(error, step);
      if (step.is_above) groups.passed_on_.insert(groups.passed_on_.begin(), step.path);
      continue;
    }
    if (::mkdir(step.path.c_str(), 0755) != 0) return refused(errno, step);
    groups.folders_.insert(groups.folders_.begin(), step.path);
  }
  groups.entries_ = std::move(plan.entries);
  return groups;
}

CpuGroups::~CpuGroups() {
  const bool removed = remove_cpu_groups(folders_);
  // Refused where somebody else has come to need it.
  for (const std::string& file : passed_on_) write_file(file.c_str(), "-cpu", 4);
  if (removed) return;
  base::log_line(base::LogLevel::kWarning, "the control group {} cannot be removed",
                 folders_.back());
}

int enter_cpu_group(const char* entry) noexcept { return write_file(entry, "0", 1); }

bool remove_cpu_groups(const std::vector<std::string>& folders) noexcept {
  const Nanos deadline = monotonic_now() + 3 * base::kSecond;
  bool all = true;
  for (const std::string& folder : folders) {
    while (::rmdir(folder.c_str()) != 0 && errno != ENOENT) {
      if (errno != EBUSY || monotonic_now() > deadline) {
        all = false;
        break;
      }
      const timespec pause{0, 1000 * 1000};
      ::nanosleep(&pause, nullptr);
    }
  }
  return all;
}

Status QuotaMetronome::start(int core, Nanos period) {
  core_ = core;
  period_ = period;
  auto started = Thread::start(&QuotaMetronome::run, this);
  if (!started.ok()) return started.error();
  thread_ = std::move(started).value();
  while (state_.load(std::memory_order_acquire) == 0) yield_core();
  if (state_.load(std::memory_order_acquire) > 0) return base::ok();
  return Error{fmt::format("no real-time thread may run on core {}", core), 0};
}

void QuotaMetronome::stop() {
  stopping_.store(true, std::memory_order_relaxed);
  thread_.join();
}

void QuotaMetronome::run(void* self) {
  auto& metronome = *static_cast<QuotaMetronome*>(self);
  set_thread_name("amasia-quota");
  const bool may = pin_to_core(metronome.core_).ok() && raise_priority() == ServicePriority::kFifo;
  metronome.state_.store(may ? 1 : -1, std::memory_order_release);
  if (!may) return;
  Nanos next = monotonic_now();
  while (!metronome.stopping_.load(std::memory_order_relaxed)) {
    next = std::max(next + metronome.period_, monotonic_now());  // what was missed is not made up
    const timespec until{static_cast<time_t>(next / base::kSecond),
                         static_cast<long>(next % base::kSecond)};
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

}  // namespace amasia::os
