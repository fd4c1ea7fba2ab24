// SPDX-License-Identifier: Apache-2.0
// Calculations with the integers of vector registers, and with their bits.
#include <algorithm>
#include <type_traits>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

template <typename Signed>
Signed signed_lane(std::make_unsigned_t<Signed> bits) {
  return static_cast<Signed>(bits);
}

using U8 = std::uint8_t;
using U16 = std::uint16_t;
using U32 = std::uint32_t;
using U64 = std::uint64_t;

}  // namespace

// A `case` of the instruction in the older and in the newer encoding.
#define EITHER(name) ZYDIS_MNEMONIC_##name : case ZYDIS_MNEMONIC_V##name

template <typename Bits, typename Operation>
SteppedThread::Outcome SteppedThread::each_lane(const Here& here, Operation operation) {
  const std::size_t count = here.count();
  const auto one = read_wide(here, count - 2);
  const auto other = read_wide(here, count - 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  // Differences of a register and itself, and comparisons, don't depend on it.
  const bool is_same = here.is_same_register(count - 2, count - 1);
  const bool is_fixed = is_same && operation(Bits{1}, Bits{1}) == operation(Bits{2}, Bits{2});
  Wide result;
  for (std::size_t lane = 0; lane < sizeof result.bits / sizeof(Bits); ++lane) {
    const auto left = one->lane<Bits>(lane);
    const auto right = other->lane<Bits>(lane);
    const auto bits = static_cast<Bits>(operation(left.bits, right.bits));
    result.set_lane<Bits>(lane, {bits, is_fixed || (left.is_known && right.is_known)});
  }
  return write_vector(here, result);
}

template <typename Bits, typename Operation>
SteppedThread::Outcome SteppedThread::shift_lanes(const Here& here, Operation operation) {
  const std::size_t count = here.count();
  const auto source = read_wide(here, count - 2);
  const auto by = read_wide(here, count - 1);
  if (!source.has_value() || !by.has_value()) return Outcome::kUnknown;
  const std::uint64_t distance = by->bits[0];
  const bool knows_distance = by->known[0] == ~std::uint64_t{0};
  Wide result;
  for (std::size_t lane = 0; lane < sizeof result.bits / sizeof(Bits); ++lane) {
    const auto from = source->lane<Bits>(lane);
    const auto bits = static_cast<Bits>(operation(from.bits, distance));
    result.set_lane<Bits>(lane, {bits, from.is_known && knows_distance});
  }
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::combine_vector_bits(
    const Here& here, Value (*combine)(const Value&, const Value&), bool complements) {
  const std::size_t count = here.count();
  const auto one = read_wide(here, count - 2);
  const auto other = read_wide(here, count - 1);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  const bool is_same = here.is_same_register(count - 2, count - 1);
  if (is_same && (complements || combine == bits_xor)) return write_vector(here, known_zero());
  Wide result;
  for (std::size_t word = 0; word < result.bits.size(); ++word) {
    const std::uint64_t left = complements ? ~one->bits[word] : one->bits[word];
    const Value value = combine({left, one->known[word]}, {other->bits[word], other->known[word]});
    result.bits[word] = value.bits;
    result.known[word] = value.known;
  }
  return write_vector(here, result);
}

// The number in the instruction has the result for all that three bits can be.
SteppedThread::Outcome SteppedThread::look_up_bits(const Here& here) {
  const auto one = read_wide(here, 0);
  const auto two = read_wide(here, 1);
  const auto three = read_wide(here, 2);
  if (!one.has_value() || !two.has_value() || !three.has_value()) return Outcome::kUnknown;
  const std::uint64_t table = here.operand(3).imm.value.u;
  Wide result;
  for (std::size_t word = 0; word < result.bits.size(); ++word) {
    for (unsigned row = 0; row < 8; ++row) {
      if (((table >> row) & 1) == 0) continue;
      result.bits[word] |= ((row & 4) != 0 ? one->bits[word] : ~one->bits[word]) &
                           ((row & 2) != 0 ? two->bits[word] : ~two->bits[word]) &
                           ((row & 1) != 0 ? three->bits[word] : ~three->bits[word]);
    }
    const bool is_fixed = (table & 0xff) == 0 || (table & 0xff) == 0xff;
    result.known[word] = one->known[word] & two->known[word] & three->known[word];
    if (is_fixed) result.known[word] = ~std::uint64_t{0};
  }
  return write_vector(here, result);
}

std::optional<SteppedThread::Outcome> SteppedThread::calculate_integers(const Here& here) {
  const auto add = [](auto one, auto other) { return one + other; };
  const auto subtract = [](auto one, auto other) { return one - other; };
  switch (here.mnemonic()) {
    case EITHER(PXOR):
    case EITHER(XORPS):
    case EITHER(XORPD):
    case ZYDIS_MNEMONIC_VPXORD:
    case ZYDIS_MNEMONIC_VPXORQ:
      return combine_vector_bits(here, bits_xor, false);
    case EITHER(PAND):
    case EITHER(ANDPS):
    case EITHER(ANDPD):
    case ZYDIS_MNEMONIC_VPANDD:
    case ZYDIS_MNEMONIC_VPANDQ:
      return combine_vector_bits(here, bits_and, false);
    case EITHER(POR):
    case EITHER(ORPS):
    case EITHER(ORPD):
    case ZYDIS_MNEMONIC_VPORD:
    case ZYDIS_MNEMONIC_VPORQ:
      return combine_vector_bits(here, bits_or, false);
    case EITHER(PANDN):
    case EITHER(ANDNPS):
    case EITHER(ANDNPD):
      return combine_vector_bits(here, bits_and, true);
    case ZYDIS_MNEMONIC_VPTERNLOGD:
    case ZYDIS_MNEMONIC_VPTERNLOGQ:
      return look_up_bits(here);
    case EITHER(PADDB):
      return each_lane<U8>(here, add);
    case EITHER(PADDW):
      return each_lane<U16>(here, add);
    case EITHER(PADDD):
      return each_lane<U32>(here, add);
    case EITHER(PADDQ):
      return each_lane<U64>(here, add);
    case EITHER(PSUBB):
      return each_lane<U8>(here, subtract);
    case EITHER(PSUBW):
      return each_lane<U16>(here, subtract);
    case EITHER(PSUBD):
      return each_lane<U32>(here, subtract);
    case EITHER(PSUBQ):
      return each_lane<U64>(here, subtract);
    case EITHER(PMULLW):
      return each_lane<U16>(here, [](U32 one, U32 other) { return one * other; });
    case EITHER(PMULLD):
      return each_lane<U32>(here, [](U32 one, U32 other) { return one * other; });
    case ZYDIS_MNEMONIC_VPMULLQ:
      return each_lane<U64>(here, [](U64 one, U64 other) { return one * other; });
    case EITHER(PMULUDQ):
      return each_lane<U64>(
          here, [](U64 one, U64 other) { return (one & 0xffff'ffff) * (other & 0xffff'ffff); });
    default:
      return compare_integers(here);
  }
}

std::optional<SteppedThread::Outcome> SteppedThread::compare_integers(const Here& here) {
  const auto is_equal = [](auto one, auto other) { return one == other ? ~0ULL : 0ULL; };
  const auto is_greater = []<typename Bits>(Bits one, Bits other) {
    using Signed = std::make_signed_t<Bits>;
    return signed_lane<Signed>(one) > signed_lane<Signed>(other) ? ~0ULL : 0ULL;
  };
  switch (here.mnemonic()) {
    case EITHER(PCMPEQB):
      return each_lane<U8>(here, is_equal);
    case EITHER(PCMPEQW):
      return each_lane<U16>(here, is_equal);
    case EITHER(PCMPEQD):
      return each_lane<U32>(here, is_equal);
    case EITHER(PCMPEQQ):
      return each_lane<U64>(here, is_equal);
    case EITHER(PCMPGTB):
      return each_lane<U8>(here, is_greater);
    case EITHER(PCMPGTW):
      return each_lane<U16>(here, is_greater);
    case EITHER(PCMPGTD):
      return each_lane<U32>(here, is_greater);
    case EITHER(PCMPGTQ):
      return each_lane<U64>(here, is_greater);
    default:
      return choose_integers(here);
  }
}

std::optional<SteppedThread::Outcome> SteppedThread::choose_integers(const Here& here) {
  const auto lower = [](auto one, auto other) { return std::min(one, other); };
  const auto higher = [](auto one, auto other) { return std::max(one, other); };
  const auto lower_signed = []<typename Bits>(Bits one, Bits other) {
    using Signed = std::make_signed_t<Bits>;
    return std::min(signed_lane<Signed>(one), signed_lane<Signed>(other));
  };
  const auto higher_signed = []<typename Bits>(Bits one, Bits other) {
    using Signed = std::make_signed_t<Bits>;
    return std::max(signed_lane<Signed>(one), signed_lane<Signed>(other));
  };
  switch (here.mnemonic()) {
    case EITHER(PMINUB):
      return each_lane<U8>(here, lower);
    case EITHER(PMINUW):
      return each_lane<U16>(here, lower);
    case EITHER(PMINUD):
      return each_lane<U32>(here, lower);
    case ZYDIS_MNEMONIC_VPMINUQ:
      return each_lane<U64>(here, lower);
    case EITHER(PMAXUB):
      return each_lane<U8>(here, higher);
    case EITHER(PMAXUW):
      return each_lane<U16>(here, higher);
    case EITHER(PMAXUD):
      return each_lane<U32>(here, higher);
    case ZYDIS_MNEMONIC_VPMAXUQ:
      return each_lane<U64>(here, higher);
    case EITHER(PMINSB):
      return each_lane<U8>(here, lower_signed);
    case EITHER(PMINSW):
      return each_lane<U16>(here, lower_signed);
    case EITHER(PMINSD):
      return each_lane<U32>(here, lower_signed);
    case ZYDIS_MNEMONIC_VPMINSQ:
      return each_lane<U64>(here, lower_signed);
    case EITHER(PMAXSB):
      return each_lane<U8>(here, higher_signed);
    case EITHER(PMAXSW):
      return each_lane<U16>(here, higher_signed);
    case EITHER(PMAXSD):
      return each_lane<U32>(here, higher_signed);
    case ZYDIS_MNEMONIC_VPMAXSQ:
      return each_lane<U64>(here, higher_signed);
    default:
      return shift_integers(here);
  }
}

std::optional<SteppedThread::Outcome> SteppedThread::shift_integers(const Here& here) {
  const auto shift_left = [](auto bits, std::uint64_t by) {
    return by < 8 * sizeof bits ? std::uint64_t{bits} << by : 0;
  };
  const auto shift_right = [](auto bits, std::uint64_t by) {
    return by < 8 * sizeof bits ? std::uint64_t{bits} >> by : 0;
  };
  const auto shift_signed = []<typename Bits>(Bits bits, std::uint64_t by) {
    return signed_lane<std::make_signed_t<Bits>>(bits) >> std::min(by, 8 * sizeof(Bits) - 1);
  };
  switch (here.mnemonic()) {
    case EITHER(PSLLW):
      return shift_lanes<U16>(here, shift_left);
    case EITHER(PSLLD):
      return shift_lanes<U32>(here, shift_left);
    case EITHER(PSLLQ):
      return shift_lanes<U64>(here, shift_left);
    case EITHER(PSRLW):
      return shift_lanes<U16>(here, shift_right);
    case EITHER(PSRLD):
      return shift_lanes<U32>(here, shift_right);
    case EITHER(PSRLQ):
      return shift_lanes<U64>(here, shift_right);
    case EITHER(PSRAW):
      return shift_lanes<U16>(here, shift_signed);
    case EITHER(PSRAD):
      return shift_lanes<U32>(here, shift_signed);
    default:
      return std::nullopt;
  }
}

#undef EITHER

}  // namespace amasia::omp
