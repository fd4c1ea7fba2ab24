// SPDX-License-Identifier: Apache-2.0
#include "omp/code/numbered_loop.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "omp/code/instruction.hpp"

namespace amasia::omp {
namespace {

// More instructions than this are not followed.
constexpr std::size_t kMostSteps = 40'000;
// The calls lie no further from the function's begin.
constexpr std::uint32_t kMostExtent = 64 * 1024;

// What a register holds, as far as it matters: from number to unclear for the formula only.
enum class Held : std::uint8_t {
  kOther,
  kNumber,   // the thread's
  kSize,     // the team's
  kProduct,  // number * share, to which the rest is to be added
  kUnclear,  // one of these on some path
  kShare,    // iterations / size
  kMore,     // the same + 1
  kRest,     // iterations % size
};

constexpr bool is_secret(Held held) { return held >= Held::kNumber && held <= Held::kUnclear; }

// What the flags were set by, if that is of the formula.
enum class Compared : std::uint8_t { kOther, kNumberToRest, kRestToNumber };

struct State {
  std::array<Held, 16> registers{};
  Compared flags = Compared::kOther;

  bool operator==(const State&) const = default;
};

std::size_t index_of(ZydisRegister whole) { return whole - ZYDIS_REGISTER_RAX; }

Held joined(Held one, Held other) {
  if (one == other) return one;
  if (!is_secret(one) && !is_secret(other)) return Held::kOther;
  // A product that is left over is often there while iterations are executed.
  const auto is_left_over = [](Held held) { return held == Held::kProduct || !is_secret(held); };
  return is_left_over(one) && is_left_over(other) ? Held::kProduct : Held::kUnclear;
}

// Of both formulas' halves, which the paths keep apart.
enum class Half : std::uint8_t { kNone, kFirst, kSecond };  // kFirst: number < rest

struct Point {
  const Byte* at = nullptr;
  Half half = Half::kNone;

  auto operator<=>(const Point&) const = default;
};

// In the order in which the ABI passes whole numbers.
constexpr std::array kArguments = {ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDX,
                                   ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_R8,  ZYDIS_REGISTER_R9};
constexpr std::array kKeptByCalls = {ZYDIS_REGISTER_RBX, ZYDIS_REGISTER_RBP, ZYDIS_REGISTER_R12,
                                     ZYDIS_REGISTER_R13, ZYDIS_REGISTER_R14, ZYDIS_REGISTER_R15};

bool is_register(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_REGISTER;
}

// Sets a register to zero, whatever it held.
bool is_zeroing(const Instruction& instruction) {
  const bool by_itself = instruction.what.mnemonic == ZYDIS_MNEMONIC_XOR ||
                         instruction.what.mnemonic == ZYDIS_MNEMONIC_SUB;
  const auto& operands = instruction.all_operands;
  return by_itself && is_register(operands[0]) && is_register(operands[1]) &&
         operands[0].reg.value == operands[1].reg.value && operands[0].size >= 32;
}

class Proof {
 public:
  Proof(const ProgramCode& code, const Byte* function, CalleeOf callee_of)
      : function_(function), reader_(code), callee_of_(callee_of) {}

  std::optional<NumberedLoop> run() {
    go_to({function_, Half::kNone}, {});
    for (std::size_t steps = 0; !open_.empty(); ++steps) {
      if (steps == kMostSteps) return std::nullopt;
      const Point point = open_.back();
      open_.pop_back();
      if (!step(point, seen_.at(point))) return std::nullopt;
    }
    if (!has_begin_ || divisions_.empty() || branches_.size() != 1) return std::nullopt;
    return NumberedLoop{extent_};
  }

 private:
  void go_to(const Point& point, const State& state) {
    const auto [at, is_new] = seen_.try_emplace(point, state);
    if (!is_new) {
      State both = at->second;
      for (std::size_t i = 0; i < both.registers.size(); ++i) {
        both.registers[i] = joined(both.registers[i], state.registers[i]);
      }
      if (both.flags != state.flags) both.flags = Compared::kOther;
      if (both == at->second) return;
      at->second = both;
    }
    open_.push_back(point);
  }

  bool step(const Point& point, const State& state) {
    Instruction instruction;
    if (!reader_.read(point.at, instruction)) return false;
    Point next = point;
    next.at += instruction.what.length;
    switch (instruction.what.meta.category) {
      case ZYDIS_CATEGORY_RET:
        return true;
      case ZYDIS_CATEGORY_CALL:
        return call(next, instruction, state);
      case ZYDIS_CATEGORY_COND_BR:
        return branch(point, next, instruction, state);
      case ZYDIS_CATEGORY_UNCOND_BR:
        return jump(next, instruction, state);
      default:
        break;
    }
    if (instruction.what.mnemonic == ZYDIS_MNEMONIC_UD2) return true;
    State after = state;
    if (!execute(point, instruction, state, after)) return false;
    go_to(next, after);
    return true;
  }

  static Held held(const State& state, ZydisRegister reg) {
    const ZydisRegister whole = whole_register(reg);
    return whole == ZYDIS_REGISTER_NONE ? Held::kOther : state.registers[index_of(whole)];
  }
  static Held held(const State& state, const ZydisDecodedOperand& operand) {
    return is_register(operand) ? held(state, operand.reg.value) : Held::kOther;
  }

  // False: it uses a number for something else than the formula.
  bool execute(const Point& point, const Instruction& instruction, const State& before,
               State& after) {
    const auto& operands = instruction.all_operands;
    const std::size_t count = instruction.what.operand_count_visible;
    const bool into_register = count > 0 && is_register(operands[0]) && operands[0].size >= 32 &&
                               whole_register(operands[0].reg.value) != ZYDIS_REGISTER_NONE;
    set_flags(instruction, before, after);
    if (is_zeroing(instruction)) {
      put(after, operands[0], Held::kOther);
      return true;
    }
    switch (instruction.what.mnemonic) {
      case ZYDIS_MNEMONIC_MOV:
      case ZYDIS_MNEMONIC_MOVSXD:
        if (!into_register || !is_register(operands[1]) || operands[1].size < 32) break;
        put(after, operands[0], held(before, operands[1]));
        return true;
      case ZYDIS_MNEMONIC_CDQE:  // from 32 bits to 64, in place
      case ZYDIS_MNEMONIC_NOP:   // long ones have operands
        return true;
      case ZYDIS_MNEMONIC_DIV:
      case ZYDIS_MNEMONIC_IDIV:
        if (held(before, operands[0]) != Held::kSize) break;
        if (is_secret(held(before, ZYDIS_REGISTER_RAX))) return false;
        divisions_.insert(point.at);
        after.registers[index_of(ZYDIS_REGISTER_RAX)] = Held::kShare;
        after.registers[index_of(ZYDIS_REGISTER_RDX)] = Held::kRest;
        return true;
      case ZYDIS_MNEMONIC_IMUL:
        if (count == 2 && into_register && is_register(operands[1])) {
          if (const std::optional<Held> product = multiplied(point, before, operands)) {
            put(after, operands[0], *product);
            return true;
          }
        }
        break;
      case ZYDIS_MNEMONIC_INC:
        if (into_register && held(before, operands[0]) == Held::kShare) {
          put(after, operands[0], Held::kMore);
          return true;
        }
        break;
      case ZYDIS_MNEMONIC_ADD:
        if (into_register && held(before, operands[0]) == Held::kShare && is_one(operands[1])) {
          put(after, operands[0], Held::kMore);
          return true;
        }
        if (into_register &&
            are_product_and_rest(held(before, operands[0]), held(before, operands[1]))) {
          has_begin_ = true;
          put(after, operands[0], Held::kOther);
          return true;
        }
        break;
      case ZYDIS_MNEMONIC_LEA:
        if (into_register) {
          if (const std::optional<Held> sum = address(before, operands[1])) {
            put(after, operands[0], *sum);
            return true;
          }
        }
        break;
      case ZYDIS_MNEMONIC_CMP:
        if (after.flags != Compared::kOther) return true;
        break;
      default:
        break;
    }
    return uses_no_number(instruction, before) && overwrite(instruction, after);
  }

  static bool is_one(const ZydisDecodedOperand& operand) {
    return operand.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operand.imm.value.s == 1;
  }
  static bool are_product_and_rest(Held one, Held other) {
    return (one == Held::kProduct && other == Held::kRest) ||
           (one == Held::kRest && other == Held::kProduct);
  }

  std::optional<Held> multiplied(const Point& point, const State& before,
                                 const auto& operands) {
    Held one = held(before, operands[0]), other = held(before, operands[1]);
    if (other == Held::kNumber) std::swap(one, other);
    if (one != Held::kNumber) return std::nullopt;
    if (point.half == Half::kSecond && other == Held::kShare) return Held::kProduct;
    if (point.half != Half::kFirst || other != Held::kMore) return std::nullopt;
    has_begin_ = true;
    return Held::kOther;  // the rest is 0
  }

  // nullopt: as any other use.
  std::optional<Held> address(const State& before, const ZydisDecodedOperand& memory) {
    const Held base = held(before, memory.mem.base), index = held(before, memory.mem.index);
    const bool once = memory.mem.scale <= 1;
    if (once && memory.mem.disp.value == 0 && are_product_and_rest(base, index)) {
      has_begin_ = true;
      return Held::kOther;
    }
    const bool alone = memory.mem.index == ZYDIS_REGISTER_NONE;
    if (alone && base == Held::kShare && memory.mem.disp.value == 1) return Held::kMore;
    return std::nullopt;
  }

  static void put(State& state, const ZydisDecodedOperand& operand, Held what) {
    state.registers[index_of(whole_register(operand.reg.value))] = what;
  }

  static void set_flags(const Instruction& instruction, const State& before, State& after) {
    if (instruction.what.cpu_flags == nullptr) return;
    const ZydisAccessedFlags& flags = *instruction.what.cpu_flags;
    if ((flags.modified | flags.set_0 | flags.set_1 | flags.undefined) == 0) return;
    after.flags = Compared::kOther;
    if (instruction.what.mnemonic != ZYDIS_MNEMONIC_CMP) return;
    const Held one = held(before, instruction.all_operands[0]);
    const Held other = held(before, instruction.all_operands[1]);
    if (one == Held::kNumber && other == Held::kRest) after.flags = Compared::kNumberToRest;
    if (one == Held::kRest && other == Held::kNumber) after.flags = Compared::kRestToNumber;
  }

  static bool uses_no_number(const Instruction& instruction, const State& before) {
    if (before.flags != Compared::kOther && instruction.what.cpu_flags != nullptr &&
        instruction.what.cpu_flags->tested != 0) {
      return false;
    }
    return std::ranges::none_of(instruction.operands(), [&before](const auto& operand) {
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        return is_secret(held(before, operand.mem.base)) ||
               is_secret(held(before, operand.mem.index));
      }
      const bool read = (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
      return read && is_secret(held(before, operand));
    });
  }

  // A part of a register keeps what the rest of it may hold.
  static bool overwrite(const Instruction& instruction, State& after) {
    for (const ZydisDecodedOperand& operand : instruction.operands()) {
      if (!is_register(operand) || !is_written(operand)) continue;
      const ZydisRegister whole = whole_register(operand.reg.value);
      if (whole == ZYDIS_REGISTER_NONE) continue;
      Held& now = after.registers[index_of(whole)];
      const bool fully = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, operand.reg.value) >= 32;
      now = !fully && is_secret(now) ? Held::kUnclear : Held::kOther;
    }
    return true;
  }

  // Where the formula's halves part, each path knows which of them it is.
  bool branch(const Point& point, const Point& next, const Instruction& instruction,
              const State& state) {
    if (instruction.what.mnemonic == ZYDIS_MNEMONIC_XBEGIN) return false;
    Point taken = next, not_taken = next;
    if (state.flags != Compared::kOther) {
      const bool number_first = state.flags == Compared::kNumberToRest;
      switch (instruction.what.mnemonic) {
        case ZYDIS_MNEMONIC_JL:   // number < rest
        case ZYDIS_MNEMONIC_JB:
          if (!number_first) return false;
          taken.half = Half::kFirst, not_taken.half = Half::kSecond;
          break;
        case ZYDIS_MNEMONIC_JNL:  // number >= rest
        case ZYDIS_MNEMONIC_JNB:
          if (!number_first) return false;
          taken.half = Half::kSecond, not_taken.half = Half::kFirst;
          break;
        case ZYDIS_MNEMONIC_JNLE:  // rest > number
        case ZYDIS_MNEMONIC_JNBE:
          if (number_first) return false;
          taken.half = Half::kFirst, not_taken.half = Half::kSecond;
          break;
        case ZYDIS_MNEMONIC_JLE:  // rest <= number
        case ZYDIS_MNEMONIC_JBE:
          if (number_first) return false;
          taken.half = Half::kSecond, not_taken.half = Half::kFirst;
          break;
        default:
          return false;
      }
      branches_.insert(point.at);
    }
    go_to(not_taken, state);
    const auto target = reader_.target_of(instruction, next.at);
    if (!target.has_value() || target->here == nullptr) return false;
    taken.at = target->here;
    go_to(taken, state);
    return true;
  }

  bool jump(const Point& next, const Instruction& instruction, const State& state) {
    const auto target = reader_.target_of(instruction, next.at);
    if (!target.has_value()) return false;
    if (target->there == nullptr) {
      Point to = next;
      to.at = target->here;
      go_to(to, state);
      return true;
    }
    // A call whose return is this function's.
    return may_call(known(target->there), state);
  }

  // Whether a call of what is not the formula's may be there, with these registers.
  static bool may_call(Callee callee, const State& state) {
    switch (callee) {
      case Callee::kHarmless:
      case Callee::kOfReals:
      case Callee::kIteration:  // a lock's address is no number
        return true;
      case Callee::kOther:
      case Callee::kFills:
      case Callee::kCopies:
        return passes_no_number(state, kArguments.size());
      default:
        return false;
    }
  }

  static bool passes_no_number(const State& state, std::size_t arguments) {
    return std::none_of(kArguments.begin(), kArguments.begin() + static_cast<long>(arguments),
                        [&state](ZydisRegister reg) {
                          const Held what = held(state, reg);
                          return is_secret(what) && what != Held::kProduct;
                        });
  }

  bool call(const Point& next, const Instruction& instruction, const State& state) {
    const auto target = reader_.target_of(instruction, next.at);
    const bool elsewhere = target.has_value() && target->there != nullptr;
    const Callee callee = elsewhere ? known(target->there) : Callee::kOther;
    if (callee == Callee::kEnds) return true;
    State after;  // with what calls keep
    for (const ZydisRegister kept : kKeptByCalls) {
      after.registers[index_of(kept)] = state.registers[index_of(kept)];
    }
    Held& answer = after.registers[index_of(ZYDIS_REGISTER_RAX)];
    if (callee == Callee::kThreadNumber || callee == Callee::kTeamSize) {
      if (next.at <= function_ || next.at - function_ > kMostExtent) return false;
      extent_ = std::max(extent_, static_cast<std::uint32_t>(next.at - function_));
      answer = callee == Callee::kThreadNumber ? Held::kNumber : Held::kSize;
    } else if (callee == Callee::kOther && target.has_value() && target->here != nullptr) {
      if (!passes_no_number(state, arguments_of(target->here))) return false;
    } else if (!may_call(callee, state)) {
      return false;
    }
    go_to(next, after);
    return true;
  }

  // How many arguments, at most, a function of the program has: none after the last of these
  // registers that it may read before it writes it. What is left over from the formula is often in
  // a later one.
  std::size_t arguments_of(const Byte* function) {
    const auto [at, is_new] = arguments_.try_emplace(function, kArguments.size());
    if (is_new) at->second = find_arguments(function);
    return at->second;
  }

  std::size_t find_arguments(const Byte* function) const {
    constexpr std::size_t kMost = 500;
    using Written = std::uint8_t;  // a bit for each of kArguments
    std::size_t arguments = 0;
    std::map<const Byte*, Written> seen;
    std::vector<std::pair<const Byte*, Written>> open = {{function, 0}};
    const auto go_on = [&](const Byte* where, Written written) {
      const auto [at, is_new] = seen.try_emplace(where, written);
      const auto both = static_cast<Written>(at->second & written);
      if (!is_new && both == at->second) return;
      at->second = both;
      open.emplace_back(where, both);
    };
    for (std::size_t steps = 0; !open.empty(); ++steps) {
      auto [where, written] = open.back();
      open.pop_back();
      Instruction instruction;
      if (steps == kMost || !reader_.read(where, instruction)) return kArguments.size();
      const Byte* const next = where + instruction.what.length;
      const auto category = instruction.what.meta.category;
      if (category == ZYDIS_CATEGORY_RET) continue;
      // What it calls may pass them on.
      if (category == ZYDIS_CATEGORY_CALL) {
        for (std::size_t i = 0; i < kArguments.size(); ++i) {
          if ((written >> i & 1) == 0) arguments = std::max(arguments, i + 1);
        }
        continue;
      }
      for (std::size_t i = 0; i < kArguments.size(); ++i) {
        const auto bit = static_cast<Written>(1u << i);
        if ((written & bit) == 0 && reads(instruction, kArguments[i])) {
          arguments = std::max(arguments, i + 1);
        }
        if (writes(instruction, kArguments[i])) written |= bit;
      }
      if (category == ZYDIS_CATEGORY_COND_BR || category == ZYDIS_CATEGORY_UNCOND_BR) {
        const auto target = reader_.target_of(instruction, next);
        if (!target.has_value() || target->here == nullptr) return kArguments.size();
        go_on(target->here, written);
        if (category == ZYDIS_CATEGORY_UNCOND_BR) continue;
      }
      go_on(next, written);
    }
    return arguments;
  }

  static bool reads(const Instruction& instruction, ZydisRegister reg) {
    if (is_zeroing(instruction)) return false;
    return std::ranges::any_of(instruction.operands(), [reg](const auto& operand) {
      if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
        return whole_register(operand.mem.base) == reg || whole_register(operand.mem.index) == reg;
      }
      return is_register(operand) && whole_register(operand.reg.value) == reg &&
             (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0;
    });
  }
  static bool writes(const Instruction& instruction, ZydisRegister reg) {
    return std::ranges::any_of(instruction.operands(), [reg](const auto& operand) {
      return is_register(operand) && whole_register(operand.reg.value) == reg &&
             is_written(operand) && operand.size >= 32;
    });
  }

  Callee known(const void* function) {
    const auto [at, is_new] = callees_.try_emplace(function, Callee::kOther);
    if (is_new) at->second = callee_of_(function);
    return at->second;
  }

  const Byte* const function_;
  const InstructionReader reader_;
  const CalleeOf callee_of_;
  std::map<const void*, Callee> callees_;
  std::map<const Byte*, std::size_t> arguments_;
  std::map<Point, State> seen_;
  std::vector<Point> open_;
  std::set<const Byte*> divisions_, branches_;
  bool has_begin_ = false;
  std::uint32_t extent_ = 0;
};

}  // namespace

std::optional<NumberedLoop> numbered_loop_of(const void* function, CalleeOf callee_of) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty()) return std::nullopt;
  return Proof(code, static_cast<const Byte*>(function), callee_of).run();
}

}  // namespace amasia::omp
