// SPDX-License-Identifier: Apache-2.0
// What a node's threads and the origin have said about an attempt to stop these threads (halt.hpp),
// in one word, so that all of it has one order: a thread that refuses after all have held is too
// late, and one that would hold after another has refused goes on. Pure; Halt changes the word by
// compare-exchange, the explorer one change after the other in every order (halt_vote_test).
//
//            ask          hold, the last      decide
//   an earlier ----> voting ----> all hold ----------> goes home, or on
//                      |  refuse       tell_refusal
//                      +----> refused -------> goes on
#pragma once

#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

class HaltVote {
 public:
  enum class State : std::uint8_t { kVoting, kAllHold, kRefused, kToGoOn, kToGoHome };

  static constexpr std::uint32_t kMostThreads = (1U << 24) - 1;

  // Of no attempt; the first one has the number 1.
  HaltVote() = default;
  explicit HaltVote(std::uint64_t word)
      : number_(static_cast<std::uint32_t>(word >> 32)),
        held_(static_cast<std::uint32_t>(word >> 8) & kMostThreads),
        state_(static_cast<State>(word & 0xff)) {}
  std::uint64_t word() const {
    return std::uint64_t{number_} << 32 | std::uint64_t{held_} << 8 |
           static_cast<std::uint64_t>(state_);
  }

  std::uint32_t number() const { return number_; }
  std::uint32_t held() const { return held_; }
  State state() const { return state_; }

  // Whether a thread that holds for attempt `number` is to wait on.
  bool waits(std::uint32_t number) const {
    return number == number_ && (state_ == State::kVoting || state_ == State::kAllHold);
  }
  bool goes_home(std::uint32_t number) const {
    return number == number_ && state_ == State::kToGoHome;
  }

  // What follows changes the vote and returns true, or finds that it comes too late.

  // The origin asks. Attempts are numbered in their order, and one follows the verdict about the
  // one before, so nobody waits for an earlier one.
  bool ask(std::uint32_t number) {
    if (number <= number_) return false;
    number_ = number;
    held_ = 0;
    state_ = State::kVoting;
    return true;
  }
  // One of `threads` holds. If it is the last one, all do.
  bool hold(std::uint32_t number, std::uint32_t threads) {
    if (!is_voting(number)) return false;
    if (++held_ == threads) state_ = State::kAllHold;
    return true;
  }
  bool refuse(std::uint32_t number) {
    if (!is_voting(number)) return false;
    state_ = State::kRefused;
    return true;
  }
  // One of those that hold goes on, as another one has refused. True for the first: it tells the
  // origin.
  bool tell_refusal(std::uint32_t number) {
    if (number != number_ || state_ != State::kRefused) return false;
    state_ = State::kToGoOn;
    return true;
  }
  // The origin's verdict. False: it cannot be.
  bool decide(std::uint32_t number, bool goes_home) {
    if (number < number_) return false;
    const bool all_hold = number == number_ && state_ == State::kAllHold;
    if (goes_home && !all_hold) return false;
    if (number == number_ && state_ == State::kToGoHome) return false;
    number_ = number;
    state_ = goes_home ? State::kToGoHome : State::kToGoOn;
    return true;
  }

 private:
  bool is_voting(std::uint32_t number) const {
    return number == number_ && state_ == State::kVoting;
  }

  std::uint32_t number_ = 0, held_ = 0;
  State state_ = State::kToGoOn;
};

}  // namespace amasia::omp
