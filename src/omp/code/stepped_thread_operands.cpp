// SPDX-License-Identifier: Apache-2.0
// Where the operands of a stepped thread's instructions are, in registers and in memory.
#include <algorithm>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

// Nothing is mapped below the one, nor can be above the other.
constexpr std::uint64_t kLowestAddress = 65'536;
constexpr std::uint64_t kHighestAddress = std::uint64_t{1} << 47;
// What the compiler's check of the stack compares with itself.
constexpr std::int64_t kPlaceOfStackGuard = 0x28;
constexpr std::uint64_t kStackGuard = 0x5eed'5eed'5eed'5e00;

bool is_high_byte(ZydisRegister reg) {
  return reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH;
}

}  // namespace

std::uint64_t SteppedThread::place_of(std::uint64_t address) const {
  return address - reinterpret_cast<std::uintptr_t>(stack_.data());
}

bool SteppedThread::is_own(std::uint64_t address, std::size_t size) const {
  const std::uint64_t place = place_of(address);
  return place < stack_.size() && stack_.size() - place >= size;
}

bool SteppedThread::may_be_own(std::uint64_t address, std::size_t size) const {
  return is_own(address, 1) || is_own(address + size - 1, 1);
}

std::optional<SteppedThread::Wide> SteppedThread::load(std::uint64_t address,
                                                       std::size_t size) const {
  if (size == 0 || size > sizeof(Wide::bits)) return std::nullopt;
  Wide value;
  if (is_own(address, size)) {
    std::memcpy(&value.bits, stack_.data() + place_of(address), size);
    std::memcpy(&value.known, known_on_stack_.data() + place_of(address), size);
    return value;
  }
  if (may_be_own(address, size)) return std::nullopt;
  if (address < kLowestAddress || address >= kHighestAddress - size) return std::nullopt;
  std::memcpy(&value.bits, reinterpret_cast<const void*>(address), size);
  std::memset(&value.known, 0xff, size);
  return value;
}

SteppedThread::Outcome SteppedThread::store(std::uint64_t address, const Wide& value,
                                            std::size_t size) {
  const auto there = load(address, size);
  if (!there.has_value()) return Outcome::kUnknown;
  if (is_own(address, size)) {
    std::memcpy(stack_.data() + place_of(address), &value.bits, size);
    std::memcpy(known_on_stack_.data() + place_of(address), &value.known, size);
    lowest_known_ = std::min<std::size_t>(lowest_known_, place_of(address));
    return Outcome::kNext;
  }
  // All of what is outside of the stack is known.
  if (std::memcmp(&value.known, &there->known, size) != 0) return Outcome::kUnknown;
  has_stored_elsewhere_ = true;
  return std::memcmp(&value.bits, &there->bits, size) == 0 ? Outcome::kNext : Outcome::kChanges;
}

SteppedThread::Value SteppedThread::general(ZydisRegister reg) const {
  const Value& whole = general_[whole_register(reg) - ZYDIS_REGISTER_RAX];
  const unsigned shift = is_high_byte(reg) ? 8 : 0;
  return {whole.bits >> shift, whole.known >> shift};
}

void SteppedThread::set_general(ZydisRegister reg, const Value& value) {
  Value& whole = general_[whole_register(reg) - ZYDIS_REGISTER_RAX];
  const unsigned width = ZydisRegisterGetWidth(ZYDIS_MACHINE_MODE_LONG_64, reg);
  if (width == 64) {
    whole = value;
  } else if (width == 32) {
    whole = {value.bits & mask_of(32), value.known | ~mask_of(32)};
  } else {
    const unsigned shift = is_high_byte(reg) ? 8 : 0;
    const std::uint64_t mask = mask_of(width) << shift;
    whole.bits = (whole.bits & ~mask) | ((value.bits << shift) & mask);
    whole.known = (whole.known & ~mask) | ((value.known << shift) & mask);
  }
}

// Known as a whole or not at all.
SteppedThread::Value SteppedThread::sum_of_address(const Here& here,
                                                   const ZydisDecodedOperand& operand) const {
  Value sum = known(static_cast<std::uint64_t>(operand.mem.disp.value));
  if (here.instruction.what.address_width != 64) return Value{};
  const auto add = [&sum](const Value& part, std::uint64_t scale) {
    sum.bits += part.bits * scale;
    if (!is_known(part, 64)) sum.known = 0;
  };
  if (operand.mem.base == ZYDIS_REGISTER_RIP) {
    add(known(reinterpret_cast<std::uintptr_t>(here.end)), 1);
  } else if (operand.mem.base != ZYDIS_REGISTER_NONE) {
    if (!is_whole_register(operand.mem.base)) return Value{};
    add(general(operand.mem.base), 1);
  }
  if (operand.mem.index != ZYDIS_REGISTER_NONE) {
    if (!is_whole_register(operand.mem.index)) return Value{};
    add(general(operand.mem.index), operand.mem.scale);
  }
  return sum;
}

std::optional<std::uint64_t> SteppedThread::address_of(const Here& here,
                                                       const ZydisDecodedOperand& operand) const {
  const bool of_thread =
      operand.mem.segment == ZYDIS_REGISTER_FS || operand.mem.segment == ZYDIS_REGISTER_GS;
  if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM || of_thread) return std::nullopt;
  const Value sum = sum_of_address(here, operand);
  return is_known(sum, 64) ? std::optional(sum.bits) : std::nullopt;
}

std::optional<SteppedThread::Wide> SteppedThread::read_wide(const Here& here,
                                                            std::size_t index) const {
  const ZydisDecodedOperand& operand = here.operand(index);
  Value value;
  switch (operand.type) {
    case ZYDIS_OPERAND_TYPE_REGISTER: {
      const ZydisRegister reg = operand.reg.value;
      if (here.is_vector(index)) return vectors_[static_cast<std::size_t>(ZydisRegisterGetId(reg))];
      if (whole_register(reg) == ZYDIS_REGISTER_NONE) return std::nullopt;
      value = general(reg);
      break;
    }
    case ZYDIS_OPERAND_TYPE_IMMEDIATE:
      value = known(operand.imm.value.u);
      break;
    case ZYDIS_OPERAND_TYPE_MEMORY: {
      const auto& place = operand.mem;
      if (place.segment == ZYDIS_REGISTER_FS && place.base == ZYDIS_REGISTER_NONE &&
          place.index == ZYDIS_REGISTER_NONE && place.disp.value == kPlaceOfStackGuard &&
          operand.size == 64) {
        value = known(kStackGuard);
        break;
      }
      const auto address = address_of(here, operand);
      return address.has_value() ? load(*address, operand.size / 8) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
  return Wide{{value.bits}, {value.known}};
}

std::optional<SteppedThread::Value> SteppedThread::read(const Here& here, std::size_t index) const {
  if (here.width(index) > 64) return std::nullopt;
  const auto wide = read_wide(here, index);
  if (!wide.has_value()) return std::nullopt;
  return Value{wide->bits[0], wide->known[0]};
}

SteppedThread::Outcome SteppedThread::write(const Here& here, std::size_t index,
                                            const Value& value) {
  const ZydisDecodedOperand& operand = here.operand(index);
  if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER) {
    const ZydisRegister reg = operand.reg.value;
    if (whole_register(reg) == ZYDIS_REGISTER_NONE) return Outcome::kUnknown;
    set_general(reg, value);
    return Outcome::kNext;
  }
  if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY) return Outcome::kUnknown;
  const auto address = address_of(here, operand);
  if (!address.has_value()) return Outcome::kUnknown;
  return store(*address, Wide{{value.bits}, {value.known}}, operand.size / 8);
}

}  // namespace amasia::omp
