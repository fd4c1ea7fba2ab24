// SPDX-License-Identifier: Apache-2.0
// Single instructions of the program's code, decoded by Zydis, and where its calls and jumps lead.
// x86-64.
#pragma once

#include <Zydis/Zydis.h>

#include <array>
#include <optional>
#include <span>

#include "omp/code/program_code.hpp"

namespace amasia::omp {

struct Instruction {
  ZydisDecodedInstruction what;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> all_operands;

  // Those that are not written in the code, as the flags, come last.
  std::span<const ZydisDecodedOperand> operands() const {
    return {all_operands.data(), what.operand_count};
  }
  std::span<const ZydisDecodedOperand> visible_operands() const {
    return {all_operands.data(), what.operand_count_visible};
  }
};

bool is_written(const ZydisDecodedOperand& operand);
// An access, not the mere computation of an address.
bool is_access_to_memory(const ZydisDecodedOperand& operand);
// RAX to R15.
bool is_whole_register(ZydisRegister reg);
// What a register of a general kind is a part of, as RAX of AL; ZYDIS_REGISTER_NONE of others.
ZydisRegister whole_register(ZydisRegister reg);

class InstructionReader {
 public:
  explicit InstructionReader(const ProgramCode& code);

  // False: there is no instruction at `at`, or it is outside of the code.
  bool read(const Byte* at, Instruction& instruction) const;

  // Where a direct call or jump goes, or one through a slot of the object's table.
  struct Target {
    const Byte* here = nullptr;   // in the same object
    const void* there = nullptr;  // in another one
  };
  // Of an instruction with its end at `next`. nullopt: that is not known.
  std::optional<Target> target_of(const Instruction& instruction, const Byte* next) const;

 private:
  std::optional<Target> target_at(const Byte* address) const;

  const ProgramCode& code_;
  ZydisDecoder decoder_;
};

}  // namespace amasia::omp
