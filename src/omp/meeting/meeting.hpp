// SPDX-License-Identifier: Apache-2.0
// A meeting of nodes (barrier between leaders) as a pure state machine: dissemination, so that with
// P participants each is free after ceil(log2 P) messages in a row, one for two nodes. (A tree
// through the origin costs twice that.) Hensgen, Finkel, Manber 1988.
//
// In round r participant p tells p + 2^r and hears of p - 2^r (modulo P). Having heard in all
// rounds, it knows that all have arrived. A value that one participant brings spreads with it.
//
// state      arrive               signal (mine, next round)    signal (early)
// idle       waiting, or complete –                            remembered
// waiting    (bug)                next round, or complete      remembered
// A signal of the generation after this one can come early; one further on cannot, since its sender
// would have needed ours.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "base/base.hpp"

namespace amasia::omp {

inline constexpr std::uint32_t kMaxRounds = 6;  // of kMaxNodes participants
static_assert((1u << kMaxRounds) == base::kMaxNodes);

// What spreads in a meeting: a value, if some participant brought one, and flags in the highest
// byte, which any may bring and which are joined. (Values are addresses, whose highest byte is 0.)
struct Word {
  static constexpr std::uint64_t kFlags = std::uint64_t{0xff} << 56;
  bool present = false;
  std::uint64_t value = 0;

  void join(const Word& other) {
    if (!other.present) return;
    const std::uint64_t mine = present ? value & ~kFlags : 0, theirs = other.value & ~kFlags;
    AMASIA_CHECK(mine == 0 || theirs == 0 || mine == theirs,
                 "at most one participant brings a value to a meeting");
    value = present ? value | other.value : other.value;
    present = true;
  }
  friend bool operator==(const Word&, const Word&) = default;
};

class Meeting {
 public:
  struct Step {
    bool send = false;  // tell `to`, in `round`, `word`
    std::uint32_t to = 0;
    std::uint32_t round = 0;
    Word word;
    bool complete = false;  // all have arrived; `word` is what was brought
  };

  Meeting() = default;
  // Participant `rank` of `size`; 1 <= size <= kMaxNodes.
  Meeting(std::uint32_t rank, std::uint32_t size);

  static std::uint32_t rounds_of(std::uint32_t size);

  // This participant arrives. While step.send, the caller sends and then calls advance().
  Step arrive(Word word);
  // The signal of `round` from the participant that advance() waits for.
  void hear(std::uint32_t round, Word word);
  // The next step after a signal was heard; {} while the awaited one has not been.
  Step advance();
  // The round whose signal is needed next.
  std::uint32_t awaited_round() const { return round_; }
  std::uint32_t awaited_rank() const;

 private:
  Step say();

  std::uint32_t rank_ = 0;
  std::uint32_t size_ = 1;
  std::uint32_t round_ = 0;
  bool waiting_ = false;
  Word word_;
  std::array<std::optional<Word>, kMaxRounds> heard_;
};

}  // namespace amasia::omp
