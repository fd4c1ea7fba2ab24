// SPDX-License-Identifier: Apache-2.0
#include "omp/code/stepped_thread.hpp"

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

asm(R"(
  .pushsection .text
  .p2align 4
stepped_stores_elsewhere:
  mov %rsi, (%rdi)
  ret
stepped_adds_elsewhere:
  lock add %esi, (%rdi)
  ret
stepped_exchanges_elsewhere:
  lock cmpxchg %rsi, (%rdi)
  ret
stepped_pushes_unknown:
  push %rbx
  push %rax
  mov %r12, -8(%rsp)
  mov -8(%rsp), %r12
  orq $0, -16(%rsp)
  xor %eax, %eax
  pop %rcx
  pop %rbx
  sete %dl
  movzbl %dl, %edx
  ret
stepped_stores_after_call:
  mov %eax, (%rdi)
stepped_keeps_after_call:
  mov %rbx, (%rdi)
  ret
stepped_reads_below_after_call:
  mov -8(%rsp), %rax
  mov %rax, (%rdi)
stepped_stores_unknown:
  mov %rbx, (%rdi)
stepped_stores_by_unknown:
  movl $0, (%rbx)
stepped_jumps_by_unknown:
  add %rbx, %rbx
  je stepped_stores_elsewhere
stepped_jumps_without_flags:
  je stepped_stores_elsewhere
stepped_stores_unknown_vector:
  addsd %xmm1, %xmm0
  movsd %xmm0, (%rdi)
stepped_calls:
  call stepped_stores_elsewhere
stepped_jumps_elsewhere:
  jmp *%rdi
stepped_asks_the_kernel:
  syscall
stepped_reads_a_thread_local:
  mov %fs:0, %rax
stepped_divides_by_zero:
  mov $7, %eax
  cltd
  xor %ecx, %ecx
  idiv %ecx
stepped_uses_its_stack_up:
  sub $0x1000, %rsp
  orq $0, (%rsp)
  jmp stepped_uses_its_stack_up
stepped_repeats_for_long:
  movabs $0x10000000, %rcx
  rep stosb
stepped_reads_nothing:
  mov 8(%rax), %rcx
stepped_moves_by_mask:
  vmovdqu32 %ymm0, -64(%rsp) {%k1}
stepped_loads_extended:
  fldt (%rsp)
stepped_checks_its_stack:
  sub $0x18, %rsp
  mov %fs:0x28, %rax
  mov %rax, 8(%rsp)
  xor %eax, %eax
  mov 8(%rsp), %rax
  sub %fs:0x28, %rax
  jne 1f
  add $0x18, %rsp
  ret
1:ud2
  .popsection
)");

extern "C" {
extern const Byte stepped_stores_elsewhere[];
extern const Byte stepped_adds_elsewhere[];
extern const Byte stepped_exchanges_elsewhere[];
extern const Byte stepped_pushes_unknown[];
extern const Byte stepped_stores_after_call[];
extern const Byte stepped_keeps_after_call[];
extern const Byte stepped_reads_below_after_call[];
extern const Byte stepped_stores_unknown[];
extern const Byte stepped_stores_by_unknown[];
extern const Byte stepped_jumps_by_unknown[];
extern const Byte stepped_jumps_without_flags[];
extern const Byte stepped_stores_unknown_vector[];
extern const Byte stepped_calls[];
extern const Byte stepped_jumps_elsewhere[];
extern const Byte stepped_asks_the_kernel[];
extern const Byte stepped_reads_a_thread_local[];
extern const Byte stepped_divides_by_zero[];
extern const Byte stepped_uses_its_stack_up[];
extern const Byte stepped_repeats_for_long[];
extern const Byte stepped_reads_nothing[];
extern const Byte stepped_moves_by_mask[];
extern const Byte stepped_loads_extended[];
extern const Byte stepped_checks_its_stack[];
}

using Outcome = SteppedThread::Outcome;

class SteppedThreadTest : public testing::Test {
 protected:
  static Outcome run(SteppedThread& thread, const void* function) {
    const ProgramCode code = ProgramCode::around(function);
    const InstructionReader reader(code);
    const auto* at = static_cast<const Byte*>(function);
    Instruction instruction;
    for (int steps = 0; steps < 1'000'000; ++steps) {
      if (!reader.read(at, instruction)) return Outcome::kUnknown;
      const Outcome outcome = thread.step(instruction, at, at);
      if (outcome != Outcome::kNext) return outcome;
    }
    ADD_FAILURE() << "it doesn't end";
    return Outcome::kUnknown;
  }
  Outcome run(const void* function) { return run(thread_, function); }

  template <typename Value>
  void pass(ZydisRegister reg, Value* address) {
    thread_.set(reg, reinterpret_cast<std::uintptr_t>(address));
  }

  alignas(16) std::array<std::byte, 65'536> stack_{};
  SteppedThread thread_{stack_};
  std::uint64_t elsewhere_ = 0x1234'5678'9abc'def0;
};

TEST_F(SteppedThreadTest, BeginsAsAtAFunctionsEntry) {
  const std::uint64_t top = thread_.get(ZYDIS_REGISTER_RSP).value();
  EXPECT_EQ(top % 16, 8U);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RBX), std::nullopt);
  const Byte* next = nullptr;
  EXPECT_EQ(thread_.leave_function(next), Outcome::kReturned);
}

TEST_F(SteppedThreadTest, MayStoreElsewhereWhatIsThere) {
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  thread_.set(ZYDIS_REGISTER_RSI, elsewhere_);
  EXPECT_EQ(run(stepped_stores_elsewhere), Outcome::kReturned);
}

TEST_F(SteppedThreadTest, ChangesNothingElsewhere) {
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  thread_.set(ZYDIS_REGISTER_RSI, elsewhere_ + 1);
  EXPECT_EQ(run(stepped_stores_elsewhere), Outcome::kChanges);
  EXPECT_EQ(elsewhere_, 0x1234'5678'9abc'def0U);
  EXPECT_EQ(thread_.fill(reinterpret_cast<std::uintptr_t>(&elsewhere_), std::byte{}, 1),
            Outcome::kChanges);
  EXPECT_EQ(elsewhere_, 0x1234'5678'9abc'def0U);
}

TEST_F(SteppedThreadTest, MayAddNothing) {
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  thread_.set(ZYDIS_REGISTER_RSI, 0);
  EXPECT_EQ(run(stepped_adds_elsewhere), Outcome::kReturned);
  SteppedThread other(stack_);
  other.set(ZYDIS_REGISTER_RDI, reinterpret_cast<std::uintptr_t>(&elsewhere_));
  other.set(ZYDIS_REGISTER_RSI, 1);
  EXPECT_EQ(run(other, stepped_adds_elsewhere), Outcome::kChanges);
  EXPECT_EQ(elsewhere_, 0x1234'5678'9abc'def0U);
}

TEST_F(SteppedThreadTest, ExchangesNothing) {
  const auto outcome_of = [this](std::uint64_t expected, std::uint64_t replacement) {
    thread_ = SteppedThread(stack_);
    pass(ZYDIS_REGISTER_RDI, &elsewhere_);
    thread_.set(ZYDIS_REGISTER_RAX, expected);
    thread_.set(ZYDIS_REGISTER_RSI, replacement);
    return run(stepped_exchanges_elsewhere);
  };
  EXPECT_EQ(outcome_of(5, 7), Outcome::kReturned) << "it isn't the expected value";
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RAX), elsewhere_);
  EXPECT_EQ(outcome_of(elsewhere_, elsewhere_), Outcome::kReturned);
  EXPECT_EQ(outcome_of(elsewhere_, 7), Outcome::kChanges);
  EXPECT_EQ(elsewhere_, 0x1234'5678'9abc'def0U);
}

TEST_F(SteppedThreadTest, CarriesAlongWhatIsNotKnown) {
  thread_.set(ZYDIS_REGISTER_RAX, 7);
  EXPECT_EQ(run(stepped_pushes_unknown), Outcome::kReturned);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RAX), 0U);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RCX), 7U);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RBX), std::nullopt);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_R12), std::nullopt);
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RDX), 1U);
}

TEST_F(SteppedThreadTest, LetsNothingDependOnWhatIsNotKnown) {
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  for (const Byte* const code :
       {stepped_stores_unknown, stepped_stores_by_unknown, stepped_jumps_by_unknown,
        stepped_jumps_without_flags, stepped_stores_unknown_vector}) {
    EXPECT_EQ(run(code), Outcome::kUnknown) << code - stepped_stores_unknown;
  }
}

TEST_F(SteppedThreadTest, ForgetsWhatACalledFunctionMayChange) {
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  thread_.set(ZYDIS_REGISTER_RAX, elsewhere_);
  thread_.set(ZYDIS_REGISTER_RBX, elsewhere_);
  thread_.forget_after_call();
  EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RAX), std::nullopt);
  EXPECT_EQ(run(stepped_keeps_after_call), Outcome::kUnknown) << "the address";
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  EXPECT_EQ(run(stepped_stores_after_call), Outcome::kUnknown);
  EXPECT_EQ(run(stepped_keeps_after_call), Outcome::kReturned);
}

TEST_F(SteppedThreadTest, ForgetsWhatIsBelowItsStackPointer) {
  const std::uint64_t top = thread_.get(ZYDIS_REGISTER_RSP).value();
  thread_.push(elsewhere_);
  thread_.push(elsewhere_);
  thread_.set(ZYDIS_REGISTER_RSP, top - 8);
  thread_.forget_after_call();
  thread_.set(ZYDIS_REGISTER_RSP, top);
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  EXPECT_EQ(run(stepped_reads_below_after_call), Outcome::kUnknown) << "as it returned";
  thread_.set(ZYDIS_REGISTER_RSP, top - 8);
  thread_.push(elsewhere_);
  thread_.forget_after_call();
  thread_.set(ZYDIS_REGISTER_RSP, top - 8);
  EXPECT_EQ(run(stepped_reads_below_after_call), Outcome::kUnknown);
}

TEST_F(SteppedThreadTest, LeavesToOthersWhatItDoesNotKnow) {
  pass(ZYDIS_REGISTER_RDI, stack_.data());
  thread_.set(ZYDIS_REGISTER_RAX, 0);
  for (const Byte* const code :
       {stepped_calls, stepped_jumps_elsewhere, stepped_asks_the_kernel,
        stepped_reads_a_thread_local, stepped_divides_by_zero, stepped_repeats_for_long,
        stepped_reads_nothing, stepped_uses_its_stack_up, stepped_moves_by_mask,
        stepped_loads_extended}) {
    EXPECT_EQ(run(code), Outcome::kUnknown) << code - stepped_calls;
  }
}

TEST_F(SteppedThreadTest, PassesTheCheckOfItsStack) {
  EXPECT_EQ(run(stepped_checks_its_stack), Outcome::kReturned);
}

TEST_F(SteppedThreadTest, CopiesWhatOverlaps) {
  const std::uint64_t low = reinterpret_cast<std::uintptr_t>(stack_.data());
  std::array<unsigned char, 100> numbers{};
  for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<unsigned char>(i);
  const auto source = reinterpret_cast<std::uintptr_t>(numbers.data());
  EXPECT_EQ(thread_.copy(low, source, 100), Outcome::kNext);
  EXPECT_EQ(thread_.copy(low + 5, low, 90), Outcome::kNext);
  EXPECT_EQ(std::memcmp(stack_.data() + 5, numbers.data(), 90), 0);
  EXPECT_EQ(thread_.copy(low + 1, low + 5, 90), Outcome::kNext);
  EXPECT_EQ(std::memcmp(stack_.data() + 1, numbers.data(), 90), 0);
  EXPECT_EQ(thread_.copy(source, low + 1, 90), Outcome::kNext) << "the same is there";
  EXPECT_EQ(thread_.fill(low + 3, std::byte{9}, 70), Outcome::kNext);
  EXPECT_EQ(stack_[2], std::byte{1});
  EXPECT_EQ(stack_[72], std::byte{9});
}

TEST_F(SteppedThreadTest, TellsTheValueOfAnOperand) {
  const ProgramCode code = ProgramCode::around(stepped_stores_elsewhere);
  Instruction instruction;
  ASSERT_TRUE(InstructionReader(code).read(stepped_stores_elsewhere, instruction));
  pass(ZYDIS_REGISTER_RDI, &elsewhere_);
  thread_.set(ZYDIS_REGISTER_RSI, 77);
  EXPECT_EQ(thread_.value_of(instruction, stepped_stores_elsewhere, 0), elsewhere_);
  EXPECT_EQ(thread_.value_of(instruction, stepped_stores_elsewhere, 1), 77U);
  thread_.forget_after_call();
  EXPECT_EQ(thread_.value_of(instruction, stepped_stores_elsewhere, 0), std::nullopt);
}

// Whole functions, as they are compiled. They change nothing but their own variables.
#define STEPPED_FUNCTION __attribute__((noinline, no_sanitize("address"), no_sanitize("undefined")))

long stepped_numbers[64];
double stepped_fractions[64];
float stepped_floats[64];

STEPPED_FUNCTION long collatz(long from, long most) {
  long longest = 0;
  for (long begin = from; begin < most; ++begin) {
    long steps = 0;
    for (long number = begin; number > 1; ++steps) {
      number = number % 2 == 0 ? number / 2 : 3 * number + 1;
    }
    if (steps > longest) longest = steps;
  }
  return longest;
}

STEPPED_FUNCTION long digits(long number, long base) {
  unsigned char counts[40];
  for (unsigned char& count : counts) count = 0;
  for (unsigned long rest = static_cast<unsigned long>(number); rest != 0;
       rest /= static_cast<unsigned long>(base)) {
    ++counts[rest % static_cast<unsigned long>(base)];
  }
  long hash = 7;
  for (const unsigned char count : counts) hash = (hash << 5) ^ (hash >> 9) ^ count;
  return hash;
}

STEPPED_FUNCTION long sums(long begin, long end) {
  long sum = 0;
  unsigned long all = ~0UL;
  int lowest = 0x7fff'ffff;
  for (long i = begin; i < end; ++i) {
    sum += stepped_numbers[i] * (i + 1);
    all &= static_cast<unsigned long>(stepped_numbers[i]) | 0xff;
    const int half = static_cast<int>(stepped_numbers[i]);
    if (half < lowest) lowest = half;
  }
  return sum ^ static_cast<long>(all) ^ lowest;
}

STEPPED_FUNCTION long of_fractions(long begin, long end) {
  double sum = 0.0;
  double product = 1.0;
  double highest = -100.0;
  float small = 0.5F;
  for (long i = begin; i < end; ++i) {
    sum += stepped_fractions[i] / static_cast<double>(i + 2);
    product *= (1.0 + stepped_fractions[i]) / 16.0;
    if (stepped_fractions[i] > highest) highest = stepped_fractions[i];
    small -= static_cast<float>(stepped_fractions[i]) * stepped_floats[i];
  }
  return static_cast<long>(sum * 1e6) ^ static_cast<long>(product * 1e9) ^
         static_cast<long>(highest) ^ static_cast<long>(small);
}

TEST_F(SteppedThreadTest, StepsThroughWholeFunctions) {
  for (int i = 0; i < 64; ++i) {
    stepped_numbers[i] = (i * 7919 % 131 - 60) * 1'234'567'891L;
    stepped_fractions[i] = (i * 7919 % 131 - 60) / 7.0;
    stepped_floats[i] = static_cast<float>(i) / 3.0F;
  }
  struct Call {
    long (*function)(long, long);
    long first;
    long second;
  };
  for (const auto& [function, first, second] :
       {Call{collatz, 1, 60}, Call{digits, 123'456'789'012'345, 10}, Call{digits, -1, 37},
        Call{sums, 0, 64}, Call{sums, 5, 5}, Call{sums, 3, 42}, Call{of_fractions, 0, 64},
        Call{of_fractions, 9, 2}, Call{of_fractions, 1, 12}}) {
    thread_ = SteppedThread(stack_);
    thread_.set(ZYDIS_REGISTER_RDI, static_cast<std::uint64_t>(first));
    thread_.set(ZYDIS_REGISTER_RSI, static_cast<std::uint64_t>(second));
    EXPECT_EQ(run(reinterpret_cast<const void*>(function)), Outcome::kReturned);
    EXPECT_EQ(thread_.get(ZYDIS_REGISTER_RAX), static_cast<std::uint64_t>(function(first, second)));
  }
}

}  // namespace
}  // namespace amasia::omp
