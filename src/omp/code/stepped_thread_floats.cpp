// SPDX-License-Identifier: Apache-2.0
// Calculations with floating-point numbers, one or all of a vector register.
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <type_traits>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

template <typename Float>
using BitsOf = std::conditional_t<sizeof(Float) == 4, std::uint32_t, std::uint64_t>;

template <typename Float>
constexpr BitsOf<Float> kQuiet = BitsOf<Float>{1} << (std::numeric_limits<Float>::digits - 2);
// What the processor makes of operations without a result.
template <typename Float>
constexpr BitsOf<Float> kNoNumber =
    static_cast<BitsOf<Float>>(~BitsOf<Float>{0} << (std::numeric_limits<Float>::digits - 2));

// The order of two numbers that aren't equal, and whether they have any.
template <typename Float>
bool has_no_order(Float one, Float other) {
  return std::isnan(one) || std::isnan(other);
}

// The eight comparisons that all encodings have; the others are those with other exceptions.
template <typename Float>
bool is_true(unsigned comparison, Float one, Float other) {
  const bool is_negated = (comparison & 4) != 0;
  switch (comparison & 3) {
    case 0:
      return (one == other) != is_negated;
    case 1:
      return (one < other) != is_negated;
    case 2:
      return (one <= other) != is_negated;
    default:
      return has_no_order(one, other) != is_negated;
  }
}

// Out of an integer's range the processor has the lowest one.
template <typename Integer, typename Float>
Integer rounded(Float number, bool truncates) {
  const Float whole = truncates ? std::trunc(number) : std::nearbyint(number);
  const auto limit = static_cast<Float>(std::ldexp(1.0, 8 * sizeof(Integer) - 1));
  if (!(whole >= -limit && whole < limit)) return std::numeric_limits<Integer>::min();
  return static_cast<Integer>(whole);
}

}  // namespace

// A `case` of the instruction in the older and in the newer encoding.
#define EITHER(name) ZYDIS_MNEMONIC_##name : case ZYDIS_MNEMONIC_V##name

// Of operands without a number the first decides the result, whatever the operation. With only
// one lane the rest is the first operand's.
template <typename Float, typename Operation>
SteppedThread::Outcome SteppedThread::floating(const Here& here, bool is_scalar,
                                               Operation operation) {
  using Bits = BitsOf<Float>;
  const std::size_t count = here.count();
  const auto one = read_wide(here, count - 2);
  const auto other = read_wide(here, count - 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  Wide result = *one;
  const std::size_t lanes = is_scalar ? 1 : sizeof result.bits / sizeof(Float);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto left = one->lane<Bits>(lane);
    const auto right = other->lane<Bits>(lane);
    result.set_lane<Bits>(lane,
                          {operation(left.bits, right.bits), left.is_known && right.is_known});
  }
  return write_vector(here, result);
}

template <typename Float>
SteppedThread::Outcome SteppedThread::square_root(const Here& here, bool is_scalar) {
  return floating<Float>(here, is_scalar, [](BitsOf<Float>, BitsOf<Float> bits) {
    const auto number = std::bit_cast<Float>(bits);
    if (std::isnan(number)) return bits | kQuiet<Float>;
    return number < 0 ? kNoNumber<Float> : std::bit_cast<BitsOf<Float>>(std::sqrt(number));
  });
}

template <typename Float>
SteppedThread::Outcome SteppedThread::compare(const Here& here, bool is_scalar) {
  using Bits = BitsOf<Float>;
  const std::size_t count = here.count();
  const auto one = read_wide(here, count - 3);
  const auto other = read_wide(here, count - 2);
  const std::uint64_t comparison = here.operand(count - 1).imm.value.u & 0xff;
  if (!one.has_value() || !other.has_value() || comparison > 7) return Outcome::kUnknown;
  Wide result = *one;
  const std::size_t lanes = is_scalar ? 1 : sizeof result.bits / sizeof(Float);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto left = one->lane<Bits>(lane);
    const auto right = other->lane<Bits>(lane);
    const bool is_met = is_true(static_cast<unsigned>(comparison), std::bit_cast<Float>(left.bits),
                                std::bit_cast<Float>(right.bits));
    const auto bits = static_cast<Bits>(is_met ? ~Bits{0} : 0);
    result.set_lane<Bits>(lane, {bits, left.is_known && right.is_known});
  }
  return write_vector(here, result);
}

template <typename Float>
SteppedThread::Outcome SteppedThread::compare_to_flags(const Here& here) {
  const auto one = read_wide(here, 0);
  const auto other = read_wide(here, 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  const auto left = one->lane<BitsOf<Float>>(0);
  const auto right = other->lane<BitsOf<Float>>(0);
  const auto first = std::bit_cast<Float>(left.bits);
  const auto second = std::bit_cast<Float>(right.bits);
  unsigned values = 0;
  if (has_no_order(first, second)) {
    values = kZero | kParity | kCarry;
  } else if (first == second) {
    values = kZero;
  } else if (first < second) {
    values = kCarry;
  }
  set_flags(kAll, values, left.is_known && right.is_known);
  return Outcome::kNext;
}

std::optional<SteppedThread::Outcome> SteppedThread::calculate_floats(const Here& here) {
  const auto calculating = []<typename Float>(Float, auto operation) {
    return [operation](BitsOf<Float> one, BitsOf<Float> other) {
      const auto left = std::bit_cast<Float>(one);
      const auto right = std::bit_cast<Float>(other);
      if (std::isnan(left)) return one | kQuiet<Float>;
      if (std::isnan(right)) return other | kQuiet<Float>;
      const Float result = operation(left, right);
      return std::isnan(result) ? kNoNumber<Float> : std::bit_cast<BitsOf<Float>>(result);
    };
  };
  // Without order, and of two zeros, the second is taken.
  const auto choosing = []<typename Float>(Float, auto is_first) {
    return [is_first](BitsOf<Float> one, BitsOf<Float> other) {
      return is_first(std::bit_cast<Float>(one), std::bit_cast<Float>(other)) ? one : other;
    };
  };
#define ALL_KINDS(name, kind, operation)                        \
  case EITHER(name##SS):                                        \
    return floating<float>(here, true, kind(0.0F, operation));  \
  case EITHER(name##SD):                                        \
    return floating<double>(here, true, kind(0.0, operation));  \
  case EITHER(name##PS):                                        \
    return floating<float>(here, false, kind(0.0F, operation)); \
  case EITHER(name##PD):                                        \
    return floating<double>(here, false, kind(0.0, operation))
  switch (here.mnemonic()) {
    ALL_KINDS(ADD, calculating, std::plus<>{});
    ALL_KINDS(SUB, calculating, std::minus<>{});
    ALL_KINDS(MUL, calculating, std::multiplies<>{});
    ALL_KINDS(DIV, calculating, std::divides<>{});
    ALL_KINDS(MIN, choosing, std::less<>{});
    ALL_KINDS(MAX, choosing, std::greater<>{});
#undef ALL_KINDS
    case EITHER(SQRTSS):
      return square_root<float>(here, true);
    case EITHER(SQRTSD):
      return square_root<double>(here, true);
    case EITHER(CMPSS):
      return compare<float>(here, true);
    case EITHER(CMPSD):
      return compare<double>(here, true);
    case EITHER(CMPPS):
      return compare<float>(here, false);
    case EITHER(CMPPD):
      return compare<double>(here, false);
    case EITHER(COMISS):
    case EITHER(UCOMISS):
      return compare_to_flags<float>(here);
    case EITHER(COMISD):
    case EITHER(UCOMISD):
      return compare_to_flags<double>(here);
    default:
      return std::nullopt;
  }
}

// The instruction's code tells which operands are multiplied, and the signs. Which of several
// operands without a number decides isn't told here: the result is not known then.
template <typename Float>
SteppedThread::Outcome SteppedThread::multiply_and_add(const Here& here) {
  using Bits = BitsOf<Float>;
  const auto first = read_wide(here, 0);
  const auto second = read_wide(here, 1);
  const auto third = read_wide(here, 2);
  if (!first.has_value() || !second.has_value() || !third.has_value()) return Outcome::kUnknown;
  const unsigned code = here.instruction.what.opcode;
  const unsigned order = code >> 4;
  const bool is_scalar = (code & 1) != 0;
  const bool subtracts = (code & 2) != 0;
  const bool negates = (code & 4) != 0;
  Wide result = *first;
  const std::size_t lanes = is_scalar ? 1 : sizeof result.bits / sizeof(Float);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const auto one = first->lane<Bits>(lane);
    const auto two = second->lane<Bits>(lane);
    const auto three = third->lane<Bits>(lane);
    auto factor = std::bit_cast<Float>(order == 0xb ? three.bits : one.bits);
    const auto other = std::bit_cast<Float>(order == 0x9 ? three.bits : two.bits);
    auto summand = std::bit_cast<Float>(order == 0x9   ? two.bits
                                        : order == 0xa ? three.bits
                                                       : one.bits);
    if (negates) factor = -factor;
    if (subtracts) summand = -summand;
    const Float number = std::fma(factor, other, summand);
    const bool knows = one.is_known && two.is_known && three.is_known && !std::isnan(number);
    result.set_lane<Bits>(lane, {std::bit_cast<Bits>(number), knows});
  }
  return write_vector(here, result);
}

std::optional<SteppedThread::Outcome> SteppedThread::calculate_fused(const Here& here) {
  const ZydisDecodedInstruction& what = here.instruction.what;
  const unsigned order = what.opcode >> 4;
  const bool is_one = what.meta.category == ZYDIS_CATEGORY_VFMA &&
                      what.opcode_map == ZYDIS_OPCODE_MAP_0F38 && order >= 0x9 && order <= 0xb &&
                      (what.opcode & 8) != 0;
  if (!is_one) return std::nullopt;
  switch (here.operand(2).element_size) {
    case 32:
      return multiply_and_add<float>(here);
    case 64:
      return multiply_and_add<double>(here);
    default:
      return std::nullopt;
  }
}

template <typename Float>
SteppedThread::Outcome SteppedThread::from_integer(const Here& here, bool is_signed) {
  const std::size_t count = here.count();
  auto result = read_wide(here, count - 2);
  const auto source = read(here, count - 1);
  if (!result.has_value() || !source.has_value()) return Outcome::kUnknown;
  const unsigned width = here.width(count - 1);
  const std::uint64_t bits = source->bits & mask_of(width);
  auto value = static_cast<std::int64_t>(bits);
  if (width == 32) value = static_cast<std::int32_t>(bits);
  const auto number = is_signed ? static_cast<Float>(value) : static_cast<Float>(bits);
  result->set_lane<BitsOf<Float>>(0,
                                  {std::bit_cast<BitsOf<Float>>(number), is_known(*source, width)});
  return write_vector(here, *result);
}

template <typename Float>
SteppedThread::Outcome SteppedThread::to_integer(const Here& here, bool truncates) {
  const auto source = read_wide(here, 1);
  if (!source.has_value()) return Outcome::kUnknown;
  const auto lane = source->lane<BitsOf<Float>>(0);
  const auto number = std::bit_cast<Float>(lane.bits);
  std::uint64_t bits = 0;
  if (here.width(0) == 64) {
    bits = static_cast<std::uint64_t>(rounded<std::int64_t>(number, truncates));
  } else {
    bits = static_cast<std::uint32_t>(rounded<std::int32_t>(number, truncates));
  }
  return write(here, 0, lane.is_known ? known(bits) : Value{});
}

template <typename From, typename To>
SteppedThread::Outcome SteppedThread::convert_scalar(const Here& here) {
  const std::size_t count = here.count();
  auto result = read_wide(here, count - 2);
  const auto source = read_wide(here, count - 1);
  if (!result.has_value() || !source.has_value()) return Outcome::kUnknown;
  const auto lane = source->lane<BitsOf<From>>(0);
  const auto number = static_cast<To>(std::bit_cast<From>(lane.bits));
  result->set_lane<BitsOf<To>>(0, {std::bit_cast<BitsOf<To>>(number), lane.is_known});
  return write_vector(here, *result);
}

// As many as there are in both; zero follows.
template <typename From, typename To, typename Conversion>
SteppedThread::Outcome SteppedThread::convert_lanes(const Here& here, Conversion conversion) {
  const auto source = read_wide(here, 1);
  if (!source.has_value()) return Outcome::kUnknown;
  const std::size_t lanes = std::min(here.bytes(1) / sizeof(From), here.bytes(0) / sizeof(To));
  Wide result = known_zero();
  for (std::size_t index = 0; index < lanes; ++index) {
    const auto lane = source->lane<BitsOf<From>>(index);
    const To number = conversion(std::bit_cast<From>(lane.bits));
    result.set_lane<BitsOf<To>>(index, {std::bit_cast<BitsOf<To>>(number), lane.is_known});
  }
  return write_vector(here, result);
}

std::optional<SteppedThread::Outcome> SteppedThread::convert(const Here& here) {
  const auto to_float = [](auto number) { return static_cast<float>(number); };
  const auto to_double = [](auto number) { return static_cast<double>(number); };
  const auto truncated = [](auto number) { return rounded<std::int32_t>(number, true); };
  switch (here.mnemonic()) {
    case EITHER(CVTSI2SS):
      return from_integer<float>(here, true);
    case ZYDIS_MNEMONIC_VCVTUSI2SS:
      return from_integer<float>(here, false);
    case EITHER(CVTSI2SD):
      return from_integer<double>(here, true);
    case ZYDIS_MNEMONIC_VCVTUSI2SD:
      return from_integer<double>(here, false);
    case EITHER(CVTSS2SI):
      return to_integer<float>(here, false);
    case EITHER(CVTSD2SI):
      return to_integer<double>(here, false);
    case EITHER(CVTTSS2SI):
      return to_integer<float>(here, true);
    case EITHER(CVTTSD2SI):
      return to_integer<double>(here, true);
    case EITHER(CVTSS2SD):
      return convert_scalar<float, double>(here);
    case EITHER(CVTSD2SS):
      return convert_scalar<double, float>(here);
    case EITHER(CVTPS2PD):
      return convert_lanes<float, double>(here, to_double);
    case EITHER(CVTPD2PS):
      return convert_lanes<double, float>(here, to_float);
    case EITHER(CVTDQ2PS):
      return convert_lanes<std::int32_t, float>(here, to_float);
    case EITHER(CVTDQ2PD):
      return convert_lanes<std::int32_t, double>(here, to_double);
    case EITHER(CVTTPS2DQ):
      return convert_lanes<float, std::int32_t>(here, truncated);
    case EITHER(CVTTPD2DQ):
      return convert_lanes<double, std::int32_t>(here, truncated);
    default:
      return std::nullopt;
  }
}

#undef EITHER

}  // namespace amasia::omp
