// SPDX-License-Identifier: Apache-2.0
// For tests: runs short sequences of instructions in the processor and in a stepped thread.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "omp/code/stepped_thread.hpp"

namespace amasia::omp {
namespace {

// A sequence stands between `begin`, with the flags that it must define and what else there is to
// know, and `end`; `one` is a sequence of one instruction. They follow STEPPED_SEQUENCES_BEGIN.
// R14 points to the stack, R15 to constants.
asm(R"(
  .set c, 0x1                   # the flags
  .set p, 0x4
  .set z, 0x40
  .set s, 0x80
  .set o, 0x800
  .set all, c|p|z|s|o
  .set avx, 0x10000             # needs AVX2
  .set may_fail, 0x20000        # a division may have no result
  .set newest, 0x40000          # needs AVX-512
  .set fused, 0x80000           # needs FMA

  .macro begin flags=0
  .pushsection .data.rel.ro.stepped, "aw"
  .quad 77f, \flags
  .popsection
77:
  .endm
  .macro end
  ret
  .endm
  .macro one flags, instruction:vararg
  begin \flags
  \instruction
  end
  .endm

  .pushsection .text
  # Vectors from and to RAX.
stepped_loads_newer:
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  vmovdqu 32*\number(%rax), %ymm\number
  .endr
  ret
stepped_loads_older:
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movdqu 32*\number(%rax), %xmm\number
  .endr
  ret
stepped_stores_newer:
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  vmovdqu %ymm\number, 32*\number(%rax)
  .endr
  ret
stepped_stores_older:
  .irp number, 0, 1, 2, 3, 4, 5, 6, 7
  movdqu %xmm\number, 32*\number(%rax)
  .endr
  ret
stepped_flags:
  setc %al
  setp %al
  setz %al
  sets %al
  seto %al

  # Runs the code at RSI in the processor with the 16 registers at RDI, and leaves there what it
  # makes of them; the flags follow, and a function before and one after, for the vectors.
stepped_natively:
  .irp saved, rbx, rbp, r12, r13, r14, r15
  push %\saved
  .endr
  mov %rdi, stepped_registers(%rip)
  mov %rsi, stepped_code(%rip)
  mov %rsp, stepped_own_stack(%rip)
  lea 256(%rdi), %rax
  call *136(%rdi)
  mov 0(%rdi), %rax
  mov 8(%rdi), %rcx
  mov 16(%rdi), %rdx
  mov 24(%rdi), %rbx
  mov 32(%rdi), %rsp
  mov 40(%rdi), %rbp
  mov 48(%rdi), %rsi
  mov 64(%rdi), %r8
  mov 72(%rdi), %r9
  mov 80(%rdi), %r10
  mov 88(%rdi), %r11
  mov 96(%rdi), %r12
  mov 104(%rdi), %r13
  mov 112(%rdi), %r14
  mov 120(%rdi), %r15
  mov 56(%rdi), %rdi
  call *stepped_code(%rip)
  mov %rsp, stepped_its_stack(%rip)
  mov stepped_own_stack(%rip), %rsp
  pushfq
  push %rdi
  mov stepped_registers(%rip), %rdi
  pop 56(%rdi)
  pop 128(%rdi)
  mov %rax, 0(%rdi)
  mov %rcx, 8(%rdi)
  mov %rdx, 16(%rdi)
  mov %rbx, 24(%rdi)
  mov stepped_its_stack(%rip), %rax
  mov %rax, 32(%rdi)
  mov %rbp, 40(%rdi)
  mov %rsi, 48(%rdi)
  mov %r8, 64(%rdi)
  mov %r9, 72(%rdi)
  mov %r10, 80(%rdi)
  mov %r11, 88(%rdi)
  mov %r12, 96(%rdi)
  mov %r13, 104(%rdi)
  mov %r14, 112(%rdi)
  mov %r15, 120(%rdi)
  lea 256(%rdi), %rax
  call *144(%rdi)
  .irp saved, r15, r14, r13, r12, rbp, rbx
  pop %\saved
  .endr
  ret
  .popsection
  .pushsection .bss, "aw", @nobits
  .p2align 3
stepped_registers: .skip 8
stepped_code: .skip 8
stepped_own_stack: .skip 8
stepped_its_stack: .skip 8
  .popsection
)");

#define STEPPED_SEQUENCES_BEGIN                   \
  "  .pushsection .data.rel.ro.stepped, \"aw\"\n" \
  "  .p2align 3\n"                                \
  "stepped_sequences:\n"                          \
  "  .popsection\n"                               \
  "  .pushsection .text\n"
#define STEPPED_SEQUENCES_END                     \
  "  .popsection\n"                               \
  "  .pushsection .data.rel.ro.stepped, \"aw\"\n" \
  "  .quad 0, 0\n"                                \
  "  .popsection\n"

using Outcome = SteppedThread::Outcome;

struct Sequence {
  const Byte* code;
  std::uint64_t properties;
};
constexpr std::uint64_t kNeedsAvx = 0x10000;
constexpr std::uint64_t kMayFail = 0x20000;
constexpr std::uint64_t kNeedsNewest = 0x40000;
constexpr std::uint64_t kNeedsFused = 0x80000;

struct Registers {
  std::array<std::uint64_t, 16> general{};
  std::uint64_t flags = 0;
  const Byte* loads = nullptr;
  const Byte* stores = nullptr;
  std::array<std::uint64_t, 13> unused{};
  std::array<std::uint64_t, 32> vectors{};
};
static_assert(offsetof(Registers, vectors) == 256);

extern "C" {
extern const Sequence stepped_sequences[];
extern const Byte stepped_loads_newer[];
extern const Byte stepped_loads_older[];
extern const Byte stepped_stores_newer[];
extern const Byte stepped_stores_older[];
extern const Byte stepped_flags[];
void stepped_natively(Registers* registers, const Byte* code);
}

constexpr std::size_t kStackSize = 8'192;
constexpr std::size_t kPlaceOfPointer = kStackSize - 1'024;  // of R14
constexpr std::size_t kPlaceOfVectors = 4'096;
constexpr std::uint64_t kAllFlags = 0x8c5;

// Registers with numbers of all kinds.
class Numbers {
 public:
  std::uint64_t general() {
    switch (random_() % 6) {
      case 0:
        return random_();
      case 1:
        return random_() % 8;
      case 2:
        return ~(random_() % 8);
      case 3:
        return std::uint64_t{1} << (random_() % 64);
      case 4:
        return (std::uint64_t{1} << (random_() % 64)) - 1;
      default:
        return random_() & 0xffff'ffff;
    }
  }

  // Two floats, or a double, or anything.
  std::uint64_t of_vector() {
    constexpr std::array<std::uint64_t, 10> kDoubles = {
        0x3ff0000000000000, 0x8000000000000000, 0, 0x7ff0000000000000, 0xfff0000000000000,
        0x7ff8000000001234, 0xfff4000000000001, 1, 0xc008000000000000, 0x40dfffc000000000};
    constexpr std::array<std::uint32_t, 9> kFloats = {
        0x3f800000, 0x80000000, 0, 0x7f800000, 0xff800000, 0x7fc01234, 0xffa00001, 1, 0xc0400000};
    switch (random_() % 4) {
      case 0:
        return random_();
      case 1:
        return kDoubles[random_() % kDoubles.size()];
      case 2:
        return general();
      default:
        return (std::uint64_t{kFloats[random_() % kFloats.size()]} << 32) |
               kFloats[random_() % kFloats.size()];
    }
  }

 private:
  std::mt19937_64 random_{20'240'229};
};

class SteppedSequences : public testing::Test {
 protected:
  void compare_all() {
    constexpr int kRounds = 60;
    int failed = 0;
    int all = 0;
    for (const Sequence* sequence = stepped_sequences; sequence->code != nullptr; ++sequence) {
      const std::uint64_t properties = sequence->properties;
      if (!can_run(properties)) continue;
      SCOPED_TRACE(text_of(sequence->code));
      for (int round = 0; round < kRounds && !HasFailure(); ++round) {
        choose();
        if ((properties & kMayFail) != 0) ++all;
        if (pretend(sequence->code)) {
          compare(sequence->code, properties);
        } else {
          EXPECT_NE(properties & kMayFail, 0U) << "not known";
          ++failed;
        }
      }
      if (HasFailure()) return;
    }
    EXPECT_LE(failed, all * 9 / 10) << "divisions without a result";
  }

 private:
  static Instruction instruction_at(const Byte* at) {
    static const ProgramCode code = ProgramCode::around(stepped_flags);
    static const InstructionReader reader(code);
    Instruction instruction;
    EXPECT_TRUE(reader.read(at, instruction));
    return instruction;
  }

  static std::string text_of(const Byte* code) {
    std::string text;
    while (true) {
      const Instruction instruction = instruction_at(code);
      if (instruction.what.mnemonic == ZYDIS_MNEMONIC_RET) return text;
      text += std::string(ZydisMnemonicGetString(instruction.what.mnemonic)) + " ";
      code += instruction.what.length;
    }
  }

  static Outcome run(SteppedThread& thread, const Byte* code) {
    for (int steps = 0; steps < 1'000; ++steps) {
      const Outcome outcome = thread.step(instruction_at(code), code, code);
      if (outcome != Outcome::kNext) return outcome;
    }
    return Outcome::kUnknown;
  }

  static bool has_avx() { return __builtin_cpu_supports("avx2") != 0; }
  static bool can_run(std::uint64_t properties) {
    if ((properties & kNeedsNewest) != 0 && __builtin_cpu_supports("avx512vl") == 0) return false;
    if ((properties & kNeedsNewest) != 0 && __builtin_cpu_supports("avx512bw") == 0) return false;
    if ((properties & kNeedsFused) != 0 && __builtin_cpu_supports("fma") == 0) return false;
    return (properties & (kNeedsAvx | kNeedsNewest | kNeedsFused)) == 0 || has_avx();
  }
  static const Byte* loads() { return has_avx() ? stepped_loads_newer : stepped_loads_older; }
  static const Byte* stores() { return has_avx() ? stepped_stores_newer : stepped_stores_older; }

  void choose() {
    for (std::uint64_t& reg : before_.general) reg = numbers_.general();
    for (std::uint64_t& word : before_.vectors) word = numbers_.of_vector();
    for (std::uint64_t& word : constants_) word = numbers_.of_vector();
    for (std::size_t place = 0; place < bytes_before_.size(); place += sizeof(std::uint64_t)) {
      const std::uint64_t word = numbers_.general();
      std::memcpy(bytes_before_.data() + place, &word, sizeof word);
    }
    before_.general[14] = address_of(kPlaceOfPointer);
    before_.general[15] = reinterpret_cast<std::uintptr_t>(constants_.data());
    before_.loads = loads();
    before_.stores = stores();
  }

  std::uint64_t address_of(std::size_t place) const {
    return reinterpret_cast<std::uintptr_t>(stack_.data() + place);
  }

  // False: it is not known what the code does.
  bool pretend(const Byte* code) {
    SteppedThread thread(stack_);
    thread.set(ZYDIS_REGISTER_RAX, reinterpret_cast<std::uintptr_t>(before_.vectors.data()));
    EXPECT_EQ(run(thread, loads()), Outcome::kReturned);
    before_.general[4] = thread.get(ZYDIS_REGISTER_RSP).value();
    const auto source = reinterpret_cast<std::uintptr_t>(bytes_before_.data());
    EXPECT_EQ(thread.copy(address_of(0), source, bytes_before_.size()), Outcome::kNext);
    thread.push(SteppedThread::kReturn);
    for (int reg = 0; reg < 16; ++reg) {
      if (reg != 4) thread.set(whole(reg), before_.general[static_cast<std::size_t>(reg)]);
    }
    const Outcome outcome = run(thread, code);
    if (outcome == Outcome::kUnknown) return false;
    EXPECT_EQ(outcome, Outcome::kReturned);
    bytes_pretended_ = stack_;
    for (int reg = 0; reg < 16; ++reg) {
      const auto value = thread.get(whole(reg));
      EXPECT_TRUE(value.has_value()) << reg;
      pretended_.general[static_cast<std::size_t>(reg)] = value.value_or(0);
    }
    note_flags(thread);
    note_vectors(thread);
    return true;
  }

  static ZydisRegister whole(int number) {
    return static_cast<ZydisRegister>(ZYDIS_REGISTER_RAX + number);
  }

  void note_flags(SteppedThread& thread) {
    const Byte* at = stepped_flags;
    pretended_.flags = 0;
    known_flags_ = 0;
    for (const std::uint64_t flag : {0x1, 0x4, 0x40, 0x80, 0x800}) {
      const Instruction instruction = instruction_at(at);
      const Byte* next = nullptr;
      thread.set(ZYDIS_REGISTER_RAX, 0);
      if (thread.step(instruction, at, next) == Outcome::kNext) {
        known_flags_ |= flag;
        if (thread.get(ZYDIS_REGISTER_RAX) == 1) pretended_.flags |= flag;
      }
      at += instruction.what.length;
    }
  }

  void note_vectors(SteppedThread& thread) {
    thread.set(ZYDIS_REGISTER_RSP, before_.general[4]);
    thread.push(SteppedThread::kReturn);
    thread.set(ZYDIS_REGISTER_RAX, address_of(kPlaceOfVectors));
    EXPECT_EQ(run(thread, stores()), Outcome::kReturned);
    // A store elsewhere tells whether all is known.
    std::memcpy(pretended_.vectors.data(), stack_.data() + kPlaceOfVectors,
                sizeof pretended_.vectors);
    const auto elsewhere = reinterpret_cast<std::uintptr_t>(pretended_.vectors.data());
    for (std::size_t number = 0; number < 8; ++number) {
      EXPECT_EQ(thread.copy(elsewhere + 32 * number, address_of(kPlaceOfVectors) + 32 * number,
                            has_avx() ? 32 : 16),
                Outcome::kNext)
          << number;
    }
  }

  void compare(const Byte* code, std::uint64_t properties) {
    std::ranges::copy(bytes_before_, stack_.begin());
    Registers registers = before_;
    stepped_natively(&registers, code);
    EXPECT_EQ(pretended_.general, registers.general);
    for (std::size_t word = 0; word < registers.vectors.size(); ++word) {
      if (has_avx() || word % 4 < 2) {
        EXPECT_EQ(pretended_.vectors[word], registers.vectors[word])
            << "word " << word % 4 << " of vector " << word / 4;
      }
    }
    EXPECT_EQ(pretended_.flags, registers.flags & known_flags_);
    EXPECT_EQ(known_flags_ & properties & kAllFlags, properties & kAllFlags);
    const std::size_t to_compare = before_.general[4] - 8 - address_of(0);  // no return address
    const auto pretended = std::span(bytes_pretended_).first(to_compare);
    EXPECT_EQ(std::ranges::mismatch(pretended, stack_).in1 - pretended.begin(),
              static_cast<std::ptrdiff_t>(to_compare))
        << "the place on the stack";
  }

  Numbers numbers_;
  alignas(64) std::array<std::byte, kStackSize> stack_{};
  std::array<std::byte, kStackSize> bytes_before_{};
  std::array<std::byte, kStackSize> bytes_pretended_{};
  alignas(64) std::array<std::uint64_t, 64> constants_{};
  Registers before_;
  Registers pretended_;
  std::uint64_t known_flags_ = 0;
};

}  // namespace
}  // namespace amasia::omp
