// SPDX-License-Identifier: Apache-2.0
#include "os/perf.hpp"

#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>

#include "os/thread.hpp"

namespace amasia::os {
namespace {

struct Kind {
  const char* name;
  std::uint32_t type;
  std::uint64_t config;
};

constexpr std::array<Kind, kPerfEvents> kKinds = {{
    {"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
    {"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
    {"cache-misses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES},
    {"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
    {"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
}};

const Kind& kind_of(PerfEvent event) {
  const auto index = static_cast<std::size_t>(event);
  AMASIA_CHECK(index < kKinds.size(), "every event has a kind");
  return kKinds[index];
}

std::string paranoid_text() {
  std::ifstream file("/proc/sys/kernel/perf_event_paranoid");
  std::string text;
  std::getline(file, text);
  return text;
}

// Of the calling thread, on whatever core it runs.
int open_event(PerfEvent event, int leader) {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = kind_of(event).type;
  attributes.config = kind_of(event).config;
  attributes.exclude_kernel = 1;
  attributes.exclude_hv = 1;
  attributes.read_format =
      PERF_FORMAT_GROUP | PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return static_cast<int>(
      ::syscall(SYS_perf_event_open, &attributes, 0, -1, leader, PERF_FLAG_FD_CLOEXEC));
}

}  // namespace

const char* name_of(PerfEvent event) { return kind_of(event).name; }

std::optional<std::array<double, kMostPerfEvents>> counted_between(const PerfReading& before,
                                                                   const PerfReading& after) {
  if (after.running_ns <= before.running_ns || after.enabled_ns < before.enabled_ns) {
    return std::nullopt;
  }
  const double stretch = static_cast<double>(after.enabled_ns - before.enabled_ns) /
                         static_cast<double>(after.running_ns - before.running_ns);
  std::array<double, kMostPerfEvents> counted{};
  for (std::size_t i = 0; i < counted.size(); ++i) {
    if (after.counts[i] < before.counts[i]) return std::nullopt;
    counted[i] = stretch * static_cast<double>(after.counts[i] - before.counts[i]);
  }
  return counted;
}

Result<PerfGroup> PerfGroup::open(std::span<const PerfEvent> events, int least_descriptor) {
  AMASIA_CHECK(!events.empty() && events.size() <= kMostPerfEvents, "a group has 1 to 4 events");
  PerfGroup group;
  group.count_ = events.size();
  group.thread_id_ = current_thread_id();
  for (std::size_t i = 0; i < events.size(); ++i) {
    Descriptor opened(open_event(events[i], i == 0 ? -1 : group.descriptors_[0].get()));
    if (!opened.valid()) {
      const int error = errno;
      return Error{perf_refusal(events[i], error, paranoid_text()), error};
    }
    if (opened.get() < least_descriptor) {
      opened = Descriptor(::fcntl(opened.get(), F_DUPFD_CLOEXEC, least_descriptor));
      if (!opened.valid()) return base::errno_error(errno, "no descriptor is left for a counter");
    }
    group.descriptors_[i] = std::move(opened);
  }
  return group;
}

bool PerfGroup::read(PerfReading& reading) const noexcept {
  // The layout that read_format asks for: number of events, both times, a count for each.
  std::array<std::uint64_t, 3 + kMostPerfEvents> words{};
  const ssize_t length = ::read(descriptors_[0].get(), words.data(), sizeof words);
  const auto expected = static_cast<ssize_t>((3 + count_) * sizeof words[0]);
  if (length != expected || words[0] != count_) return false;
  reading = {words[1], words[2], {}};
  std::memcpy(reading.counts.data(), words.data() + 3, count_ * sizeof words[0]);
  return true;
}

std::string perf_refusal(PerfEvent event, int error, const std::string& paranoid) {
  const std::string what = fmt::format("the event '{}' cannot be counted", name_of(event));
  switch (error) {
    case EACCES:
    case EPERM:
      if (!paranoid.empty() && std::atoi(paranoid.c_str()) <= 2) {
        return fmt::format(
            "{}, although kernel.perf_event_paranoid is {}: allow the system call perf_event_open "
            "(in a container: in its seccomp profile, or by the capability CAP_PERFMON)",
            what, paranoid);
      }
      return fmt::format(
          "{}, as kernel.perf_event_paranoid is {}: as root, sysctl -w "
          "kernel.perf_event_paranoid=2 lets every user count what own threads do in user mode",
          what, paranoid.empty() ? "not there" : paranoid);
    case ENOENT:
    case ENODEV:
    case EOPNOTSUPP:
      return fmt::format(
          "{}: this processor shows no such counter; in a virtual machine the host has to pass its "
          "performance monitoring unit on (QEMU: -cpu host,pmu=on)",
          what);
    case ENOSYS:
      return what + ": this kernel was built without performance events (CONFIG_PERF_EVENTS)";
    default:
      return base::errno_error(error, what).message;
  }
}

}  // namespace amasia::os
