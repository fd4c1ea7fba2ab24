// SPDX-License-Identifier: Apache-2.0
#include "omp/code/reentry.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <vector>

#include "omp/code/instruction.hpp"

namespace amasia::omp {
namespace {

// More instructions than this are not followed.
constexpr std::size_t kMostSteps = 20'000;

// Which registers hold an address in the function's own stack, for certain; RAX is bit 0.
using Registers = std::uint16_t;

constexpr Registers bit_of(ZydisRegister whole) {
  return static_cast<Registers>(1u << (whole - ZYDIS_REGISTER_RAX));
}
constexpr Registers kStackPointer = bit_of(ZYDIS_REGISTER_RSP);
constexpr Registers kKeptByCalls =
    kStackPointer | bit_of(ZYDIS_REGISTER_RBX) | bit_of(ZYDIS_REGISTER_RBP) |
    bit_of(ZYDIS_REGISTER_R12) | bit_of(ZYDIS_REGISTER_R13) | bit_of(ZYDIS_REGISTER_R14) |
    bit_of(ZYDIS_REGISTER_R15);

enum class Phase : std::uint8_t {
  kBefore,      // the bounds have not been asked for
  kIterations,  // until the loop's end
  kAfter,
  kReducing,  // the thread may have to add to what is shared: only one entry does
  kReduced,
};

// Where a path has come to. `after_call`: in a function that the region's has called, where that
// goes on, and what its registers hold then.
struct Point {
  const Byte* at = nullptr;
  Phase phase = Phase::kBefore;
  const Byte* after_call = nullptr;
  Registers kept = 0;

  auto operator<=>(const Point&) const = default;
};

bool writes_memory(const ZydisDecodedOperand& operand) {
  return is_access_to_memory(operand) && is_written(operand);
}

// All that may follow when a function begins with one point.
class Proof {
 public:
  Proof(const ProgramCode& code, CalleeOf callee_of)
      : reader_(code), callee_of_(callee_of) {}

  Reentry run(const Byte* function) {
    go_to({function, Phase::kBefore}, kStackPointer);
    for (std::size_t steps = 0; !open_.empty(); ++steps) {
      if (steps == kMostSteps) return Reentry::kNever;
      const Point point = open_.back();
      open_.pop_back();
      if (!step(point, seen_.at(point))) return Reentry::kNever;
    }
    if (!asks_for_bounds_) return Reentry::kNever;
    if (!reduces_) return Reentry::kPlain;
    return is_reduced_ && !ends_without_reducing_ ? Reentry::kReduces : Reentry::kNever;
  }

 private:
  static bool is_pure(Phase phase) {
    return phase == Phase::kBefore || phase == Phase::kAfter || phase == Phase::kReduced;
  }

  // What is held on one path only is not held for certain.
  void go_to(const Point& point, Registers held) {
    const auto [at, is_new] = seen_.try_emplace(point, held);
    const Registers both = at->second & held;
    if (!is_new && both == at->second) return;
    at->second = both;
    open_.push_back(point);
  }

  bool step(const Point& point, Registers held) {
    Instruction instruction;
    if (!reader_.read(point.at, instruction)) return false;
    if (is_pure(point.phase) && !changes_own_stack_only(instruction, held)) return false;
    Point next = point;
    next.at += instruction.what.length;
    switch (instruction.what.meta.category) {
      case ZYDIS_CATEGORY_RET:
        return leave(point);
      case ZYDIS_CATEGORY_CALL:
        return call(next, instruction, held);
      case ZYDIS_CATEGORY_COND_BR:
        if (instruction.what.mnemonic == ZYDIS_MNEMONIC_XBEGIN) return false;
        go_to(next, held);
        return jump(next, instruction, held);
      case ZYDIS_CATEGORY_UNCOND_BR:
        return jump(next, instruction, held);
      default:
        if (instruction.what.mnemonic == ZYDIS_MNEMONIC_UD2) return true;
        go_to(next, held_after(instruction, held));
        return true;
    }
  }

  bool changes_own_stack_only(const Instruction& instruction, Registers held) const {
    switch (instruction.what.meta.category) {
      case ZYDIS_CATEGORY_SYSCALL:
      case ZYDIS_CATEGORY_SYSTEM:
      case ZYDIS_CATEGORY_INTERRUPT:
      case ZYDIS_CATEGORY_IO:
      case ZYDIS_CATEGORY_IOSTRINGOP:
      case ZYDIS_CATEGORY_RDWRFSGS:
        return false;
      default:
        break;
    }
    for (const ZydisDecodedOperand& operand : instruction.operands()) {
      if (!writes_memory(operand)) continue;
      const bool own = operand.mem.type == ZYDIS_MEMOP_TYPE_MEM && is_held(operand.mem.base, held);
      const bool of_thread = operand.mem.segment == ZYDIS_REGISTER_FS ||
                             operand.mem.segment == ZYDIS_REGISTER_GS;
      if (!own || of_thread) return false;
    }
    return true;
  }

  static bool is_held(ZydisRegister reg, Registers held) {
    return is_whole_register(reg) && (held & bit_of(reg)) != 0;
  }

  static Registers held_after(const Instruction& instruction, Registers held) {
    Registers after = held;
    for (const ZydisDecodedOperand& operand : instruction.operands()) {
      if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_written(operand)) continue;
      const ZydisRegister whole = whole_register(operand.reg.value);
      if (whole == ZYDIS_REGISTER_NONE || whole == ZYDIS_REGISTER_RSP) continue;
      const bool is_first = &operand == instruction.all_operands.data();
      const bool still =
          is_first && operand.reg.value == whole && result_is_held(instruction, held);
      after = static_cast<Registers>(still ? after | bit_of(whole) : after & ~bit_of(whole));
    }
    return after;
  }

  // Of the first operand, a whole register.
  static bool result_is_held(const Instruction& instruction, Registers held) {
    const ZydisDecodedOperand& to = instruction.all_operands[0];
    const ZydisDecodedOperand& from = instruction.all_operands[1];
    switch (instruction.what.mnemonic) {
      case ZYDIS_MNEMONIC_MOV:
        return from.type == ZYDIS_OPERAND_TYPE_REGISTER && is_held(from.reg.value, held);
      case ZYDIS_MNEMONIC_LEA:
        return is_held(from.mem.base, held);
      case ZYDIS_MNEMONIC_ADD:
      case ZYDIS_MNEMONIC_SUB:
      case ZYDIS_MNEMONIC_AND:
        return is_held(to.reg.value, held);
      default:
        return false;
    }
  }

  bool leave(const Point& point) {
    if (point.phase == Phase::kIterations) return false;
    if (point.after_call == nullptr) {
      if (point.phase == Phase::kAfter) ends_without_reducing_ = true;
      return true;
    }
    go_to({point.after_call, point.phase}, point.kept);
    return true;
  }

  bool jump(const Point& next, const Instruction& instruction, Registers held) {
    const auto target = reader_.target_of(instruction, next.at);
    if (!target.has_value()) return false;
    if (target->there != nullptr) return false;  // a call whose return is this function's
    Point to = next;
    to.at = target->here;
    go_to(to, held);
    return true;
  }

  bool call(Point next, const Instruction& instruction, Registers held) {
    const auto target = reader_.target_of(instruction, next.at);
    const Callee callee = target.has_value() && target->there != nullptr
                              ? known(target->there)
                              : Callee::kOther;
    const bool pure = is_pure(next.phase);
    switch (callee) {
      case Callee::kOther:
      case Callee::kOfReals:
        if (!pure) break;
        return target.has_value() && target->here != nullptr && enter(next, target->here, held);
      case Callee::kHarmless:
        break;
      case Callee::kFills:
      case Callee::kCopies:
        if (pure && !is_held(ZYDIS_REGISTER_RDI, held)) return false;
        break;
      case Callee::kBounds:
        if (next.phase != Phase::kBefore) return false;
        asks_for_bounds_ = true;
        next.phase = Phase::kIterations;
        break;
      case Callee::kLoopEnd:
        if (next.phase != Phase::kIterations) return false;
        next.phase = Phase::kAfter;
        break;
      case Callee::kReduces:
        if (next.phase != Phase::kAfter) return false;
        reduces_ = true;
        next.phase = Phase::kReducing;
        break;
      case Callee::kReduced:
        if (next.phase != Phase::kReducing) return false;
        is_reduced_ = true;
        next.phase = Phase::kReduced;
        break;
      case Callee::kIteration:
        if (next.phase != Phase::kIterations) return false;
        break;
      case Callee::kThreadNumber:
      case Callee::kTeamSize:
      case Callee::kConstruct:
        return false;
      case Callee::kEnds:
        return true;
    }
    go_to(next, held & kKeptByCalls);
    return true;
  }

  // Who is asked looks through whole tables of symbols.
  Callee known(const void* function) {
    const auto [at, is_new] = callees_.try_emplace(function, Callee::kOther);
    if (is_new) at->second = callee_of_(function);
    return at->second;
  }

  // With debug information the outlined function only calls another one.
  bool enter(const Point& next, const Byte* function, Registers held) {
    if (next.after_call != nullptr) return false;  // deep enough
    go_to({function, next.phase, next.at, static_cast<Registers>(held & kKeptByCalls)}, held);
    return true;
  }

  const InstructionReader reader_;
  const CalleeOf callee_of_;
  std::map<const void*, Callee> callees_;
  std::map<Point, Registers> seen_;
  std::vector<Point> open_;
  bool asks_for_bounds_ = false;
  bool reduces_ = false;
  bool is_reduced_ = false;  // what follows the reduction has been looked at
  bool ends_without_reducing_ = false;
};

}  // namespace

Reentry reentry_of(const void* function, CalleeOf callee_of) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty()) return Reentry::kNever;
  return Proof(code, callee_of).run(static_cast<const Byte*>(function));
}

}  // namespace amasia::omp
