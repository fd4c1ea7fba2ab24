// SPDX-License-Identifier: Apache-2.0
// Threads slowed to a part of a core by the kernel's CPU quota (control groups, version 1 or 2).
//
// Groups lie below the one that this process is in: with version 1 in the hierarchy that has the
// `cpu` controller, with version 2 as threaded ones, so that single threads can enter them and
// their process stays where it was; groups above that do not pass the controller on are made to.
// Threads that a thread starts afterwards enter its group with it. Real-time threads are not held
// to a quota, but a group of version 1 may take none in.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.hpp"
#include "os/thread.hpp"

namespace amasia::os {

// `runtime` of CPU time in each `period`. The kernel takes no less than a millisecond for either.
struct CpuQuota {
  std::int64_t runtime_us = 0, period_us = 0;
};
// The shortest one for a part of a core, 0.01 to 1. Pure.
CpuQuota quota_of(double share);

// Where control groups that have a CPU quota can be made.
struct CpuHierarchy {
  int version = 0;
  std::string folder;  // the group that this process is in
  std::string top;     // the one above all that can be seen, where it is mounted
};
// From the texts of /proc/self/mountinfo and /proc/self/cgroup; nullopt: there is none. Pure.
std::optional<CpuHierarchy> find_cpu_hierarchy(std::string_view mounts, std::string_view groups);

class CpuGroups {
 public:
  // A group `name` with one below it for each quota. An error is a sentence that says what is
  // missing, and leaves nothing behind.
  static Result<CpuGroups> make(const CpuHierarchy& hierarchy, const std::string& name,
                                std::span<const CpuQuota> quotas);
  CpuGroups(CpuGroups&& other) noexcept
      : folders_(std::exchange(other.folders_, {})),
        passed_on_(std::exchange(other.passed_on_, {})),
        entries_(std::move(other.entries_)) {}
  CpuGroups& operator=(CpuGroups&&) = delete;
  // Removes the groups, and where groups above them had not passed the controller on takes it back.
  // Whoever was in them must have ended.
  ~CpuGroups();

  // The file through which a thread enters the group of quota `index`.
  const std::string& entry(std::size_t index) const { return entries_[index]; }
  // In the order in which they can be removed.
  const std::vector<std::string>& folders() const { return folders_; }

 private:
  CpuGroups() = default;
  std::vector<std::string> folders_;
  std::vector<std::string> passed_on_;  // files, in the order in which the controller is taken back
  std::vector<std::string> entries_;
};

// The calling thread enters the group with this entry. Errno, or 0. Safe between fork and exec.
int enter_cpu_group(const char* entry) noexcept;

// Removes what CpuGroups::folders() gave. The kernel lets a group go a moment after its last
// thread: tries for some seconds. False: some are still there.
bool remove_cpu_groups(const std::vector<std::string>& folders) noexcept;

// The kernel looks whether a thread has used up its quota when it schedules: at worst at its tick,
// every 1 to 10 ms, so that a thread held to 1 ms in 3 runs for 4 ms and then rests for 8. While
// this object lives, a real-time thread wakes on `core` every `period` and lets it look then.
class QuotaMetronome {
 public:
  QuotaMetronome() = default;
  ~QuotaMetronome() { stop(); }
  QuotaMetronome(const QuotaMetronome&) = delete;
  QuotaMetronome& operator=(const QuotaMetronome&) = delete;
  // Without the right to real-time threads: an error, and nothing runs.
  Status start(int core, Nanos period);
  void stop();

 private:
  static void run(void* self);
  int core_ = 0;
  Nanos period_ = 0;
  // Of the thread's start: 0 until it is known, then 1, or -1. Release by it, acquire by start().
  std::atomic<int> state_{0};
  std::atomic<bool> stopping_{false};  // relaxed: the join orders
  Thread thread_;
};

}  // namespace amasia::os
