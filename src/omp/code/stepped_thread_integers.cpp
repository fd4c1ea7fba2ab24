// SPDX-License-Identifier: Apache-2.0
// Calculations with integers, and the flags.
#include <bit>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

std::int64_t signed_of(std::uint64_t bits, unsigned width) {
  return static_cast<std::int64_t>(bits << (64 - width)) >> (64 - width);
}

bool bit_at(std::uint64_t bits, unsigned place) { return ((bits >> place) & 1) != 0; }

ZydisRegister low_part(unsigned width) {
  switch (width) {
    case 8:
      return ZYDIS_REGISTER_AL;
    case 16:
      return ZYDIS_REGISTER_AX;
    case 32:
      return ZYDIS_REGISTER_EAX;
    default:
      return ZYDIS_REGISTER_RAX;
  }
}

// Of products and dividends.
ZydisRegister high_part(unsigned width) {
  switch (width) {
    case 8:
      return ZYDIS_REGISTER_AH;
    case 16:
      return ZYDIS_REGISTER_DX;
    case 32:
      return ZYDIS_REGISTER_EDX;
    default:
      return ZYDIS_REGISTER_RDX;
  }
}

}  // namespace

ZydisRegister SteppedThread::accumulator(unsigned width) { return low_part(width); }

void SteppedThread::set_flags(unsigned which, unsigned values, bool is_known) {
  flags_ = (flags_ & ~which) | (values & which);
  known_flags_ = is_known ? known_flags_ | which : known_flags_ & ~which;
}

void SteppedThread::set_result_flags(const Value& result, unsigned width) {
  const std::uint64_t bits = result.bits & mask_of(width);
  unsigned values = 0;
  if (bits == 0) values |= kZero;
  if (bit_at(bits, width - 1)) values |= kSign;
  if (std::popcount(bits & 0xff) % 2 == 0) values |= kParity;
  set_flags(kResult, values, is_known(result, width));
}

std::optional<bool> SteppedThread::flag(Flag which) const {
  if ((known_flags_ & which) == 0) return std::nullopt;
  return (flags_ & which) != 0;
}

std::optional<bool> SteppedThread::condition(const Here& here) const {
  const unsigned code = here.instruction.what.opcode & 0xf;
  constexpr std::array<unsigned, 8> kRead = {kOverflow,
                                             kCarry,
                                             kZero,
                                             kCarry | kZero,
                                             kSign,
                                             kParity,
                                             kSign | kOverflow,
                                             kSign | kOverflow | kZero};
  const unsigned needed = kRead[code / 2];
  if ((known_flags_ & needed) != needed) return std::nullopt;
  const bool is_less = ((flags_ & kSign) != 0) != ((flags_ & kOverflow) != 0);
  bool is_met = (flags_ & needed) != 0;
  if (code / 2 == 6) is_met = is_less;
  if (code / 2 == 7) is_met = is_less || (flags_ & kZero) != 0;
  return is_met != ((code & 1) != 0);
}

std::optional<SteppedThread::Outcome> SteppedThread::calculate(const Here& here) {
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_ADD:
    case ZYDIS_MNEMONIC_ADC:
    case ZYDIS_MNEMONIC_INC:
      return sum(here, false);
    case ZYDIS_MNEMONIC_SUB:
    case ZYDIS_MNEMONIC_SBB:
    case ZYDIS_MNEMONIC_CMP:
    case ZYDIS_MNEMONIC_DEC:
    case ZYDIS_MNEMONIC_NEG:
      return sum(here, true);
    case ZYDIS_MNEMONIC_AND:
    case ZYDIS_MNEMONIC_ANDN:
    case ZYDIS_MNEMONIC_OR:
    case ZYDIS_MNEMONIC_XOR:
    case ZYDIS_MNEMONIC_TEST:
      return combine_bits(here);
    case ZYDIS_MNEMONIC_NOT: {
      auto value = read(here, 0);
      if (!value.has_value()) return Outcome::kUnknown;
      return write(here, 0, {~value->bits, value->known});
    }
    case ZYDIS_MNEMONIC_SHL:
    case ZYDIS_MNEMONIC_SHR:
    case ZYDIS_MNEMONIC_SAR:
      return shift(here);
    case ZYDIS_MNEMONIC_ROL:
    case ZYDIS_MNEMONIC_ROR:
      return rotate(here);
    case ZYDIS_MNEMONIC_SHLX:
    case ZYDIS_MNEMONIC_SHRX:
    case ZYDIS_MNEMONIC_SARX:
    case ZYDIS_MNEMONIC_RORX:
      return shift_without_flags(here);
    case ZYDIS_MNEMONIC_BT:
    case ZYDIS_MNEMONIC_BTS:
    case ZYDIS_MNEMONIC_BTR:
    case ZYDIS_MNEMONIC_BTC:
      return bit_test(here);
    case ZYDIS_MNEMONIC_IMUL:
      return here.count() == 1 ? multiply_wide(here, true) : multiply(here);
    case ZYDIS_MNEMONIC_MUL:
      return multiply_wide(here, false);
    case ZYDIS_MNEMONIC_IDIV:
      return divide(here, true);
    case ZYDIS_MNEMONIC_DIV:
      return divide(here, false);
    default:
      return std::nullopt;
  }
}

SteppedThread::Value SteppedThread::add_with_flags(const Value& one, const Value& other,
                                                   const Addition& addition) {
  const unsigned width = addition.width;
  const std::uint64_t mask = mask_of(width);
  // A difference is the sum with the complement, and a borrow is what is not carried.
  const std::uint64_t left = one.bits & mask;
  const std::uint64_t right = (addition.subtracts ? ~other.bits : other.bits) & mask;
  const bool carries_in = addition.carry != addition.subtracts;
  const std::uint64_t bits = (left + right + (carries_in ? 1 : 0)) & mask;
  const bool knows = is_known(one, width) && is_known(other, width) && addition.is_carry_known;
  const Value result{bits, knows ? ~std::uint64_t{0} : 0};
  const bool carries_out = bit_at((left & right) | ((left | right) & ~bits), width - 1);
  const bool overflows = bit_at((left ^ bits) & (right ^ bits), width - 1);
  set_result_flags(result, width);
  set_flags(kOverflow, overflows ? kOverflow : 0, knows);
  if (addition.sets_carry) {
    set_flags(kCarry, carries_out != addition.subtracts ? kCarry : 0, knows);
  }
  return result;
}

SteppedThread::Outcome SteppedThread::sum(const Here& here, bool subtracts) {
  const ZydisMnemonic mnemonic = here.mnemonic();
  const bool counts = mnemonic == ZYDIS_MNEMONIC_INC || mnemonic == ZYDIS_MNEMONIC_DEC;
  const bool negates = mnemonic == ZYDIS_MNEMONIC_NEG;
  const bool carries = mnemonic == ZYDIS_MNEMONIC_ADC || mnemonic == ZYDIS_MNEMONIC_SBB;
  auto one = read(here, 0);
  auto other = counts ? known(1) : read(here, negates ? 0 : 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  if (negates) one = known(0);
  if (subtracts && !counts && !negates && here.is_same_register(0, 1)) one = other = known(0);
  Addition addition{.subtracts = subtracts, .width = here.width(0), .sets_carry = !counts};
  if (carries) {
    addition.is_carry_known = flag(kCarry).has_value();
    addition.carry = flag(kCarry).value_or(false);
  }
  const Value result = add_with_flags(*one, *other, addition);
  return mnemonic == ZYDIS_MNEMONIC_CMP ? Outcome::kNext : write(here, 0, result);
}

SteppedThread::Outcome SteppedThread::combine_bits(const Here& here) {
  const std::size_t count = here.count();
  auto one = read(here, count - 2);
  auto other = read(here, count - 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  const unsigned width = here.width(0);
  if (here.mnemonic() == ZYDIS_MNEMONIC_ANDN) one->bits = ~one->bits;
  Value result;
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_OR:
      result = bits_or(*one, *other);
      break;
    case ZYDIS_MNEMONIC_XOR:
      result = here.is_same_register(0, 1) ? known(0) : bits_xor(*one, *other);
      break;
    default:
      result = bits_and(*one, *other);
      break;
  }
  set_result_flags(result, width);
  set_flags(kCarry | kOverflow, 0, true);
  if (here.mnemonic() == ZYDIS_MNEMONIC_ANDN) set_flags(kParity, 0, false);
  return here.mnemonic() == ZYDIS_MNEMONIC_TEST ? Outcome::kNext : write(here, 0, result);
}

SteppedThread::Outcome SteppedThread::shift(const Here& here) {
  const unsigned width = here.width(0);
  const auto value = read(here, 0);
  const auto by = here.count() > 1 ? read(here, 1) : known(1);
  if (!value.has_value() || !by.has_value()) return Outcome::kUnknown;
  if (!is_known(*by, 8) || !is_known(*value, width)) {
    set_flags(kAll, 0, false);
    return write(here, 0, Value{});
  }
  const auto count = static_cast<unsigned>(by->bits & (width == 64 ? 63 : 31));
  if (count == 0) return write(here, 0, *value);
  const std::uint64_t bits = value->bits & mask_of(width);
  const bool is_sign_set = bit_at(bits, width - 1);
  std::uint64_t result = 0;
  bool carry = false;
  bool overflow = false;
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_SHL:
      result = bits << count;
      carry = count <= width && bit_at(bits, width - count);
      overflow = bit_at(result, width - 1) != carry;
      break;
    case ZYDIS_MNEMONIC_SHR:
      result = bits >> count;
      carry = bit_at(bits, count - 1);
      overflow = is_sign_set;
      break;
    default:
      result = static_cast<std::uint64_t>(signed_of(bits, width) >> count);
      carry = bit_at(static_cast<std::uint64_t>(signed_of(bits, width)), count - 1);
      break;
  }
  const bool is_carry_defined = count <= width || here.mnemonic() == ZYDIS_MNEMONIC_SAR;
  set_result_flags(known(result), width);
  set_flags(kCarry, carry ? kCarry : 0, is_carry_defined);
  set_flags(kOverflow, overflow ? kOverflow : 0, count == 1);
  return write(here, 0, known(result));
}

SteppedThread::Outcome SteppedThread::rotate(const Here& here) {
  const unsigned width = here.width(0);
  const auto value = read(here, 0);
  const auto by = here.count() > 1 ? read(here, 1) : known(1);
  if (!value.has_value() || !by.has_value()) return Outcome::kUnknown;
  if (!is_known(*by, 8) || !is_known(*value, width)) {
    set_flags(kCarry | kOverflow, 0, false);
    return write(here, 0, Value{});
  }
  const auto count = static_cast<unsigned>(by->bits & (width == 64 ? 63 : 31));
  if (count == 0) return write(here, 0, *value);
  const std::uint64_t bits = value->bits & mask_of(width);
  const bool is_left = here.mnemonic() == ZYDIS_MNEMONIC_ROL;
  const unsigned left = (is_left ? count : width - count % width) % width;
  const std::uint64_t result =
      left == 0 ? bits : ((bits << left) | (bits >> (width - left))) & mask_of(width);
  const bool high = bit_at(result, width - 1);
  const bool carry = is_left ? bit_at(result, 0) : high;
  const bool overflow = high != (is_left ? carry : bit_at(result, width - 2));
  set_flags(kCarry, carry ? kCarry : 0, true);
  set_flags(kOverflow, overflow ? kOverflow : 0, count == 1);
  return write(here, 0, known(result));
}

SteppedThread::Outcome SteppedThread::shift_without_flags(const Here& here) {
  const unsigned width = here.width(0);
  const auto value = read(here, 1);
  const auto by = read(here, 2);
  if (!value.has_value() || !by.has_value()) return Outcome::kUnknown;
  if (!is_known(*by, 8) || !is_known(*value, width)) return write(here, 0, Value{});
  const auto count = static_cast<unsigned>(by->bits & (width - 1));
  const std::uint64_t bits = value->bits & mask_of(width);
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_SHLX:
      return write(here, 0, known(bits << count));
    case ZYDIS_MNEMONIC_SHRX:
      return write(here, 0, known(bits >> count));
    case ZYDIS_MNEMONIC_SARX:
      return write(here, 0, known(static_cast<std::uint64_t>(signed_of(bits, width) >> count)));
    default:
      return write(here, 0, known(count == 0 ? bits : (bits >> count) | (bits << (width - count))));
  }
}

SteppedThread::Outcome SteppedThread::bit_test(const Here& here) {
  const unsigned width = here.width(0);
  // With a number in a register the bit may lie in memory beside the operand.
  if (!here.is_register(0) && here.is_register(1)) return Outcome::kUnknown;
  auto value = read(here, 0);
  const auto number = read(here, 1);
  if (!value.has_value() || !number.has_value() || !is_known(*number, 8)) return Outcome::kUnknown;
  const auto place = static_cast<unsigned>(number->bits & (width - 1));
  const std::uint64_t bit = std::uint64_t{1} << place;
  set_flags(kCarry, bit_at(value->bits, place) ? kCarry : 0, bit_at(value->known, place));
  set_flags(kSign | kParity | kOverflow, 0, false);
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_BTS:
      return write(here, 0, {value->bits | bit, value->known | bit});
    case ZYDIS_MNEMONIC_BTR:
      return write(here, 0, {value->bits & ~bit, value->known | bit});
    case ZYDIS_MNEMONIC_BTC:
      return write(here, 0, {value->bits ^ bit, value->known});
    default:
      return Outcome::kNext;
  }
}

SteppedThread::Outcome SteppedThread::multiply(const Here& here) {
  const unsigned width = here.width(0);
  const std::size_t count = here.count();
  const auto one = read(here, count - 2);
  const auto other = read(here, count - 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  const bool knows = is_known(*one, width) && is_known(*other, width);
  const Signed128 product =
      static_cast<Signed128>(signed_of(one->bits, width)) * signed_of(other->bits, width);
  const auto low = static_cast<std::uint64_t>(product);
  const bool fits = product == signed_of(low, width);
  set_flags(kCarry | kOverflow, fits ? 0 : kAll, knows);
  set_flags(kResult, 0, false);
  return write(here, 0, knows ? known(low) : Value{});
}

SteppedThread::Outcome SteppedThread::multiply_wide(const Here& here, bool is_signed) {
  const unsigned width = here.width(0);
  const auto one = read(here, 0);
  const Value other = general(low_part(width));
  if (!one.has_value()) return Outcome::kUnknown;
  const bool knows = is_known(*one, width) && is_known(other, width);
  const std::uint64_t left = one->bits & mask_of(width);
  const std::uint64_t right = other.bits & mask_of(width);
  Unsigned128 product = static_cast<Unsigned128>(left) * right;
  if (is_signed) {
    product = static_cast<Unsigned128>(static_cast<Signed128>(signed_of(left, width)) *
                                       signed_of(right, width));
  }
  const auto low = static_cast<std::uint64_t>(product) & mask_of(width);
  const auto high = static_cast<std::uint64_t>(product >> width) & mask_of(width);
  const std::uint64_t expected = is_signed && bit_at(low, width - 1) ? mask_of(width) : 0;
  set_flags(kCarry | kOverflow, high == expected ? 0 : kAll, knows);
  set_flags(kResult, 0, false);
  set_general(low_part(width), knows ? known(low) : Value{});
  set_general(high_part(width), knows ? known(high) : Value{});
  return Outcome::kNext;
}

SteppedThread::Outcome SteppedThread::divide(const Here& here, bool is_signed) {
  const unsigned width = here.width(0);
  const auto by = read(here, 0);
  const Value low = general(low_part(width));
  const Value high = general(high_part(width));
  if (!by.has_value()) return Outcome::kUnknown;
  if (!is_known(*by, width) || !is_known(low, width) || !is_known(high, width)) {
    return Outcome::kUnknown;
  }
  const std::uint64_t divisor = by->bits & mask_of(width);
  if (divisor == 0) return Outcome::kUnknown;
  const Unsigned128 dividend =
      (static_cast<Unsigned128>(high.bits & mask_of(width)) << width) | (low.bits & mask_of(width));
  std::uint64_t quotient = 0;
  std::uint64_t remainder = 0;
  bool fits = true;
  if (is_signed) {
    const unsigned unused = 128 - 2 * width;
    const auto from = static_cast<Signed128>(dividend << unused) >> unused;
    const Signed128 through = signed_of(divisor, width);
    constexpr auto kLowest = static_cast<Signed128>(Unsigned128{1} << 127);
    if (through == -1 && from == kLowest) return Outcome::kUnknown;
    const Signed128 whole = from / through;
    quotient = static_cast<std::uint64_t>(whole);
    remainder = static_cast<std::uint64_t>(from % through);
    fits = whole == signed_of(quotient, width);
  } else {
    const Unsigned128 whole = dividend / divisor;
    quotient = static_cast<std::uint64_t>(whole);
    remainder = static_cast<std::uint64_t>(dividend % divisor);
    fits = whole <= mask_of(width);
  }
  // The processor would stop the thread.
  if (!fits) return Outcome::kUnknown;
  set_general(low_part(width), known(quotient));
  set_general(high_part(width), known(remainder));
  set_flags(kAll, 0, false);
  return Outcome::kNext;
}

}  // namespace amasia::omp
