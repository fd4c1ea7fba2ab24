// SPDX-License-Identifier: Apache-2.0
#include "omp/team/single_board.hpp"

namespace amasia::omp {

void SingleBoard::reset(std::uint32_t threads) {
  if (!used_.load(std::memory_order_relaxed) && threads == threads_) return;
  // Relaxed: the region's fork, and the messages of the region, order what comes after.
  used_.store(false, std::memory_order_relaxed);
  for (auto& slot : claims_) slot.store(0, std::memory_order_relaxed);
  for (auto& slot : told_) slot.store(0, std::memory_order_relaxed);
  if (threads > room_) {
    answers_ = std::make_unique<std::atomic<std::uint64_t>[]>(threads);
    room_ = threads;
  }
  threads_ = threads;
  for (std::uint32_t id = 0; id < threads_; ++id) {
    answers_[id].store(0, std::memory_order_relaxed);
  }
}

bool SingleBoard::claim(std::uint64_t number) {
  note_use();
  std::atomic<std::uint64_t>& slot = claims_[number % kSlots];
  // Relaxed: the construct's own barrier orders what its executor did.
  std::uint64_t last = slot.load(std::memory_order_relaxed);
  while (last < number + 1) {
    if (slot.compare_exchange_weak(last, number + 1, std::memory_order_relaxed)) return true;
  }
  return false;  // S1
}

void SingleBoard::tell(std::uint64_t number) {
  note_use();
  std::atomic<std::uint64_t>& slot = told_[number % kSlots];
  if (slot.load(std::memory_order_relaxed) < number + 1) {
    slot.store(number + 1, std::memory_order_release);  // partner: verdict
  }
}

bool SingleBoard::answer(std::uint32_t local_id, std::uint64_t number, bool granted) {
  if (local_id >= threads_) return false;
  note_use();
  answers_[local_id].store((number + 1) * 2 + (granted ? 1 : 0),
                           std::memory_order_release);  // partner: verdict
  return true;
}

SingleBoard::Verdict SingleBoard::verdict(std::uint32_t local_id, std::uint64_t number) const {
  const std::uint64_t answer = answers_[local_id].load(std::memory_order_acquire);
  if (answer / 2 == number + 1) return answer % 2 != 0 ? Verdict::kMine : Verdict::kTaken;
  const std::uint64_t told = told_[number % kSlots].load(std::memory_order_acquire);
  return told == number + 1 ? Verdict::kTaken : Verdict::kUnknown;
}

}  // namespace amasia::omp
