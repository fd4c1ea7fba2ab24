// SPDX-License-Identifier: Apache-2.0
// What travels between a node and the origin (docs/protocols/delegate.md). All fields are as they
// lie in memory: the fabric joins nodes of one build.
#pragma once

#include <array>
#include <cstdint>

#include "fabric/fabric.hpp"

namespace amasia::delegate {

inline constexpr fabric::MessageType kFirstType = 0x380;
inline constexpr fabric::MessageType kLastType = 0x38f;

enum Type : fabric::MessageType {
  kFutexAdd = kFirstType,  // to the origin: this thread is about to sleep
  kFutexAdded,             // answer: any wake-up from now on reaches it
  kFutexRemove,            // to the origin: it will not sleep, or no longer; answered by 1, or by
                           // 0 if it is not there, since a wake-up is on its way to it
  kFutexWake,              // to the origin: wake up to `count`
  kFutexWoken,             // from the origin: one waiter's ticket
  kCall,                   // to the origin: a system call on a descriptor, and what it reads
  kAnswer,                 // from the origin: a result, and what a call wrote
};

struct FutexMessage {
  std::uint64_t address = 0;
  std::uint64_t waiter = 0;  // the ticket of the thread that waits on the word
  std::uint64_t reply = 0;   // the ticket to answer
  std::uint32_t bitset = 0;
  std::uint32_t count = 0;
  std::uint32_t flags = 0;  // of a wake-up: FUTEX_PRIVATE_FLAG, as the caller gave it
  std::uint32_t reserved = 0;
};

// Followed by `in_size` bytes that the call reads. `out_size` bytes may come back.
struct CallMessage {
  std::uint64_t ticket = 0;
  std::int32_t number = 0;
  std::uint32_t in_size = 0;
  std::uint32_t out_size = 0;
  std::uint32_t reserved = 0;
  std::array<std::uint64_t, 6> arguments{};
};

// Followed by what the call wrote.
struct AnswerMessage {
  std::uint64_t ticket = 0;
  std::int64_t result = 0;
  Nanos taken = 0;  // by the call itself
};

}  // namespace amasia::delegate
