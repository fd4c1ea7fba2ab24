// SPDX-License-Identifier: Apache-2.0
#include "omp/code/spin_loop.hpp"

#include <bitset>

#include "omp/code/instruction.hpp"

namespace amasia::omp {
namespace {

// Loops that wait are short.
constexpr std::size_t kMostInstructions = 24;

// A fence that is written as a change of the stack by nothing (gcc has it for mfence).
bool is_fence(const Instruction& instruction) {
  const auto& operands = instruction.all_operands;
  return (instruction.what.attributes & ZYDIS_ATTRIB_HAS_LOCK) != 0 &&
         instruction.what.mnemonic == ZYDIS_MNEMONIC_OR &&
         operands[0].type == ZYDIS_OPERAND_TYPE_MEMORY &&
         operands[0].mem.base == ZYDIS_REGISTER_RSP &&
         operands[1].type == ZYDIS_OPERAND_TYPE_IMMEDIATE && operands[1].imm.value.u == 0;
}

// What does nothing but read and compute.
bool is_harmless(const Instruction& instruction) {
  if (is_fence(instruction)) return true;
  switch (instruction.what.meta.category) {
    case ZYDIS_CATEGORY_DATAXFER:
    case ZYDIS_CATEGORY_BINARY:
    case ZYDIS_CATEGORY_LOGICAL:
    case ZYDIS_CATEGORY_SHIFT:
    case ZYDIS_CATEGORY_BITBYTE:
    case ZYDIS_CATEGORY_CONVERT:
    case ZYDIS_CATEGORY_SETCC:
    case ZYDIS_CATEGORY_CMOV:
    case ZYDIS_CATEGORY_NOP:
    case ZYDIS_CATEGORY_WIDENOP:
    case ZYDIS_CATEGORY_SSE:
    case ZYDIS_CATEGORY_LOGICAL_FP:
    case ZYDIS_CATEGORY_AVX:
      break;
    default:
      switch (instruction.what.mnemonic) {
        case ZYDIS_MNEMONIC_LEA:
        case ZYDIS_MNEMONIC_PAUSE:
        case ZYDIS_MNEMONIC_MFENCE:
        case ZYDIS_MNEMONIC_LFENCE:
        case ZYDIS_MNEMONIC_SFENCE:
          break;
        default:
          return false;
      }
  }
  for (const ZydisDecodedOperand& operand : instruction.operands()) {
    if (is_access_to_memory(operand) && is_written(operand)) return false;
  }
  return true;
}

// Registers by their widest names; the flags are one of them.
using Registers = std::bitset<ZYDIS_REGISTER_MAX_VALUE + 1>;

// What a round reads before it has written it must be what it finds in each.
class Round {
 public:
  void add(const Instruction& instruction) {
    for (const ZydisDecodedOperand& operand : instruction.operands()) note_reads(operand);
    for (const ZydisDecodedOperand& operand : instruction.operands()) note_writes(operand);
  }
  bool is_like_any_other() const { return (needed_ & written_).none(); }

 private:
  static ZydisRegister whole(ZydisRegister reg) {
    const ZydisRegister largest =
        ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    return largest == ZYDIS_REGISTER_NONE ? reg : largest;
  }
  void need(ZydisRegister reg) {
    if (reg == ZYDIS_REGISTER_NONE || reg == ZYDIS_REGISTER_RIP) return;
    if (!written_.test(whole(reg))) needed_.set(whole(reg));
  }
  void note_reads(const ZydisDecodedOperand& operand) {
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      need(operand.mem.base);
      need(operand.mem.index);
    }
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER) return;
    constexpr auto kMayRead = ZYDIS_OPERAND_ACTION_MASK_READ | ZYDIS_OPERAND_ACTION_CONDWRITE;
    if ((operand.actions & kMayRead) != 0) need(operand.reg.value);
  }
  void note_writes(const ZydisDecodedOperand& operand) {
    if (operand.type != ZYDIS_OPERAND_TYPE_REGISTER || !is_written(operand)) return;
    if (operand.reg.value != ZYDIS_REGISTER_RIP) written_.set(whole(operand.reg.value));
  }

  Registers needed_, written_;
};

struct Branch {
  const Byte* target = nullptr;
  std::uint8_t condition = SpinLoop::kAlways;
};

// A direct jump.
std::optional<Branch> branch_of(const Instruction& instruction, const Byte* next) {
  const ZydisDecodedInstruction& what = instruction.what;
  const bool is_direct = instruction.all_operands[0].type == ZYDIS_OPERAND_TYPE_IMMEDIATE;
  if (!is_direct) return std::nullopt;
  const Byte* const target = next + instruction.all_operands[0].imm.value.s;
  if (what.mnemonic == ZYDIS_MNEMONIC_JMP) return Branch{target};
  const bool is_short = what.opcode_map == ZYDIS_OPCODE_MAP_DEFAULT && (what.opcode & 0xf0) == 0x70;
  const bool is_near = what.opcode_map == ZYDIS_OPCODE_MAP_0F && (what.opcode & 0xf0) == 0x80;
  if (!is_short && !is_near) return std::nullopt;
  return Branch{target, static_cast<std::uint8_t>(what.opcode & 15)};
}

// The first jump back from `at` on, to there or before it.
std::optional<SpinLoop> loop_around(const InstructionReader& reader, const Byte* at) {
  const Byte* here = at;
  for (std::size_t count = 0; count < kMostInstructions; ++count) {
    Instruction instruction;
    if (!reader.read(here, instruction)) return std::nullopt;
    const Byte* const next = here + instruction.what.length;
    const auto branch = branch_of(instruction, next);
    if (branch.has_value() && branch->target <= at) {
      return SpinLoop{branch->target, here, next, branch->condition};
    }
    const bool ends = !branch.has_value() && !is_harmless(instruction);
    if (ends || (branch.has_value() && branch->condition == SpinLoop::kAlways)) return std::nullopt;
    here = next;
  }
  return std::nullopt;
}

}  // namespace

bool jumps_back(const SpinLoop& loop, std::uint64_t flags) noexcept {
  if (loop.condition == SpinLoop::kAlways) return true;
  const bool carry = (flags & 0x1) != 0, parity = (flags & 0x4) != 0, zero = (flags & 0x40) != 0,
             sign = (flags & 0x80) != 0, overflow = (flags & 0x800) != 0;
  bool holds = false;
  switch (loop.condition >> 1) {
    case 0: holds = overflow; break;
    case 1: holds = carry; break;
    case 2: holds = zero; break;
    case 3: holds = carry || zero; break;
    case 4: holds = sign; break;
    case 5: holds = parity; break;
    case 6: holds = sign != overflow; break;
    case 7: holds = zero || sign != overflow; break;
    default: break;
  }
  return holds != ((loop.condition & 1) != 0);
}

std::optional<SpinLoop> spin_loop_at(const Byte* at) {
  return spin_loop_at(at, ProgramCode::around(at));
}

std::optional<SpinLoop> spin_loop_at(const Byte* at, const ProgramCode& code) noexcept {
  if (!code.holds(at)) return std::nullopt;
  const InstructionReader reader(code);
  const auto loop = loop_around(reader, at);
  if (!loop.has_value()) return std::nullopt;
  Round round;
  bool passes_at = false, reads_memory = false;
  for (const Byte* here = loop->begin; here != loop->next;) {
    Instruction instruction;
    if (here > loop->branch || !reader.read(here, instruction)) return std::nullopt;
    const Byte* const next = here + instruction.what.length;
    passes_at = passes_at || here == at;
    if (const auto branch = branch_of(instruction, next); branch.has_value()) {
      const bool leaves = branch->target < loop->begin || branch->target >= loop->next;
      if (here != loop->branch && !leaves) return std::nullopt;
    } else if (!is_harmless(instruction)) {
      return std::nullopt;
    }
    for (const ZydisDecodedOperand& operand : instruction.operands()) {
      reads_memory = reads_memory || (is_access_to_memory(operand) && !is_fence(instruction));
    }
    round.add(instruction);
    here = next;
  }
  return passes_at && reads_memory && round.is_like_any_other() ? loop : std::nullopt;
}

}  // namespace amasia::omp
