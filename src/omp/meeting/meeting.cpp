// SPDX-License-Identifier: Apache-2.0
#include "omp/meeting/meeting.hpp"

#include <bit>

namespace amasia::omp {

Meeting::Meeting(std::uint32_t rank, std::uint32_t size) : rank_(rank), size_(size) {
  AMASIA_CHECK(size >= 1 && size <= base::kMaxNodes, "a meeting has between 1 and 64 participants");
  AMASIA_CHECK(rank < size, "a participant's rank is below their number");
}

std::uint32_t Meeting::rounds_of(std::uint32_t size) {
  return static_cast<std::uint32_t>(std::bit_width(size - 1));
}

std::uint32_t Meeting::awaited_rank() const {
  return (rank_ + size_ - (1u << round_) % size_) % size_;
}

Meeting::Step Meeting::say() {
  Step step;
  step.word = word_;
  if (round_ == rounds_of(size_)) {
    step.complete = true;
    waiting_ = false;
    return step;
  }
  step.send = true;
  step.to = (rank_ + (1u << round_)) % size_;
  step.round = round_;
  return step;
}

Meeting::Step Meeting::arrive(Word word) {
  AMASIA_CHECK(!waiting_ && round_ == 0, "a participant arrives once at a meeting");
  waiting_ = true;
  word_ = word;
  return say();
}

void Meeting::hear(std::uint32_t round, Word word) {
  AMASIA_CHECK(round < rounds_of(size_), "a signal belongs to a round of the meeting");
  AMASIA_CHECK(!heard_[round].has_value(), "each signal comes once");
  heard_[round] = word;
}

Meeting::Step Meeting::advance() {
  AMASIA_CHECK(waiting_, "only a participant that waits advances");
  if (!heard_[round_].has_value()) return {};
  word_.join(*heard_[round_]);
  ++round_;
  return say();
}

}  // namespace amasia::omp
