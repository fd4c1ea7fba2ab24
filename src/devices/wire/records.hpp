// SPDX-License-Identifier: Apache-2.0
// What travels through the rings between a client and the daemon: records of one slot, 64 bytes.
// The table of messages, and who may send what when, stands in docs/protocols/devices.md.
// Devices are numbered as the client announced them (from 0), tasks and buffers as it likes (from
// 1). A record is copied out of the ring before any of its fields is looked at.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "devices/ids.hpp"

namespace amasia::devices {

// Whom a record must not keep waiting; what wakes the daemon for one wakes it for all after it.
enum class Urgency : std::uint32_t {
  kNone = 1,    // it may lie until the next one that is urgent
  kOthers = 2,  // other programs that want what it gives back
  kOwn = 3,     // its own program
};

enum class RecordKind : std::uint8_t {
  // client -> daemon
  kPut = 1,        // a task is ready; its kArguments follow at once
  kArguments = 2,  // up to three resident arguments of the last kPut
  kFinished = 3,   // a granted task has ended
  kCancel = 4,     // a task that was put is not wanted any more; no answer: kRefuse or kGrant
                   // may have crossed it, and a granted task still needs its kFinished
  kDropped = 5,    // a copy of a resident buffer has gone
  kNameKernel = 6, // what a kernel's identity is called; before the first kPut with it
  kRan = 7,        // a task that was never put has run on a device that is leased, and has ended
  // daemon -> client
  kGrant = 16,     // run it
  kRefuse = 17,    // it will not run: `reason`
  kEvict = 18,     // give this copy up; answered by kDropped
  kDraining = 19,  // the daemon takes no more tasks, and ends when those that it has are done
  kRevoke = 20,    // no device is leased any more; a kRan may have crossed it
};

enum class RefuseReason : std::uint8_t {
  kNoDevice = 1,      // none of the devices that the task may run on exists
  kTooLarge = 2,      // what it needs at once is more than any of those devices has
  kDraining = 3,      // put after kDraining; put it to the next daemon
  kQuota = 4,         // more than the daemon grants one client
};

struct PutRecord {
  RecordKind kind = RecordKind::kPut;
  std::uint8_t unused = 0;
  std::uint16_t arguments = 0;    // resident ones; at most kMaxResidentArguments
  std::int32_t priority = 0;
  std::uint64_t task = 0;
  std::uint64_t kernel = 0;
  std::uint64_t work_items = 0;
  std::uint64_t temporary = 0;    // bytes
  std::uint64_t allowed = 0;      // set of the client's devices, not empty
  std::uint64_t preferred = 0;    // part of it
  // A run: so many more tasks of the same kernel, sizes and buffers, which are placed, granted and
  // refused by this one's number and told of by one kFinished.
  std::uint64_t more = 0;
};
struct ArgumentsRecord {
  static constexpr unsigned kMost = 3;
  RecordKind kind = RecordKind::kArguments;
  std::uint8_t count = 0;             // 1 … kMost
  std::uint8_t access[kMost] = {};    // Access
  std::uint8_t unused[3] = {};
  struct Entry {
    std::uint64_t buffer = 0;
    std::uint64_t size = 0;
  } entries[kMost];
  std::uint64_t reserved = 0;
};
struct FinishedRecord {
  RecordKind kind = RecordKind::kFinished;
  std::uint8_t failure = 0;  // Failure (backends/backend.hpp); 0: it succeeded
  std::uint8_t failed = 0;   // of a run: how many failed; `failure` is of the last of them
  std::uint8_t unused[5] = {};
  std::uint64_t task = 0;
  // CLOCK_MONOTONIC; 0: not known.
  std::int64_t copy_began = 0, run_began = 0, run_ended = 0, copy_ended = 0;
  std::uint64_t copied = 0;  // bytes, both ways
  std::int64_t idle = 0;     // of a run: nanoseconds from run_began to run_ended without its kernel
};
struct RanRecord {
  RecordKind kind = RecordKind::kRan;
  std::uint8_t failure = 0;  // as of FinishedRecord
  std::uint8_t device = 0;
  std::uint8_t unused[5] = {};
  std::uint64_t task = 0, kernel = 0, work_items = 0;
  std::int64_t sent = 0, run_began = 0, run_ended = 0;  // CLOCK_MONOTONIC; 0: not known
  std::uint64_t copied = 0;                             // bytes, to the host
};
// kCancel, kDropped, kGrant, kRefuse, kEvict, kDraining, kRevoke. What a kind does not use is 0.
struct ShortRecord {
  RecordKind kind{};
  std::uint8_t device = 0;
  std::uint8_t reason = 0;
  std::uint8_t lease = 0;  // kGrant: 1, the device is leased from now on
  std::uint8_t unused[4] = {};
  std::uint64_t number = 0;  // the task, or the buffer
  std::uint64_t reserved[6] = {};
};

// For people: the daemon tells kernels apart by their identities.
struct NameKernelRecord {
  RecordKind kind = RecordKind::kNameKernel;
  std::uint8_t unused[7] = {};
  std::uint64_t kernel = 0;
  char name[48] = {};  // cut at its end
};
// More names of one client are not told.
inline constexpr std::size_t kMaxKernelNames = 4096;

inline constexpr unsigned kMaxResidentArguments = 4096;

// A slot. Reading a field of the wrong kind is not undefined, only senseless: bytes are copied.
struct Record {
  alignas(8) std::array<std::byte, 64> bytes{};

  template <typename T>
  static Record of(const T& content) {
    static_assert(sizeof(T) == sizeof(Record) && std::is_trivially_copyable_v<T>);
    Record record;
    std::memcpy(record.bytes.data(), &content, sizeof content);
    return record;
  }
  template <typename T>
  T as() const {
    static_assert(sizeof(T) == sizeof(Record) && std::is_trivially_copyable_v<T>);
    T content;
    std::memcpy(&content, bytes.data(), sizeof content);
    return content;
  }
  RecordKind kind() const { return static_cast<RecordKind>(bytes[0]); }
};
static_assert(sizeof(Record) == 64);

inline Record short_record(RecordKind kind, std::uint64_t number, std::uint8_t device = 0,
                           std::uint8_t reason = 0, bool lease = false) {
  ShortRecord content;
  content.lease = lease ? 1 : 0;
  content.kind = kind;
  content.number = number;
  content.device = device;
  content.reason = reason;
  return Record::of(content);
}

}  // namespace amasia::devices
