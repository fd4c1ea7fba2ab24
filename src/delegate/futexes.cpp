// SPDX-License-Identifier: Apache-2.0
#include "delegate/futexes.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <limits>
#include <optional>

namespace amasia::delegate {
namespace {

// The deadline, on CLOCK_MONOTONIC, that the call's time argument means.
Nanos deadline_of(const timespec* time, int operation) {
  if (time == nullptr) return kNoDeadline;
  const Nanos given = time->tv_sec * base::kSecond + time->tv_nsec;
  const Nanos now = os::monotonic_now();
  if ((operation & FUTEX_CMD_MASK) == FUTEX_WAIT) return now + given;  // relative
  if ((operation & FUTEX_CLOCK_REALTIME) == 0) return given;
  return now + (given - os::realtime_now());
}

std::uint32_t word_at(std::uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(address), __ATOMIC_SEQ_CST);
}

AwaitedCall about(const char* what, std::uint64_t address) {
  return {.object = AwaitedCall::Object::kFutex, .what = what, .number = address};
}

// What the call, which wakes or moves waiters, asks for; none where it does something else. All
// that would be moved are woken, which is allowed: they look at their word and wait again.
std::optional<FutexMessage> wake_up_of(const os::TrappedCall& call) {
  const int operation = static_cast<int>(call.arguments[1]);
  FutexMessage wake_up{.address = call.arguments[0],
                       .bitset = FUTEX_BITSET_MATCH_ANY,
                       .count = static_cast<std::uint32_t>(call.arguments[2]),
                       .flags = static_cast<std::uint32_t>(operation) & FUTEX_PRIVATE_FLAG};
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAKE:
      return wake_up;
    case FUTEX_WAKE_BITSET:
      wake_up.bitset = static_cast<std::uint32_t>(call.arguments[5]);
      return wake_up;
    case FUTEX_REQUEUE:
    case FUTEX_CMP_REQUEUE:
      wake_up.count = std::numeric_limits<std::int32_t>::max();
      return wake_up;
    default:
      return std::nullopt;
  }
}

}  // namespace

long Futexes::answer(const os::TrappedCall& call) noexcept {
  calls_.fetch_add(1, std::memory_order_relaxed);
  const auto [address, operation_word, value, fourth, fifth, sixth] = call.arguments;
  const int operation = static_cast<int>(operation_word);
  const auto number = static_cast<std::uint32_t>(value);
  const auto* time = reinterpret_cast<const timespec*>(fourth);
  constexpr auto kAnyBit = static_cast<std::uint32_t>(FUTEX_BITSET_MATCH_ANY);
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
      return wait(address, number, kAnyBit, deadline_of(time, operation));
    case FUTEX_WAIT_BITSET:
      if (static_cast<std::uint32_t>(sixth) == 0) return -EINVAL;
      return wait(address, number, static_cast<std::uint32_t>(sixth), deadline_of(time, operation));
    case FUTEX_CMP_REQUEUE:
      if (word_at(address) != static_cast<std::uint32_t>(sixth)) return -EAGAIN;
      break;
    default:
      break;
  }
  const std::optional<FutexMessage> wake_up = wake_up_of(call);
  // Not carried: priority inheritance and WAKE_OP, which the C library can do without.
  return wake_up.has_value() ? wake(*wake_up) : -ENOSYS;
}

// Node 0's, as libraries that the runtime uses, too, have threads for the program there only.
long Futexes::wake_beside(const os::TrappedCall& call) noexcept {
  const std::optional<FutexMessage> wake_up = at_origin() ? wake_up_of(call) : std::nullopt;
  return wake_up.has_value() ? wake_in_table(*wake_up) : 0;
}

long Futexes::wait(std::uint64_t address, std::uint32_t expected, std::uint32_t bitset,
                   Nanos deadline) {
  const std::uint64_t waiter = slots_.acquire();
  enter_table(address, waiter, bitset);
  // G1: the word is read after the entry. It may fault; that is an ordinary managed access.
  const bool changed = word_at(address) != expected;
  long result = 0;
  AwaitedCall wake_up = about("a wake-up of", address);
  wake_up.once = true;
  if (changed || !slots_.wait_beyond(waiter, CallSlot::kRegistered, deadline, wake_up)) {
    if (leave_table(address, waiter)) {
      result = changed ? -EAGAIN : -ETIMEDOUT;
    } else {  // a wake-up is on its way, and it is this thread's to take
      slots_.wait_beyond(waiter, CallSlot::kRegistered, kNoDeadline,
                         about("the wake-up, which was sent, of", address));
    }
  }
  slots_.release(waiter);
  return result;
}

void Futexes::enter_table(std::uint64_t address, std::uint64_t waiter, std::uint32_t bitset) {
  if (at_origin()) {
    os::in_runtime_section([&] {
      const std::lock_guard lock(table_mutex_);
      table_.add(address, {base::kOrigin, waiter, bitset});
    });
    slots_.registered(waiter);
    return;
  }
  os::in_runtime_section([&] {
    const FutexMessage message{.address = address, .waiter = waiter, .bitset = bitset};
    fabric_.send(base::kOrigin, kFutexAdd, fabric::bytes_of(message));
  });
  slots_.wait_beyond(waiter, CallSlot::kWaiting, kNoDeadline,
                     about("node 0 to know of a waiter on", address));
}

bool Futexes::leave_table(std::uint64_t address, std::uint64_t waiter) {
  if (at_origin()) {
    bool removed = false;
    os::in_runtime_section([&] {
      const std::lock_guard lock(table_mutex_);
      removed = table_.remove(address, base::kOrigin, waiter);
    });
    return removed;
  }
  return ask_origin(kFutexRemove, {.address = address, .waiter = waiter}) != 0;
}

long Futexes::wake(FutexMessage wake_up) {
  if (!at_origin()) return ask_origin(kFutexWake, wake_up);
  long woken = 0;
  os::in_runtime_section([&] { woken = wake_at_origin(wake_up); });
  return woken;
}

long Futexes::ask_origin(Type type, FutexMessage message) {
  message.reply = slots_.acquire();
  os::in_runtime_section(
      [&] { fabric_.send(base::kOrigin, type, fabric::bytes_of(message)); });
  const char* const what =
      type == kFutexWake ? "node 0 to wake waiters on" : "node 0 to forget a waiter on";
  slots_.wait_beyond(message.reply, CallSlot::kRegistered, kNoDeadline,
                     about(what, message.address));
  const long result = slots_.slot(message.reply).result;
  slots_.release(message.reply);
  return result;
}

long Futexes::wake_at_origin(const FutexMessage& message) {
  const long woken = wake_in_table(message);
  const long more = static_cast<long>(message.count) - woken;
  if (more <= 0) return woken;
  const long others = os::make_uncaught_call(
      SYS_futex, {message.address, FUTEX_WAKE_BITSET | message.flags,
                  static_cast<std::uint64_t>(more), 0, 0, message.bitset});
  return woken + std::max(others, 0L);
}

long Futexes::wake_in_table(const FutexMessage& message) {
  std::vector<FutexWaiter> woken;
  {
    const std::lock_guard lock(table_mutex_);
    woken = table_.take(message.address, message.count, message.bitset);
  }
  for (const FutexWaiter& waiter : woken) answer_at(waiter.node, waiter.ticket, 0);
  return static_cast<long>(woken.size());
}

void Futexes::answer_at(NodeId node, std::uint64_t ticket, long result) {
  if (node == base::kOrigin) {
    slots_.answer(ticket, result);
    return;
  }
  const AnswerMessage message{ticket, result};
  fabric_.send(node, kAnswer, fabric::bytes_of(message));
}

void Futexes::on_add(NodeId from, const FutexMessage& message) {
  {
    const std::lock_guard lock(table_mutex_);
    table_.add(message.address, {from, message.waiter, message.bitset});
  }
  fabric_.send(from, kFutexAdded, fabric::bytes_of(AnswerMessage{message.waiter, 0}));
}

void Futexes::on_remove(NodeId from, const FutexMessage& message) {
  bool removed = false;
  {
    const std::lock_guard lock(table_mutex_);
    removed = table_.remove(message.address, from, message.waiter);
  }
  answer_at(from, message.reply, removed ? 1 : 0);
}

// The kernel touches the page of a futex that is not private, and this thread serves page faults:
// it would wait for itself. What waits in the kernel are libraries that the runtime uses, too, and
// theirs are private.
void Futexes::on_wake(NodeId from, const FutexMessage& message) {
  const bool is_private = (message.flags & FUTEX_PRIVATE_FLAG) != 0;
  answer_at(from, message.reply, is_private ? wake_at_origin(message) : wake_in_table(message));
}

}  // namespace amasia::delegate
