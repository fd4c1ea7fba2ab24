// SPDX-License-Identifier: Apache-2.0
#include "omp/code/instruction.hpp"

namespace amasia::omp {

bool is_written(const ZydisDecodedOperand& operand) {
  return (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
}

bool is_access_to_memory(const ZydisDecodedOperand& operand) {
  return operand.type == ZYDIS_OPERAND_TYPE_MEMORY && operand.mem.type != ZYDIS_MEMOP_TYPE_AGEN;
}

bool is_whole_register(ZydisRegister reg) {
  return ZydisRegisterGetClass(reg) == ZYDIS_REGCLASS_GPR64 && reg != ZYDIS_REGISTER_RIP;
}

ZydisRegister whole_register(ZydisRegister reg) {
  const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
  return is_whole_register(whole) ? whole : ZYDIS_REGISTER_NONE;
}

InstructionReader::InstructionReader(const ProgramCode& code) : code_(code) {
  ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
}

bool InstructionReader::read(const Byte* at, Instruction& instruction) const {
  if (!code_.holds(at)) return false;
  const auto room = static_cast<ZyanUSize>(code_.end() - at);
  return ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder_, at, room, &instruction.what,
                                             instruction.all_operands.data()));
}

std::optional<InstructionReader::Target> InstructionReader::target_of(
    const Instruction& instruction, const Byte* next) const {
  const ZydisDecodedOperand& to = instruction.all_operands[0];
  if (to.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && to.imm.is_relative != 0) {
    return target_at(next + to.imm.value.s);
  }
  const bool by_slot = to.type == ZYDIS_OPERAND_TYPE_MEMORY &&
                       to.mem.base == ZYDIS_REGISTER_RIP && to.mem.index == ZYDIS_REGISTER_NONE;
  if (!by_slot) return std::nullopt;
  const void* const value = code_.at_slot(next + to.mem.disp.value);
  return value != nullptr ? target_at(static_cast<const Byte*>(value)) : std::nullopt;
}

std::optional<InstructionReader::Target> InstructionReader::target_at(const Byte* address) const {
  if (!code_.holds(address)) return Target{nullptr, address};
  if (const void* const there = code_.through_stub(address); there != nullptr) {
    return target_at(static_cast<const Byte*>(there));
  }
  return Target{address, nullptr};
}

}  // namespace amasia::omp
