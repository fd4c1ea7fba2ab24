// SPDX-License-Identifier: Apache-2.0
// Which threads wait for which page, since when; and the slots that their stall is booked to.
// Guarded by the engine's lock, but for the slots' counters.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "dsm/engine.hpp"

namespace amasia::dsm {

enum class FaultKind : std::uint8_t { kRead, kWrite, kUpgrade };

struct WaitingThread {
  PageIndex page{};
  Nanos since = 0;
  Nanos reported = 0;  // when the watchdog last wrote about it; 0: never
  std::int32_t thread_id = 0;
  std::uint32_t slot = 0;
  FaultKind kind = FaultKind::kRead;
  // When it was given the page before, by the job's clock; 0: not, or it has come to a pause since.
  Nanos had_at = 0;
  bool was_lost = false;  // LossWatch
};

class WaitingThreads {
 public:
  static constexpr std::size_t kMaxSlots = 4096;
  static constexpr std::size_t kMaxWaiting = 8192;  // threads in a fault at one time

  // The slot of a thread, found or taken; slot 0 is shared by those that found none free.
  std::uint32_t slot_of(std::int32_t thread_id);
  void free_slot(const ThreadSlot* slot);
  ThreadSlot& slot(std::uint32_t index) { return slots_[index]; }

  // Remembers a fault. A thread waits for one page at a time: what was known of it before is
  // over. Returns false for a fault that is known already.
  bool add(const WaitingThread& thread);

  // Books the stall of threads that wait for pages of the run to their slots, forgets them, and
  // copies them to `done`. Returns how many; if that is all of `done`, there may be more.
  std::size_t finish(PageRun run, Nanos now, std::span<WaitingThread> done);
  bool any(PageRun run) const;

  // Of all threads since start.
  Nanos stall_ns() const { return stall_ns_; }

  // For each thread that finish() gave, with the CPU time that it has used in all. Returns how long
  // it did not run between the page that it was given before and this fault: after it was woken,
  // say, on a core that others needed. 0 if it has come to a wait for other nodes since.
  Nanos note_served(const WaitingThread& thread, Nanos now, Nanos cpu);

  std::size_t count() const { return count_; }
  WaitingThread& operator[](std::size_t i) { return waiting_[i]; }

 private:
  void remove(std::size_t i) { waiting_[i] = waiting_[--count_]; }
  void book(const WaitingThread& thread, Nanos now);

  Nanos stall_ns_ = 0;
  std::size_t count_ = 0;
  std::uint32_t slots_end_ = 1;  // no slot from here on was ever used
  std::array<WaitingThread, kMaxWaiting> waiting_{};
  std::array<ThreadSlot, kMaxSlots> slots_{};

  struct Served {
    std::int32_t thread_id = 0;
    std::uint32_t pauses = 0;
    Nanos at = 0, cpu = 0;
  };
  std::array<Served, kMaxSlots> served_{};
};

}  // namespace amasia::dsm
