// SPDX-License-Identifier: Apache-2.0
#include "omp/code/stepped_thread.hpp"

#include <algorithm>

namespace amasia::omp {
namespace {

// Below it the thread must not push: room for what lies under a stack pointer, and for callees.
constexpr std::size_t kLowestStack = 4096;
// Above the first return address, as in all stacks.
constexpr std::size_t kAboveEntry = 64;

// An instruction of the newest encoding as one of the one before: without the mask that all may
// have. nullopt: its mask, a broadcast or a rounding has a meaning.
std::optional<Instruction> without_options(const Instruction& instruction) {
  const ZydisDecodedInstructionAvx& options = instruction.what.avx;
  const bool is_masked =
      options.mask.reg != ZYDIS_REGISTER_NONE && options.mask.reg != ZYDIS_REGISTER_K0;
  const bool is_repeated =
      options.broadcast.mode != ZYDIS_BROADCAST_MODE_INVALID && !options.broadcast.is_static;
  if (is_masked || is_repeated || options.has_sae ||
      options.rounding.mode != ZYDIS_ROUNDING_MODE_INVALID) {
    return std::nullopt;
  }
  Instruction plain = instruction;
  const auto is_mask = [](const ZydisDecodedOperand& operand) {
    return operand.encoding == ZYDIS_OPERAND_ENCODING_MASK;
  };
  const auto end = plain.all_operands.begin() + plain.what.operand_count_visible;
  const auto masks = end - std::remove_if(plain.all_operands.begin(), end, is_mask);
  plain.what.operand_count_visible -= static_cast<ZyanU8>(masks);
  plain.what.operand_count = plain.what.operand_count_visible;
  return plain;
}

}  // namespace

SteppedThread::SteppedThread(std::span<std::byte> stack)
    : stack_(stack), known_on_stack_(stack.size()), lowest_known_(stack.size()) {
  const auto high = reinterpret_cast<std::uintptr_t>(stack.data() + stack.size());
  set(ZYDIS_REGISTER_RSP, (high - kAboveEntry) & ~std::uint64_t{15});
  push(kReturn);
}

std::optional<std::uint64_t> SteppedThread::get(ZydisRegister whole) const {
  const Value value = general(whole);
  return is_known(value, 64) ? std::optional(value.bits) : std::nullopt;
}

void SteppedThread::set(ZydisRegister whole, std::uint64_t value) {
  set_general(whole, known(value));
}

SteppedThread::Outcome SteppedThread::step(const Instruction& instruction, const Byte* at,
                                           const Byte*& next) {
  next = at + instruction.what.length;
  std::optional<Outcome> outcome;
  if (instruction.what.encoding != ZYDIS_INSTRUCTION_ENCODING_EVEX) {
    outcome = step(Here{instruction, next}, next);
  } else if (const auto plain = without_options(instruction); plain.has_value()) {
    outcome = step(Here{*plain, next}, next);
  }
  if (outcome == Outcome::kNext && !keeps_to_stack()) return Outcome::kUnknown;
  return outcome.value_or(Outcome::kUnknown);
}

std::optional<SteppedThread::Outcome> SteppedThread::step(const Here& here, const Byte*& next) {
  std::optional<Outcome> outcome = flow(here, next);
  if (!outcome.has_value()) outcome = move(here);
  if (!outcome.has_value()) outcome = calculate(here);
  if (!outcome.has_value()) outcome = move_vector(here);
  if (!outcome.has_value()) outcome = shuffle_vector(here);
  if (!outcome.has_value()) outcome = calculate_integers(here);
  if (!outcome.has_value()) outcome = calculate_floats(here);
  if (!outcome.has_value()) outcome = convert(here);
  if (!outcome.has_value()) outcome = calculate_fused(here);
  return outcome;
}

std::optional<std::uint64_t> SteppedThread::value_of(const Instruction& instruction, const Byte* at,
                                                     std::size_t operand) const {
  const Here here{instruction, at + instruction.what.length};
  const auto value = read(here, operand);
  if (!value.has_value() || !is_known(*value, here.width(operand))) return std::nullopt;
  return value->bits & mask_of(here.width(operand));
}

SteppedThread::Outcome SteppedThread::push(std::uint64_t value) { return push_value(known(value)); }

SteppedThread::Outcome SteppedThread::leave_function(const Byte*& next) {
  const auto to = pop_value();
  if (!to.has_value() || !is_known(*to, 64)) return Outcome::kUnknown;
  if (to->bits == kReturn) return Outcome::kReturned;
  next = reinterpret_cast<const Byte*>(to->bits);
  return Outcome::kNext;
}

void SteppedThread::forget_after_call() {
  for (const ZydisRegister reg : {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RCX, ZYDIS_REGISTER_RDX,
                                  ZYDIS_REGISTER_RSI, ZYDIS_REGISTER_RDI, ZYDIS_REGISTER_R8,
                                  ZYDIS_REGISTER_R9, ZYDIS_REGISTER_R10, ZYDIS_REGISTER_R11}) {
    set_general(reg, Value{});
  }
  vectors_.fill(Wide{});
  known_flags_ = 0;
  const std::uint64_t top = general(ZYDIS_REGISTER_RSP).bits;
  const std::size_t place = is_own(top, 0) ? place_of(top) : stack_.size();
  if (place <= lowest_known_) return;
  std::fill(known_on_stack_.begin() + static_cast<std::ptrdiff_t>(lowest_known_),
            known_on_stack_.begin() + static_cast<std::ptrdiff_t>(place), std::byte{});
  lowest_known_ = place;
}

SteppedThread::Outcome SteppedThread::fill(std::uint64_t to, std::byte value, std::uint64_t size) {
  Wide pattern;
  std::memset(&pattern.bits, static_cast<int>(value), sizeof pattern.bits);
  pattern.known.fill(~std::uint64_t{0});
  for (std::uint64_t done = 0; done < size;) {
    const auto part = std::min<std::uint64_t>(size - done, sizeof pattern.bits);
    const Outcome outcome = store(to + done, pattern, part);
    if (outcome != Outcome::kNext) return outcome;
    done += part;
  }
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::copy(std::uint64_t to, std::uint64_t from,
                                           std::uint64_t size) {
  // Where the two overlap, what is yet to be read must not be written first.
  const bool backwards = to > from && to - from < size;
  for (std::uint64_t done = 0; done < size;) {
    const auto part = std::min<std::uint64_t>(size - done, sizeof(Wide::bits));
    const std::uint64_t offset = backwards ? size - done - part : done;
    const auto value = load(from + offset, part);
    if (!value.has_value()) return Outcome::kUnknown;
    const Outcome outcome = store(to + offset, *value, part);
    if (outcome != Outcome::kNext) return outcome;
    done += part;
  }
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::push_value(const Value& value) {
  Value top = general(ZYDIS_REGISTER_RSP);
  top.bits -= 8;
  set_general(ZYDIS_REGISTER_RSP, top);
  if (!keeps_to_stack()) return Outcome::kUnknown;
  return store(top.bits, Wide{{value.bits}, {value.known}}, 8);
}

std::optional<SteppedThread::Value> SteppedThread::pop_value() {
  if (!keeps_to_stack()) return std::nullopt;
  Value top = general(ZYDIS_REGISTER_RSP);
  const auto value = load(top.bits, 8);
  if (!value.has_value()) return std::nullopt;
  top.bits += 8;
  set_general(ZYDIS_REGISTER_RSP, top);
  return Value{value->bits[0], value->known[0]};
}

bool SteppedThread::keeps_to_stack() const {
  const Value top = general(ZYDIS_REGISTER_RSP);
  const std::uint64_t place = place_of(top.bits);
  return is_known(top, 64) && place >= kLowestStack && place <= stack_.size();
}

std::optional<SteppedThread::Outcome> SteppedThread::flow(const Here& here, const Byte*& next) {
  const ZydisDecodedInstruction& what = here.instruction.what;
  switch (what.meta.category) {
    case ZYDIS_CATEGORY_RET:
      if (what.mnemonic != ZYDIS_MNEMONIC_RET || here.count() != 0) return Outcome::kUnknown;
      return leave_function(next);
    case ZYDIS_CATEGORY_COND_BR: {
      const bool is_short =
          what.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (what.opcode & 0xf0) == 0x70;
      const bool is_near = what.opcode_map == ZYDIS_OPCODE_MAP_0F && (what.opcode & 0xf0) == 0x80;
      if (!is_short && !is_near) return Outcome::kUnknown;
      const auto jumps = condition(here);
      if (!jumps.has_value()) return Outcome::kUnknown;
      if (*jumps) next = here.end + here.operand(0).imm.value.s;
      return Outcome::kNext;
    }
    case ZYDIS_CATEGORY_UNCOND_BR:
      if (what.mnemonic != ZYDIS_MNEMONIC_JMP ||
          here.operand(0).type != ZYDIS_OPERAND_TYPE_IMMEDIATE) {
        return Outcome::kUnknown;
      }
      next = here.end + here.operand(0).imm.value.s;
      return Outcome::kNext;
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_PREFETCH:
      return Outcome::kNext;
    default:
      break;
  }
  switch (what.mnemonic) {
    case ZYDIS_MNEMONIC_ENDBR64:
    case ZYDIS_MNEMONIC_PAUSE:
    case ZYDIS_MNEMONIC_LFENCE:
    case ZYDIS_MNEMONIC_MFENCE:
    case ZYDIS_MNEMONIC_SFENCE:
      return Outcome::kNext;
    default:
      return std::nullopt;
  }
}

}  // namespace amasia::omp
