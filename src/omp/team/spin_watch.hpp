// SPDX-License-Identifier: Apache-2.0
// Teams with more threads than the node has cores for, as regions have that stay on one node but
// must keep their team's size, or whose threads have come home. Where their threads wait for each
// other by spinning on memory, each spins for its turn on the core while the one that it waits for
// has none (NPB's LU, two threads on one core: 450 times as long). So threads of such teams are
// looked at now and then; where one is in a loop that does nothing but wait (code/spin_loop), the
// jump back becomes a trap as long as such a team runs, at which threads give their core away.
//
// field       | written by                   | guarded by
// loops_      | the watching thread          | mutex_; read in handlers up to count_
// count_      | the watching thread          | release, partner: trapped()
// is_set_     | who begins or ends, watching | mutex_
// threads_    | each thread its place, end() | atomic
// found_at_   | each thread, interrupted     | atomic
// teams_      | who begins or ends           | atomic
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

#include "omp/code/spin_loop.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class SpinWatch final : public os::Trapper, public os::Interrupter {
 public:
  // Code, and so its traps, are the process's. Lives for ever.
  static SpinWatch& of_process();

  // A team of that kind begins and ends, on a native stack; two system calls for each loop that is
  // known, and a thread is woken where none had begun for some milliseconds.
  void begin();
  void end();
  // Whether there is one. Any thread.
  bool watches() const { return teams_.load(std::memory_order_relaxed) > 0; }

  // The calling thread is the team's thread `number`, until it leaves or the team has ended; again
  // does nothing. The first time in a thread's life it gets a stack for handlers.
  void enter(std::uint32_t number);
  void leave(std::uint32_t number);

  // The loops found so far.
  std::size_t loops() const { return count_.load(std::memory_order_acquire); }

  std::uintptr_t trapped(std::uintptr_t at, std::uint64_t flags) noexcept override;
  void interrupted(const os::InterruptedThread& thread) override;

 private:
  static constexpr std::size_t kMostThreads = 256, kMostLoops = 32;
  static constexpr Nanos kLook = 2 * base::kMillisecond, kSlowest = 64 * base::kMillisecond;

  struct Trap {
    SpinLoop loop;
    std::uint8_t original = 0;
  };

  SpinWatch() = default;
  bool prepare();
  static void watch(void* self);
  bool look();
  bool add(const SpinLoop& loop);
  void set(bool traps);

  std::once_flag once_;
  bool is_prepared_ = false;  // under once_
  os::Thread thread_;
  std::mutex mutex_;
  std::array<Trap, kMostLoops> loops_{};
  std::atomic<std::size_t> count_{0};
  bool is_set_ = false;
  std::array<std::atomic<int>, kMostThreads> threads_{};
  std::array<std::atomic<std::uintptr_t>, kMostThreads> found_at_{};
  std::atomic<std::uint32_t> teams_{0};
  std::atomic<std::uint32_t> asleep_{0};  // the watching thread, until a team begins
};

// While it lives, a team of the process is watched. nullptr: it is not one of that kind.
class WatchedTeam {
 public:
  explicit WatchedTeam(SpinWatch* watch) : watch_(watch) {
    if (watch_ != nullptr) watch_->begin();
  }
  ~WatchedTeam() {
    if (watch_ != nullptr) watch_->end();
  }
  WatchedTeam(const WatchedTeam&) = delete;
  WatchedTeam& operator=(const WatchedTeam&) = delete;

  // What its thread `number` does.
  template <typename Function>
  static void run(SpinWatch* watch, std::uint32_t number, Function&& function) {
    if (watch != nullptr) watch->enter(number);
    function();
    if (watch != nullptr) watch->leave(number);
  }

 private:
  SpinWatch* watch_;
};

}  // namespace amasia::omp
