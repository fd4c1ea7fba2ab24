// SPDX-License-Identifier: Apache-2.0
// Moves of vector registers, and those that put their parts into another order.
#include <algorithm>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

// The size of a register of the older kind, of which the newer ones have two that most
// instructions treat alike.
constexpr std::size_t kHalf = 16;

}  // namespace

// A `case` of the instruction in the older and in the newer encoding.
#define EITHER(name) ZYDIS_MNEMONIC_##name : case ZYDIS_MNEMONIC_V##name

void SteppedThread::Wide::take(const Wide& from, std::size_t from_byte, std::size_t to_byte,
                               std::size_t size) {
  const auto copy = [=](const auto& source, auto& destination) {
    std::memcpy(reinterpret_cast<Byte*>(&destination) + to_byte,
                reinterpret_cast<const Byte*>(&source) + from_byte, size);
  };
  copy(from.bits, bits);
  copy(from.known, known);
}

bool SteppedThread::Here::is_vector(std::size_t index) const {
  if (!is_register(index)) return false;
  const ZydisRegisterClass kind = ZydisRegisterGetClass(operand(index).reg.value);
  return kind == ZYDIS_REGCLASS_XMM || kind == ZYDIS_REGCLASS_YMM;
}

SteppedThread::Outcome SteppedThread::write_vector(const Here& here, const Wide& value) {
  if (here.is_memory(0)) {
    const auto address = address_of(here, here.operand(0));
    return address.has_value() ? store(*address, value, here.bytes(0)) : Outcome::kUnknown;
  }
  if (!here.is_vector(0)) return Outcome::kUnknown;
  const ZydisRegister reg = here.operand(0).reg.value;
  Wide& whole = vectors_[static_cast<std::size_t>(ZydisRegisterGetId(reg))];
  const std::size_t size = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg) / 8;
  Wide result = here.is_legacy() ? whole : known_zero();
  result.take(value, 0, 0, size);
  whole = result;
  return Outcome::kNext;
}

std::optional<SteppedThread::Outcome> SteppedThread::move_vector(const Here& here) {
  switch (here.mnemonic()) {
    case EITHER(MOVAPS):
    case EITHER(MOVAPD):
    case EITHER(MOVUPS):
    case EITHER(MOVUPD):
    case EITHER(MOVDQA):
    case EITHER(MOVDQU):
    case EITHER(LDDQU):
    case EITHER(MOVNTDQ):
    case EITHER(MOVNTPS):
    case EITHER(MOVNTPD):
    case ZYDIS_MNEMONIC_VMOVDQA32:
    case ZYDIS_MNEMONIC_VMOVDQA64:
    case ZYDIS_MNEMONIC_VMOVDQU8:
    case ZYDIS_MNEMONIC_VMOVDQU16:
    case ZYDIS_MNEMONIC_VMOVDQU32:
    case ZYDIS_MNEMONIC_VMOVDQU64:
      return move_all(here);
    case EITHER(MOVSS):
      return move_low(here, 4);
    case EITHER(MOVSD):
      return move_low(here, 8);
    case EITHER(MOVD):
      return move_low_alone(here, 4);
    case EITHER(MOVQ):
      return move_low_alone(here, 8);
    case EITHER(MOVLPS):
    case EITHER(MOVLPD):
      return move_half(here, 0, 0);
    case EITHER(MOVHPS):
    case EITHER(MOVHPD):
      return here.is_memory(0) ? move_half(here, 8, 0) : move_half(here, 0, 8);
    case EITHER(MOVLHPS):
      return move_half(here, 0, 8);
    case EITHER(MOVHLPS):
      return move_half(here, 8, 0);
    case EITHER(PINSRB):
      return insert(here, 1);
    case EITHER(PINSRW):
      return insert(here, 2);
    case EITHER(PINSRD):
      return insert(here, 4);
    case EITHER(PINSRQ):
      return insert(here, 8);
    case EITHER(PEXTRB):
      return extract(here, 1);
    case EITHER(PEXTRW):
      return extract(here, 2);
    case EITHER(PEXTRD):
    case EITHER(EXTRACTPS):
      return extract(here, 4);
    case EITHER(PEXTRQ):
      return extract(here, 8);
    case ZYDIS_MNEMONIC_VINSERTF128:
    case ZYDIS_MNEMONIC_VINSERTI128:
      return insert_half(here);
    case ZYDIS_MNEMONIC_VEXTRACTF128:
    case ZYDIS_MNEMONIC_VEXTRACTI128:
      return extract_half(here);
    case ZYDIS_MNEMONIC_VZEROUPPER:
      return clear_upper_halves();
    default:
      return std::nullopt;
  }
}

std::optional<SteppedThread::Outcome> SteppedThread::shuffle_vector(const Here& here) {
  switch (here.mnemonic()) {
    case ZYDIS_MNEMONIC_VPBROADCASTB:
      return repeat(here, 1);
    case ZYDIS_MNEMONIC_VPBROADCASTW:
      return repeat(here, 2);
    case ZYDIS_MNEMONIC_VPBROADCASTD:
    case ZYDIS_MNEMONIC_VBROADCASTSS:
      return repeat(here, 4);
    case ZYDIS_MNEMONIC_VPBROADCASTQ:
    case ZYDIS_MNEMONIC_VBROADCASTSD:
      return repeat(here, 8);
    case ZYDIS_MNEMONIC_VBROADCASTF128:
    case ZYDIS_MNEMONIC_VBROADCASTI128:
      return repeat(here, kHalf);
    case EITHER(PUNPCKLBW):
      return interleave(here, 1, false);
    case EITHER(PUNPCKLWD):
      return interleave(here, 2, false);
    case EITHER(PUNPCKLDQ):
    case EITHER(UNPCKLPS):
      return interleave(here, 4, false);
    case EITHER(PUNPCKLQDQ):
    case EITHER(UNPCKLPD):
      return interleave(here, 8, false);
    case EITHER(PUNPCKHBW):
      return interleave(here, 1, true);
    case EITHER(PUNPCKHWD):
      return interleave(here, 2, true);
    case EITHER(PUNPCKHDQ):
    case EITHER(UNPCKHPS):
      return interleave(here, 4, true);
    case EITHER(PUNPCKHQDQ):
    case EITHER(UNPCKHPD):
      return interleave(here, 8, true);
    case EITHER(PSHUFD):
    case EITHER(SHUFPS):
      return shuffle(here, 4);
    case EITHER(SHUFPD):
      return shuffle(here, 8);
    case EITHER(PSLLDQ):
    case EITHER(PSRLDQ):
      return shift_bytes(here);
    case ZYDIS_MNEMONIC_VBLENDVPS:
      return blend(here, 4);
    case ZYDIS_MNEMONIC_VBLENDVPD:
      return blend(here, 8);
    case ZYDIS_MNEMONIC_VPBLENDVB:
      return blend(here, 1);
    case EITHER(PMOVMSKB):
      return signs(here, 1);
    case EITHER(MOVMSKPS):
      return signs(here, 4);
    case EITHER(MOVMSKPD):
      return signs(here, 8);
    default:
      return std::nullopt;
  }
}

SteppedThread::Outcome SteppedThread::move_all(const Here& here) {
  const auto value = read_wide(here, 1);
  return value.has_value() ? write_vector(here, *value) : Outcome::kUnknown;
}

// What comes from memory is alone in the register; else the rest stays, or is that of another one.
SteppedThread::Outcome SteppedThread::move_low(const Here& here, std::size_t size) {
  const std::size_t count = here.count();
  if (here.is_memory(0)) return move_all(here);
  if (here.is_memory(count - 1)) return move_low_alone(here, size);
  auto result = read_wide(here, count - 2);
  const auto low = read_wide(here, count - 1);
  if (!result.has_value() || !low.has_value()) return Outcome::kUnknown;
  result->take(*low, 0, 0, size);
  return write_vector(here, *result);
}

SteppedThread::Outcome SteppedThread::move_low_alone(const Here& here, std::size_t size) {
  const auto value = read_wide(here, 1);
  if (!value.has_value()) return Outcome::kUnknown;
  if (!here.is_vector(0)) return write(here, 0, {value->bits[0], value->known[0]});
  Wide result = known_zero();
  result.take(*value, 0, 0, size);
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::move_half(const Here& here, std::size_t from_byte,
                                                std::size_t to_byte) {
  const std::size_t count = here.count();
  const auto source = read_wide(here, count - 1);
  auto result = here.is_memory(0) ? Wide{} : read_wide(here, count - 2);
  if (!source.has_value() || !result.has_value()) return Outcome::kUnknown;
  result->take(*source, from_byte, to_byte, 8);
  return write_vector(here, *result);
}

SteppedThread::Outcome SteppedThread::repeat(const Here& here, std::size_t size) {
  const auto source = read_wide(here, 1);
  if (!source.has_value()) return Outcome::kUnknown;
  Wide result;
  for (std::size_t byte = 0; byte < sizeof result.bits; byte += size) {
    result.take(*source, 0, byte, size);
  }
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::insert(const Here& here, std::size_t size) {
  const std::size_t count = here.count();
  auto result = read_wide(here, count - 3);
  const auto part = read_wide(here, count - 2);
  if (!result.has_value() || !part.has_value()) return Outcome::kUnknown;
  const std::size_t index = here.operand(count - 1).imm.value.u % (kHalf / size);
  result->take(*part, 0, index * size, size);
  return write_vector(here, *result);
}

SteppedThread::Outcome SteppedThread::extract(const Here& here, std::size_t size) {
  const auto source = read_wide(here, 1);
  if (!source.has_value()) return Outcome::kUnknown;
  const std::size_t index = here.operand(2).imm.value.u % (kHalf / size);
  Wide part = known_zero();
  part.take(*source, index * size, 0, size);
  return write(here, 0, {part.bits[0], part.known[0]});
}

SteppedThread::Outcome SteppedThread::insert_half(const Here& here) {
  auto result = read_wide(here, 1);
  const auto half = read_wide(here, 2);
  if (!result.has_value() || !half.has_value()) return Outcome::kUnknown;
  result->take(*half, 0, (here.operand(3).imm.value.u & 1) * kHalf, kHalf);
  return write_vector(here, *result);
}

SteppedThread::Outcome SteppedThread::extract_half(const Here& here) {
  const auto source = read_wide(here, 1);
  if (!source.has_value()) return Outcome::kUnknown;
  Wide result;
  result.take(*source, (here.operand(2).imm.value.u & 1) * kHalf, 0, kHalf);
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::interleave(const Here& here, std::size_t size, bool of_high) {
  const std::size_t count = here.count();
  const auto even = read_wide(here, count - 2);
  const auto odd = read_wide(here, count - 1);
  if (!even.has_value() || !odd.has_value()) return Outcome::kUnknown;
  Wide result;
  for (std::size_t half = 0; half < sizeof result.bits; half += kHalf) {
    std::size_t from = half + (of_high ? kHalf / 2 : 0);
    for (std::size_t to = half; to < half + kHalf; to += 2 * size, from += size) {
      result.take(*even, from, to, size);
      result.take(*odd, from, to + size, size);
    }
  }
  return write_vector(here, result);
}

// The first half of the lanes comes from the one source, the second from the other.
SteppedThread::Outcome SteppedThread::shuffle(const Here& here, std::size_t size) {
  const std::size_t count = here.count();
  const bool has_one_source =
      here.mnemonic() == ZYDIS_MNEMONIC_PSHUFD || here.mnemonic() == ZYDIS_MNEMONIC_VPSHUFD;
  const auto one = read_wide(here, has_one_source ? count - 2 : count - 3);
  const auto other = read_wide(here, count - 2);
  if (!one.has_value() || !other.has_value()) return Outcome::kUnknown;
  std::uint64_t order = here.operand(count - 1).imm.value.u;
  const std::size_t lanes = kHalf / size;
  Wide result;
  for (std::size_t half = 0; half < sizeof result.bits; half += kHalf) {
    // Four lanes use the same order in each half; of two, each has a bit of its own.
    if (half != 0 && lanes == 4) order = here.operand(count - 1).imm.value.u;
    for (std::size_t lane = 0; lane < lanes; ++lane, order /= lanes) {
      const Wide& source = lane < lanes / 2 ? *one : *other;
      result.take(source, half + order % lanes * size, half + lane * size, size);
    }
  }
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::shift_bytes(const Here& here) {
  const std::size_t count = here.count();
  const auto source = read_wide(here, count - 2);
  if (!source.has_value()) return Outcome::kUnknown;
  const std::size_t by = std::min<std::size_t>(here.operand(count - 1).imm.value.u & 0xff, kHalf);
  const bool is_left =
      here.mnemonic() == ZYDIS_MNEMONIC_PSLLDQ || here.mnemonic() == ZYDIS_MNEMONIC_VPSLLDQ;
  Wide result = known_zero();
  for (std::size_t half = 0; half < sizeof result.bits; half += kHalf) {
    result.take(*source, half + (is_left ? 0 : by), half + (is_left ? by : 0), kHalf - by);
  }
  return write_vector(here, result);
}

SteppedThread::Outcome SteppedThread::blend(const Here& here, std::size_t size) {
  auto result = read_wide(here, 1);
  const auto other = read_wide(here, 2);
  const auto mask = read_wide(here, 3);
  if (!result.has_value() || !other.has_value() || !mask.has_value()) return Outcome::kUnknown;
  for (std::size_t byte = 0; byte < sizeof result->bits; byte += size) {
    const auto sign = mask->lane<std::uint8_t>(byte + size - 1);
    if (!sign.is_known) {
      result->take(Wide{}, byte, byte, size);
    } else if ((sign.bits & 0x80) != 0) {
      result->take(*other, byte, byte, size);
    }
  }
  return write_vector(here, *result);
}

SteppedThread::Outcome SteppedThread::signs(const Here& here, std::size_t size) {
  const auto source = read_wide(here, 1);
  if (!source.has_value() || !here.is_vector(1)) return Outcome::kUnknown;
  Value result = known(0);
  for (std::size_t lane = 0; lane < here.bytes(1) / size; ++lane) {
    const auto sign = source->lane<std::uint8_t>(lane * size + size - 1);
    const std::uint64_t bit = std::uint64_t{1} << lane;
    if ((sign.bits & 0x80) != 0) result.bits |= bit;
    if (!sign.is_known) result.known &= ~bit;
  }
  return write(here, 0, result);
}

SteppedThread::Outcome SteppedThread::clear_upper_halves() {
  for (std::size_t reg = 0; reg < 16; ++reg) {
    vectors_[reg].take(known_zero(), kHalf, kHalf, kHalf);
  }
  return Outcome::kNext;
}

#undef EITHER

}  // namespace amasia::omp
