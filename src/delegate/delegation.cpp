// SPDX-License-Identifier: Apache-2.0
#include "delegate/delegation.hpp"

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

#include "delegate/call_shape.hpp"
#include "delegate/call_slot.hpp"
#include "delegate/futexes.hpp"
#include "delegate/remote_calls.hpp"

namespace amasia::delegate {
namespace {

bool writes(int number) { return number == SYS_write || number == SYS_writev; }

bool is_output(const os::TrappedCall& call) {
  return writes(static_cast<int>(call.number)) &&
         (call.arguments[0] == STDOUT_FILENO || call.arguments[0] == STDERR_FILENO);
}

class NodeDelegation final : public Delegation, public fabric::Handler {
 public:
  NodeDelegation(fabric::Fabric& fabric, Nanos watchdog)
      : slots_(fabric.self(), watchdog),
        futexes_(fabric, slots_),
        calls_(fabric, slots_),
        server_(fabric) {
    fabric.set_handler(kFirstType, kLastType, this);
  }

  void set_abort_note(std::function<void()> note) override { note_abort_ = std::move(note); }

  void answer(os::TrappedCall& call) noexcept override {
    if (call.number == SYS_tgkill) {
      if (note_abort_ && !os::is_in_runtime_section()) note_abort_();
      call.result = os::make_uncaught_call(call.number, call.arguments);
      return;
    }
    // The runtime's own call, on a thread of the program: UCX opens a socket for a message's sake.
    const bool output = is_output(call);
    if (output || os::is_in_runtime_section()) {
      call.result = os::make_uncaught_call(call.number, call.arguments);
      // Release, partner: outputs_written. The bytes are in the stream.
      if (output) outputs_written_.fetch_add(1, std::memory_order_release);
      if (call.number == SYS_futex && call.result >= 0) call.result += futexes_.wake_beside(call);
      return;
    }
    call.result = call.number == SYS_futex ? futexes_.answer(call) : calls_.answer(call);
  }

  std::uint64_t outputs_written() const noexcept override {
    return outputs_written_.load(std::memory_order_acquire);
  }

  CallTimes own_call_times() const noexcept override { return RemoteCalls::own_times(); }
  CallTimes call_times() const noexcept override { return calls_.times(); }
  const std::atomic<bool>& own_carrying() const noexcept override {
    return RemoteCalls::own_carrying();
  }

  Counts counts() const override {
    return {futexes_.calls(), calls_.calls(), calls_.refused()};
  }

  void on_message(const fabric::Incoming& message) override {
    if (!dispatch(message)) {
      base::log_line(base::LogLevel::kError,
                     "dropped a malformed message of type {:#x} from node {}", message.type,
                     message.from.value);
    }
  }

 private:
  bool dispatch(const fabric::Incoming& message) {
    switch (message.type) {
      case kFutexAdd:
      case kFutexRemove:
      case kFutexWake:
        return dispatch_futex(message);
      case kFutexAdded:
      case kAnswer:
        return dispatch_answer(message);
      case kCall:
        return server_.on_call(message.from, message.body);
      default:
        return false;
    }
  }

  bool dispatch_futex(const fabric::Incoming& message) {
    FutexMessage futex;
    if (message.body.size() != sizeof futex) return false;
    std::memcpy(&futex, message.body.data(), sizeof futex);
    if (message.type == kFutexAdd && futex.bitset == 0) return false;
    if (message.type == kFutexAdd) futexes_.on_add(message.from, futex);
    if (message.type == kFutexRemove) futexes_.on_remove(message.from, futex);
    if (message.type == kFutexWake) futexes_.on_wake(message.from, futex);
    return true;
  }

  bool dispatch_answer(const fabric::Incoming& message) {
    AnswerMessage answer;
    if (message.body.size() < sizeof answer) return false;
    std::memcpy(&answer, message.body.data(), sizeof answer);
    const auto wrote = message.body.subspan(sizeof answer);
    if (message.type == kFutexAdded) {
      slots_.registered(answer.ticket);
    } else {
      slots_.answer(answer.ticket, answer.result, answer.taken, {wrote.begin(), wrote.end()});
    }
    return true;
  }

  std::function<void()> note_abort_;
  std::atomic<std::uint64_t> outputs_written_{0};
  CallSlots slots_;
  Futexes futexes_;
  RemoteCalls calls_;
  CallServer server_;
};

// A system call trap has no context argument: this is the ABI's. Set once, before the filter.
std::atomic<Delegation*> trapping_delegation{nullptr};

void answer_trapped_call(os::TrappedCall& call) noexcept {
  trapping_delegation.load(std::memory_order_acquire)->answer(call);
}

}  // namespace

std::unique_ptr<Delegation> make_delegation(fabric::Fabric& fabric, Nanos watchdog) {
  return std::make_unique<NodeDelegation>(fabric, watchdog);
}

Status delegate_all_threads(Delegation& delegation, bool is_origin,
                            std::span<const os::AddressRange> managed) {
  trapping_delegation.store(&delegation, std::memory_order_release);
  std::vector<os::DescriptorCall> descriptor_calls;
  std::vector<int> calls;
  if (!is_origin) {
    for (const CallShape& shape : descriptor_call_shapes()) {
      // Standard input is the origin's too. Standard output and error are forwarded as streams;
      // what is written to them is caught to know of it.
      const bool reads = shape.number == SYS_read || shape.number == SYS_readv;
      if (reads) descriptor_calls.push_back({shape.number, STDIN_FILENO, STDIN_FILENO});
      if (writes(shape.number)) {
        descriptor_calls.push_back({shape.number, STDOUT_FILENO, STDERR_FILENO});
      }
      descriptor_calls.push_back({shape.number, STDERR_FILENO + 1, kLastProgramDescriptor});
    }
    for (const CallShape& shape : path_call_shapes()) calls.push_back(shape.number);
    // Only this signal: where the C library sends another one it may have blocked all.
    descriptor_calls.push_back({SYS_tgkill, SIGABRT, SIGABRT});
  }
  const os::TrapRules rules{managed, descriptor_calls, calls};
  return os::install_syscall_trap(rules, answer_trapped_call);
}

}  // namespace amasia::delegate
