// SPDX-License-Identifier: Apache-2.0
// A thread that is only pretended: its instructions are carried out one at a time on registers and
// a stack of its own, to find out what it would do without letting it. x86-64.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "omp/code/instruction.hpp"

namespace amasia::omp {

// It reads the program's memory and never writes it. What it can't know, as the registers at its
// start and what lies on its stack, is carried along as unknown, and must not decide anything: not
// an address, a jump, or what is stored outside of its stack.
class SteppedThread {
 public:
  // Where its first function returns to; no address.
  static constexpr std::uint64_t kReturn = 0x8000'0000'0000'0000;

  enum class Outcome : std::uint8_t {
    kNext,
    kReturned,
    kChanges,  // it would change memory that isn't its stack's
    kUnknown,  // the instruction, or what it depends on
  };

  // The thread is at a function's entry; of its registers only the stack pointer is known. What
  // `stack` holds counts as unknown: what is to be known there must be put there by the thread.
  explicit SteppedThread(std::span<std::byte> stack);

  // RAX to R15. nullopt: not all of it is known.
  std::optional<std::uint64_t> get(ZydisRegister whole) const;
  void set(ZydisRegister whole, std::uint64_t value);

  // Carries out the instruction at `at`, and sets `next` to where the thread goes on, if it does:
  // kNext. Calls and indirect jumps are unknown here, and left to the caller. After kChanges and
  // kUnknown the thread is of no more use. Without care for the direction flag: it is clear in all
  // functions.
  Outcome step(const Instruction& instruction, const Byte* at, const Byte*& next);

  // What callers need for calls. nullopt: not all of it is known, or it isn't a general operand.
  std::optional<std::uint64_t> value_of(const Instruction& instruction, const Byte* at,
                                        std::size_t operand) const;
  Outcome push(std::uint64_t value);
  // What `ret` does.
  Outcome leave_function(const Byte*& next);
  // What a called function may change becomes unknown: registers, flags, and what is below the
  // stack pointer.
  void forget_after_call();
  // Whether it has stored what is there already in memory that isn't its stack's.
  bool has_stored_elsewhere() const { return has_stored_elsewhere_; }
  // What memset and memmove do.
  Outcome fill(std::uint64_t to, std::byte value, std::uint64_t size);
  Outcome copy(std::uint64_t to, std::uint64_t from, std::uint64_t size);

 private:
  // `known`: a mask of those bits that are.
  struct Value {
    std::uint64_t bits = 0;
    std::uint64_t known = 0;
  };
  // Of a vector register; an index is one of bytes, or of lanes.
  struct Wide {
    std::array<std::uint64_t, 4> bits{};
    std::array<std::uint64_t, 4> known{};

    template <typename Bits>
    struct Lane {
      Bits bits;
      bool is_known;
    };
    template <typename Bits>
    Lane<Bits> lane(std::size_t index) const;
    template <typename Bits>
    void set_lane(std::size_t index, const Lane<Bits>& lane);
    void take(const Wide& from, std::size_t from_byte, std::size_t to_byte, std::size_t size);
  };
  struct Here {
    const Instruction& instruction;
    const Byte* end;

    const ZydisDecodedOperand& operand(std::size_t index) const {
      return instruction.all_operands[index];
    }
    // In bits.
    unsigned width(std::size_t index) const { return operand(index).size; }
    std::size_t bytes(std::size_t index) const { return operand(index).size / 8; }
    std::size_t count() const { return instruction.what.operand_count_visible; }
    ZydisMnemonic mnemonic() const { return instruction.what.mnemonic; }
    bool is_legacy() const {
      return instruction.what.encoding == ZYDIS_INSTRUCTION_ENCODING_LEGACY;
    }
    bool is_register(std::size_t index) const {
      return operand(index).type == ZYDIS_OPERAND_TYPE_REGISTER;
    }
    bool is_memory(std::size_t index) const {
      return operand(index).type == ZYDIS_OPERAND_TYPE_MEMORY;
    }
    bool is_vector(std::size_t index) const;
    // Both are the same register: with some instructions the result doesn't depend on it.
    bool is_same_register(std::size_t one, std::size_t other) const {
      return is_register(one) && is_register(other) &&
             operand(one).reg.value == operand(other).reg.value;
    }
  };
  // As in the processor's register of flags.
  enum Flag : std::uint16_t {
    kCarry = 0x1,
    kParity = 0x4,
    kZero = 0x40,
    kSign = 0x80,
    kOverflow = 0x800,
    kResult = kParity | kZero | kSign,
    kAll = kCarry | kResult | kOverflow,
  };
  struct Addition {
    bool subtracts = false;
    unsigned width = 64;
    bool sets_carry = true;
    bool carry = false;
    bool is_carry_known = true;
  };

  static constexpr Value known(std::uint64_t bits) { return {bits, ~std::uint64_t{0}}; }
  static constexpr std::uint64_t mask_of(unsigned width) {
    return width >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
  }
  static constexpr bool is_known(const Value& value, unsigned width) {
    return (value.known & mask_of(width)) == mask_of(width);
  }
  // What one side decides is known whatever the other is.
  static constexpr Value bits_and(const Value& one, const Value& other) {
    return {one.bits & other.bits,
            (one.known & other.known) | (one.known & ~one.bits) | (other.known & ~other.bits)};
  }
  static constexpr Value bits_or(const Value& one, const Value& other) {
    return {one.bits | other.bits,
            (one.known & other.known) | (one.known & one.bits) | (other.known & other.bits)};
  }
  static constexpr Value bits_xor(const Value& one, const Value& other) {
    return {one.bits ^ other.bits, one.known & other.known};
  }
  static constexpr Wide known_zero() {
    Wide zero;
    zero.known.fill(~std::uint64_t{0});
    return zero;
  }

  // Memory and operands.
  std::uint64_t place_of(std::uint64_t address) const;  // on the stack
  bool is_own(std::uint64_t address, std::size_t size) const;
  bool may_be_own(std::uint64_t address, std::size_t size) const;
  std::optional<Wide> load(std::uint64_t address, std::size_t size) const;
  Outcome store(std::uint64_t address, const Wide& value, std::size_t size);
  Value general(ZydisRegister reg) const;
  void set_general(ZydisRegister reg, const Value& value);
  static ZydisRegister accumulator(unsigned width);
  Value sum_of_address(const Here& here, const ZydisDecodedOperand& operand) const;
  std::optional<std::uint64_t> address_of(const Here& here,
                                          const ZydisDecodedOperand& operand) const;
  std::optional<Wide> read_wide(const Here& here, std::size_t index) const;
  std::optional<Value> read(const Here& here, std::size_t index) const;
  // General registers, and memory.
  Outcome write(const Here& here, std::size_t index, const Value& value);
  // The first operand, a vector register or memory. Without the older encoding what is beyond it
  // in the register becomes zero.
  Outcome write_vector(const Here& here, const Wide& value);
  Outcome push_value(const Value& value);
  std::optional<Value> pop_value();
  bool keeps_to_stack() const;

  // Flags. `values`: those of `which`.
  void set_flags(unsigned which, unsigned values, bool is_known);
  void set_result_flags(const Value& result, unsigned width);
  std::optional<bool> flag(Flag which) const;
  // By the lowest four bits of the instruction's code, as all conditional ones have it.
  std::optional<bool> condition(const Here& here) const;

  std::optional<Outcome> step(const Here& here, const Byte*& next);
  // Groups of instructions; nullopt: it isn't one of them.
  std::optional<Outcome> flow(const Here& here, const Byte*& next);
  std::optional<Outcome> move(const Here& here);
  std::optional<Outcome> calculate(const Here& here);
  std::optional<Outcome> move_vector(const Here& here);
  std::optional<Outcome> shuffle_vector(const Here& here);
  std::optional<Outcome> calculate_integers(const Here& here);
  std::optional<Outcome> compare_integers(const Here& here);
  std::optional<Outcome> choose_integers(const Here& here);
  std::optional<Outcome> shift_integers(const Here& here);
  std::optional<Outcome> calculate_floats(const Here& here);
  std::optional<Outcome> calculate_fused(const Here& here);
  std::optional<Outcome> convert(const Here& here);

  Outcome extend(const Here& here, bool is_signed);
  Outcome extend_accumulator(const Here& here);
  Outcome pop(const Here& here);
  Outcome leave();
  Outcome move_string(const Here& here);
  Outcome exchange(const Here& here);
  Outcome exchange_and_add(const Here& here);
  Outcome compare_and_exchange(const Here& here);

  Value add_with_flags(const Value& one, const Value& other, const Addition& addition);
  Outcome sum(const Here& here, bool subtracts);
  Outcome combine_bits(const Here& here);
  Outcome shift(const Here& here);
  Outcome rotate(const Here& here);
  Outcome shift_without_flags(const Here& here);
  Outcome bit_test(const Here& here);
  Outcome multiply(const Here& here);
  Outcome multiply_wide(const Here& here, bool is_signed);
  Outcome divide(const Here& here, bool is_signed);

  Outcome move_all(const Here& here);
  Outcome move_low(const Here& here, std::size_t size);
  Outcome move_low_alone(const Here& here, std::size_t size);
  Outcome move_half(const Here& here, std::size_t from_byte, std::size_t to_byte);
  Outcome repeat(const Here& here, std::size_t size);
  Outcome insert(const Here& here, std::size_t size);
  Outcome extract(const Here& here, std::size_t size);
  Outcome insert_half(const Here& here);
  Outcome extract_half(const Here& here);
  Outcome interleave(const Here& here, std::size_t size, bool of_high);
  Outcome shuffle(const Here& here, std::size_t size);
  Outcome shift_bytes(const Here& here);
  Outcome blend(const Here& here, std::size_t size);
  Outcome signs(const Here& here, std::size_t size);
  Outcome clear_upper_halves();

  template <typename Bits, typename Operation>
  Outcome each_lane(const Here& here, Operation operation);
  template <typename Bits, typename Operation>
  Outcome shift_lanes(const Here& here, Operation operation);
  Outcome combine_vector_bits(const Here& here, Value (*combine)(const Value&, const Value&),
                              bool complements);
  Outcome look_up_bits(const Here& here);
  template <typename Float, typename Operation>
  Outcome floating(const Here& here, bool is_scalar, Operation operation);
  template <typename Float>
  Outcome multiply_and_add(const Here& here);
  template <typename Float>
  Outcome square_root(const Here& here, bool is_scalar);
  template <typename Float>
  Outcome compare(const Here& here, bool is_scalar);
  template <typename Float>
  Outcome compare_to_flags(const Here& here);
  template <typename Float>
  Outcome from_integer(const Here& here, bool is_signed);
  template <typename Float>
  Outcome to_integer(const Here& here, bool truncates);
  template <typename From, typename To>
  Outcome convert_scalar(const Here& here);
  template <typename From, typename To, typename Conversion>
  Outcome convert_lanes(const Here& here, Conversion conversion);

  static constexpr std::size_t kVectorRegisters = 32;

  std::span<std::byte> stack_;
  std::vector<std::byte> known_on_stack_;  // a mask of the stack's bits
  std::size_t lowest_known_;               // nothing is known below it
  std::array<Value, 16> general_{};
  std::array<Wide, kVectorRegisters> vectors_{};
  unsigned flags_ = 0;
  unsigned known_flags_ = 0;
  bool has_stored_elsewhere_ = false;
};

template <typename Bits>
SteppedThread::Wide::Lane<Bits> SteppedThread::Wide::lane(std::size_t index) const {
  Lane<Bits> lane{};
  Bits mask{};
  std::memcpy(&lane.bits, reinterpret_cast<const Byte*>(&bits) + index * sizeof(Bits),
              sizeof(Bits));
  std::memcpy(&mask, reinterpret_cast<const Byte*>(&known) + index * sizeof(Bits), sizeof(Bits));
  lane.is_known = mask == static_cast<Bits>(~Bits{0});
  return lane;
}

template <typename Bits>
void SteppedThread::Wide::set_lane(std::size_t index, const Lane<Bits>& lane) {
  const auto mask = static_cast<Bits>(lane.is_known ? ~Bits{0} : 0);
  std::memcpy(reinterpret_cast<Byte*>(&bits) + index * sizeof(Bits), &lane.bits, sizeof(Bits));
  std::memcpy(reinterpret_cast<Byte*>(&known) + index * sizeof(Bits), &mask, sizeof(Bits));
}

}  // namespace amasia::omp
