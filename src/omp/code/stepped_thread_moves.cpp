// SPDX-License-Identifier: Apache-2.0
// Moves of integers.
#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

// A repeated move of more than this isn't carried out.
constexpr std::uint64_t kMostRepeated = std::uint64_t{1} << 20;

}  // namespace

std::optional<SteppedThread::Outcome> SteppedThread::move(const Here& here) {
  if (here.instruction.what.meta.category == ZYDIS_CATEGORY_STRINGOP) return move_string(here);
  if (here.instruction.what.meta.category == ZYDIS_CATEGORY_CMOV) {
    const auto moves = condition(here);
    const auto value = read(here, moves.value_or(false) ? 1 : 0);
    if (!moves.has_value() || !value.has_value()) return Outcome::kUnknown;
    return write(here, 0, *value);
  }
  if (here.instruction.what.meta.category == ZYDIS_CATEGORY_SETCC) {
    const auto is_met = condition(here);
    return is_met.has_value() ? write(here, 0, known(*is_met ? 1 : 0)) : Outcome::kUnknown;
  }
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_MOV: {
      const auto value = read(here, 1);
      return value.has_value() ? write(here, 0, *value) : Outcome::kUnknown;
    }
    case ZYDIS_MNEMONIC_MOVSX:
    case ZYDIS_MNEMONIC_MOVSXD:
      return extend(here, true);
    case ZYDIS_MNEMONIC_MOVZX:
      return extend(here, false);
    case ZYDIS_MNEMONIC_CBW:
    case ZYDIS_MNEMONIC_CWDE:
    case ZYDIS_MNEMONIC_CDQE:
    case ZYDIS_MNEMONIC_CWD:
    case ZYDIS_MNEMONIC_CDQ:
    case ZYDIS_MNEMONIC_CQO:
      return extend_accumulator(here);
    case ZYDIS_MNEMONIC_LEA:
      return write(here, 0, sum_of_address(here, here.operand(1)));
    case ZYDIS_MNEMONIC_PUSH: {
      const auto value = read(here, 0);
      const bool is_whole = here.instruction.what.operand_width == 64;
      return value.has_value() && is_whole ? push_value(*value) : Outcome::kUnknown;
    }
    case ZYDIS_MNEMONIC_POP:
      return pop(here);
    case ZYDIS_MNEMONIC_LEAVE:
      return leave();
    case ZYDIS_MNEMONIC_XCHG:
      return exchange(here);
    case ZYDIS_MNEMONIC_XADD:
      return exchange_and_add(here);
    case ZYDIS_MNEMONIC_CMPXCHG:
      return compare_and_exchange(here);
    default:
      return std::nullopt;
  }
}

SteppedThread::Outcome SteppedThread::extend(const Here& here, bool is_signed) {
  auto value = read(here, 1);
  if (!value.has_value()) return Outcome::kUnknown;
  const unsigned width = here.width(1);
  const std::uint64_t above = ~mask_of(width);
  const auto sign_of = [width](std::uint64_t bits) { return ((bits >> (width - 1)) & 1) != 0; };
  const bool ones = is_signed && sign_of(value->bits);
  const bool knows = !is_signed || sign_of(value->known);
  value->bits = ones ? value->bits | above : value->bits & ~above;
  value->known = knows ? value->known | above : value->known & ~above;
  return write(here, 0, *value);
}

SteppedThread::Outcome SteppedThread::extend_accumulator(const Here& here) {
  struct Parts {
    ZydisRegister from;
    ZydisRegister to;
    bool only_sign;
  };
  const Parts parts = [&here]() -> Parts {
    switch (here.mnemonic()) {
      case ZYDIS_MNEMONIC_CBW:
        return {ZYDIS_REGISTER_AL, ZYDIS_REGISTER_AX, false};
      case ZYDIS_MNEMONIC_CWDE:
        return {ZYDIS_REGISTER_AX, ZYDIS_REGISTER_EAX, false};
      case ZYDIS_MNEMONIC_CDQE:
        return {ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_RAX, false};
      case ZYDIS_MNEMONIC_CWD:
        return {ZYDIS_REGISTER_AX, ZYDIS_REGISTER_DX, true};
      case ZYDIS_MNEMONIC_CDQ:
        return {ZYDIS_REGISTER_EAX, ZYDIS_REGISTER_EDX, true};
      default:
        return {ZYDIS_REGISTER_RAX, ZYDIS_REGISTER_RDX, true};
    }
  }();
  const Value from = general(parts.from);
  const unsigned width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, parts.from);
  if (!is_known(from, width)) {
    set_general(parts.to, Value{});
    return Outcome::kNext;
  }
  const bool is_negative = ((from.bits >> (width - 1)) & 1) != 0;
  const std::uint64_t above = is_negative ? ~mask_of(width) : 0;
  const std::uint64_t sign = is_negative ? ~std::uint64_t{0} : 0;
  set_general(parts.to, known(parts.only_sign ? sign : (from.bits & mask_of(width)) | above));
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::pop(const Here& here) {
  // An address by the stack pointer would be that after the instruction.
  if (!here.is_register(0) || here.width(0) != 64) return Outcome::kUnknown;
  const auto value = pop_value();
  return value.has_value() ? write(here, 0, *value) : Outcome::kUnknown;
}

SteppedThread::Outcome SteppedThread::leave() {
  set_general(ZYDIS_REGISTER_RSP, general(ZYDIS_REGISTER_RBP));
  const auto value = pop_value();
  if (!value.has_value()) return Outcome::kUnknown;
  set_general(ZYDIS_REGISTER_RBP, *value);
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::move_string(const Here& here) {
  std::size_t size = 0;
  bool fills = false;
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_STOSB:
    case ZYDIS_MNEMONIC_STOSW:
    case ZYDIS_MNEMONIC_STOSD:
    case ZYDIS_MNEMONIC_STOSQ:
      fills = true;
      break;
    case ZYDIS_MNEMONIC_MOVSB:
    case ZYDIS_MNEMONIC_MOVSW:
    case ZYDIS_MNEMONIC_MOVSD:
    case ZYDIS_MNEMONIC_MOVSQ:
      break;
    default:
      return Outcome::kUnknown;
  }
  if (here.instruction.what.address_width != 64) return Outcome::kUnknown;
  size = here.bytes(0);
  const bool repeats = (here.instruction.what.attributes & ZYDIS_ATTRIB_HAS_REP) != 0;
  const auto count = repeats ? get(ZYDIS_REGISTER_RCX) : 1;
  const auto to = get(ZYDIS_REGISTER_RDI);
  const auto from = fills ? std::optional<std::uint64_t>(0) : get(ZYDIS_REGISTER_RSI);
  if (!count || !to || !from || *count > kMostRepeated / size) return Outcome::kUnknown;
  const Value filling = general(ZYDIS_REGISTER_RAX);
  for (std::uint64_t offset = 0; offset < *count * size; offset += size) {
    const auto value = fills ? Wide{{filling.bits}, {filling.known}} : load(*from + offset, size);
    if (!value.has_value()) return Outcome::kUnknown;
    const Outcome outcome = store(*to + offset, *value, size);
    if (outcome != Outcome::kNext) return outcome;
  }
  set(ZYDIS_REGISTER_RDI, *to + *count * size);
  if (!fills) set(ZYDIS_REGISTER_RSI, *from + *count * size);
  if (repeats) set(ZYDIS_REGISTER_RCX, 0);
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::exchange(const Here& here) {
  const auto one = read(here, 0);
  const auto other = read(here, 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  // Memory can only be the first, so that its address is used before its registers change.
  const Outcome outcome = write(here, 0, *other);
  return outcome == Outcome::kNext ? write(here, 1, *one) : outcome;
}

SteppedThread::Outcome SteppedThread::exchange_and_add(const Here& here) {
  const auto before = read(here, 0);
  const Outcome outcome = sum(here, false);
  if (outcome != Outcome::kNext || here.is_same_register(0, 1)) return outcome;
  return write(here, 1, *before);
}

SteppedThread::Outcome SteppedThread::compare_and_exchange(const Here& here) {
  const unsigned width = here.width(0);
  const auto there = read(here, 0);
  const auto replacement = read(here, 1);
  const Value expected = general(accumulator(width));
  if (!there.has_value() || !replacement.has_value()) return Outcome::kUnknown;
  if (!is_known(*there, width) || !is_known(expected, width)) return Outcome::kUnknown;
  add_with_flags(expected, *there, {.subtracts = true, .width = width});
  if (((there->bits ^ expected.bits) & mask_of(width)) == 0) return write(here, 0, *replacement);
  set_general(accumulator(width), *there);
  return Outcome::kNext;
}

}  // namespace amasia::omp
