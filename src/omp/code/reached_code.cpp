// SPDX-License-Identifier: Apache-2.0
#include "omp/code/reached_code.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <vector>

#include "omp/code/instruction.hpp"
#include "omp/code/spin_loop.hpp"

namespace amasia::omp {
namespace {

// More instructions than this are not followed.
constexpr std::size_t kMostSteps = 40'000;
// Nor so many after one that may do anything, where threads are still seen to wait.
constexpr std::size_t kMostInDoubt = 1000;

// Of the thread's control block, what compilers check the stack with.
constexpr std::int64_t kStackGuard = 0x28;

class Walk {
 public:
  Walk(const ProgramCode& code, std::uint32_t extent, CalleeOf callee_of)
      : code_(code), reader_(code), extent_(extent), callee_of_(callee_of) {}

  ReachedCode run(const Byte* function) {
    function_ = function;
    found_ = {.uses_thread_locals = false, .asks_for_numbers = false};
    std::size_t most = kMostSteps;
    for (go_to(function); !open_.empty();) {
      const Byte* const at = open_.back();
      open_.pop_back();
      step(at);
      if (seen_.size() > most) may_do_anything();
      if (!is_lost()) continue;
      if (found_.waits || seen_.size() > most) break;
      most = std::min(most, seen_.size() + kMostInDoubt);
    }
    return found_;
  }

 private:
  bool is_lost() const { return found_.uses_thread_locals && found_.asks_for_numbers; }
  void may_do_anything() { found_.uses_thread_locals = found_.asks_for_numbers = true; }

  void go_to(const Byte* at) {
    if (seen_.insert(at).second) open_.push_back(at);
  }

  void step(const Byte* at) {
    Instruction instruction;
    if (!reader_.read(at, instruction)) return may_do_anything();
    const Byte* const next = at + instruction.what.length;
    for (const ZydisDecodedOperand& operand : instruction.operands()) {
      if (is_of_thread(operand)) found_.uses_thread_locals = true;
    }
    switch (instruction.what.meta.category) {
      case ZYDIS_CATEGORY_RET:
        return;
      case ZYDIS_CATEGORY_CALL:
        return lead(instruction, next, next);
      case ZYDIS_CATEGORY_UNCOND_BR:
        note_loop(at);
        return lead(instruction, next, nullptr);
      case ZYDIS_CATEGORY_COND_BR:
        note_loop(at);
        go_to(next);
        return lead(instruction, next, nullptr);
      case ZYDIS_CATEGORY_RDWRFSGS:
      case ZYDIS_CATEGORY_SYSCALL:
      case ZYDIS_CATEGORY_SYSTEM:
        found_.uses_thread_locals = true;
        break;
      default:
        break;
    }
    if (instruction.what.mnemonic == ZYDIS_MNEMONIC_UD2) return;
    if (instruction.what.mnemonic == ZYDIS_MNEMONIC_PAUSE) found_.waits = true;
    for (const ZydisDecodedOperand& operand : instruction.visible_operands()) {
      follow_address(operand, next);
    }
    go_to(next);
  }

  static bool is_of_thread(const ZydisDecodedOperand& operand) {
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
      return operand.reg.value == ZYDIS_REGISTER_FS || operand.reg.value == ZYDIS_REGISTER_GS;
    }
    if (!is_access_to_memory(operand)) return false;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) return true;
    const bool is_guard = operand.mem.base == ZYDIS_REGISTER_NONE &&
                          operand.mem.index == ZYDIS_REGISTER_NONE &&
                          operand.mem.disp.value == kStackGuard;
    return operand.mem.segment == ZYDIS_REGISTER_FS && !is_guard;
  }

  void note_loop(const Byte* branch) {
    if (!found_.waits) found_.waits = spin_loop_at(branch, code_).has_value();
  }

  // A call, which goes on at `after`, or a jump.
  void lead(const Instruction& instruction, const Byte* next, const Byte* after) {
    const auto target = reader_.target_of(instruction, next);
    if (!target.has_value()) {
      may_do_anything();
    } else if (target->here != nullptr) {
      go_to(target->here);
    } else {
      const Callee callee = callee_of_(target->there);
      if (callee == Callee::kOther) may_do_anything();
      if (callee == Callee::kEnds) return;
      note_call(callee, next);
    }
    if (after != nullptr) go_to(after);
  }

  // Of the OpenMP runtime; constructs in functions that are called are divided by these numbers.
  void note_call(Callee callee, const Byte* next) {
    const bool may_ask = callee == Callee::kThreadNumber || callee == Callee::kTeamSize ||
                         callee == Callee::kConstruct;
    const bool is_loops = callee != Callee::kConstruct && next > function_ &&
                          next - function_ <= static_cast<std::ptrdiff_t>(extent_);
    if (may_ask && !is_loops) found_.asks_for_numbers = true;
  }

  // Functions whose address is taken may be called by whom it is given to. What compilers make of a
  // construct is the object's own, whose address needs no table.
  void follow_address(const ZydisDecodedOperand& operand, const Byte* next) {
    if (operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE) {
      follow(reinterpret_cast<const Byte*>(operand.imm.value.u));
    } else if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
               operand.mem.type == ZYDIS_MEMOP_TYPE_AGEN &&
               operand.mem.base == ZYDIS_REGISTER_RIP) {
      follow(next + operand.mem.disp.value);
    }
  }
  void follow(const Byte* address) {
    if (code_.holds(address)) go_to(address);
  }

  const ProgramCode& code_;
  const InstructionReader reader_;
  const std::uint32_t extent_;
  const CalleeOf callee_of_;
  const Byte* function_ = nullptr;
  ReachedCode found_;
  std::set<const Byte*> seen_;
  std::vector<const Byte*> open_;
};

}  // namespace

ReachedCode reached_code_of(const void* function, std::uint32_t extent, CalleeOf callee_of) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty()) return {};
  return Walk(code, extent, callee_of).run(static_cast<const Byte*>(function));
}

}  // namespace amasia::omp
