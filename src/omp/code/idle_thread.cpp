// SPDX-License-Identifier: Apache-2.0
#include "omp/code/idle_thread.hpp"

#include <cstddef>
#include <limits>
#include <vector>

#include "omp/code/instruction.hpp"
#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

// More instructions than this are not followed. What a stack holds: private copies of arrays.
constexpr std::size_t kMostSteps = 20'000, kStackSize = 256 * 1024;
// The last one of the largest team that there can be: with fewer iterations it has none.
constexpr std::uint64_t kSize = std::numeric_limits<std::int32_t>::max(), kNumber = kSize - 1;

class Walk {
 public:
  Walk(const ProgramCode& code, CalleeOf callee_of)
      : reader_(code), callee_of_(callee_of), stack_(kStackSize), thread_(stack_) {}

  std::optional<IdleThread> run(const Byte* function, const void* data) {
    thread_.set(ZYDIS_REGISTER_RDI, reinterpret_cast<std::uintptr_t>(data));
    at_ = function;
    for (std::size_t steps = 0; !is_over_; ++steps) {
      if (steps == kMostSteps || !step()) return std::nullopt;
    }
    if (found_.iterations == 0) return std::nullopt;
    found_.reduces = found_.reduces || thread_.has_stored_elsewhere();
    return found_;
  }

 private:
  // False: that is not known, or not what an idle thread may do.
  bool step() {
    Instruction instruction;
    if (!reader_.read(at_, instruction)) return false;
    const Byte* const next = at_ + instruction.what.length;
    const auto category = instruction.what.meta.category;
    if (category == ZYDIS_CATEGORY_CALL) return call(instruction, next);
    if (category == ZYDIS_CATEGORY_UNCOND_BR) {
      const auto target = reader_.target_of(instruction, next);
      if (!target.has_value()) return false;
      at_ = target->here;
      return target->there == nullptr ||
             (call_elsewhere(target->there) && goes_on(thread_.leave_function(at_)));
    }
    return note_division(instruction) && goes_on(thread_.step(instruction, at_, at_));
  }

  // All iterations by all threads.
  bool note_division(const Instruction& instruction) {
    const bool divides = instruction.what.mnemonic == ZYDIS_MNEMONIC_DIV ||
                         instruction.what.mnemonic == ZYDIS_MNEMONIC_IDIV;
    if (!divides || thread_.value_of(instruction, at_, 0) != kSize) return true;
    const auto low = thread_.get(ZYDIS_REGISTER_RAX), high = thread_.get(ZYDIS_REGISTER_RDX);
    if (!low.has_value() || high != 0) return false;
    const std::uint64_t iterations =
        instruction.what.operand_width == 32 ? *low & 0xffff'ffff : *low;
    const bool is_first = found_.iterations == 0;
    if (!is_first && iterations != found_.iterations) return false;
    found_.iterations = iterations;
    return iterations < kSize;
  }

  bool call(const Instruction& instruction, const Byte* next) {
    const auto target = reader_.target_of(instruction, next);
    if (!target.has_value()) return false;
    if (target->there != nullptr) {
      at_ = next;
      return call_elsewhere(target->there);
    }
    at_ = target->here;
    return goes_on(thread_.push(reinterpret_cast<std::uintptr_t>(next)));
  }

  // False: no further.
  bool goes_on(SteppedThread::Outcome outcome) {
    is_over_ = outcome == SteppedThread::Outcome::kReturned;
    return is_over_ || outcome == SteppedThread::Outcome::kNext;
  }

  bool call_elsewhere(const void* function) {
    const auto to = thread_.get(ZYDIS_REGISTER_RDI), from = thread_.get(ZYDIS_REGISTER_RSI),
               size = thread_.get(ZYDIS_REGISTER_RDX);
    const Callee callee = callee_of_(function);
    thread_.forget_after_call();
    switch (callee) {
      case Callee::kThreadNumber:
        thread_.set(ZYDIS_REGISTER_RAX, kNumber);
        return true;
      case Callee::kTeamSize:
        thread_.set(ZYDIS_REGISTER_RAX, kSize);
        return true;
      case Callee::kHarmless:
        return true;
      case Callee::kIteration:
        found_.reduces = true;
        return true;
      case Callee::kFills:
      case Callee::kCopies:
        if (!to.has_value() || !from.has_value() || !size.has_value()) return false;
        if (*size > kStackSize) return false;  // not its own, and it takes long to look at
        thread_.set(ZYDIS_REGISTER_RAX, *to);
        return goes_on(callee == Callee::kFills
                           ? thread_.fill(*to, static_cast<std::byte>(*from & 0xff), *size)
                           : thread_.copy(*to, *from, *size));
      default:
        return false;
    }
  }

  const InstructionReader reader_;
  const CalleeOf callee_of_;
  std::vector<std::byte> stack_;
  SteppedThread thread_;
  const Byte* at_ = nullptr;
  bool is_over_ = false;
  IdleThread found_;
};

}  // namespace

std::optional<IdleThread> idle_thread_of(const void* function, const void* data,
                                         CalleeOf callee_of) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty()) return std::nullopt;
  return Walk(code, callee_of).run(static_cast<const Byte*>(function), data);
}

}  // namespace amasia::omp
