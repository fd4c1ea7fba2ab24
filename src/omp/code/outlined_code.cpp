// SPDX-License-Identifier: Apache-2.0
#include "omp/code/outlined_code.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>
#include <vector>

#include "omp/code/program_code.hpp"

namespace amasia::omp {
namespace {

// What copies in is at a function's begin, which may first make other private copies.
constexpr std::ptrdiff_t kBytesLookedAt = 4096;

// How far behind an instruction's begin is looked.
constexpr std::ptrdiff_t kMargin = 32;

// What an instruction at `at` calls: {the function, nullptr when `at` is no call; what follows}.
struct Call {
  const void* callee = nullptr;
  const Byte* next = nullptr;
};
Call call_at(const ProgramCode& code, const Byte* at) {
  if (at[0] == 0xff && at[1] == 0x15) return {code.slot_value(at + 6), at + 6};
  if (at[0] != 0xe8) return {};
  const Byte* const target = at + 5 + distance_at(at + 1);
  if (!code.holds(target)) return {};
  const void* const far = code.through_stub(target);
  return {far != nullptr ? far : target, at + 5};
}

// A function that ends is followed by its padding, or by the begin of another one, which is not
// looked at: registers are saved, or room is made on the stack.
bool ends_at(const Byte* at) {
  if (at[0] != 0xc3) return false;
  constexpr Byte kFollowing[] = {0x66, 0x0f, 0x90, 0xcc, 0x53, 0x55, 0xf3};
  if (std::ranges::find(kFollowing, at[1]) != std::end(kFollowing)) return true;
  if (at[1] == 0x41) return at[2] >= 0x50 && at[2] < 0x58;
  return at[1] == 0x48 && (at[2] == 0x83 || at[2] == 0x81) && at[3] == 0xec;
}

// All that may be a call, in order: instructions are not told apart, but what looks like a call of
// an entry point is one.
std::vector<Call> calls_of(const ProgramCode& code, const void* function) {
  std::vector<Call> calls;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end() - begin - kMargin);
  for (const Byte* at = begin; at < end && !ends_at(at); ++at) {
    if (const Call call = call_at(code, at); call.callee != nullptr) calls.push_back(call);
  }
  return calls;
}

// test reg, reg, soon after a call: other instructions may have been put before it.
bool compares_with_zero(const Byte* after_call) {
  constexpr int kSoon = 16;
  for (const Byte* at = after_call; at < after_call + kSoon; ++at) {
    if (at[0] == 0x85 && at[1] >= 0xc0 && (at[1] >> 3 & 7) == (at[1] & 7)) return true;
  }
  return false;
}

// mov %fs:0, reg or add %fs:0, reg: the thread pointer, from which the addresses of thread-local
// variables are computed.
bool reads_thread_pointer(const Byte* at) {
  return at[0] == 0x64 && (at[1] & 0xf8) == 0x48 && (at[2] == 0x8b || at[2] == 0x03) &&
         at[4] == 0x25 && distance_at(at + 5) == 0;
}

// Whether the function comes to a barrier after it asked where a thread-local variable is.
bool finds_variables_and_meets(const ProgramCode& code, const void* function, const void* barrier) {
  static const void* const find_variable = dlsym(RTLD_DEFAULT, "__tls_get_addr");
  const Byte* found = nullptr;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end() - begin - kMargin);
  for (const Byte* at = begin; at < end && found == nullptr && !ends_at(at); ++at) {
    const void* const callee = call_at(code, at).callee;
    if (reads_thread_pointer(at) || (callee != nullptr && callee == find_variable)) found = at;
  }
  return found != nullptr && std::ranges::any_of(calls_of(code, function), [&](const Call& call) {
    return call.callee == barrier && call.next > found;
  });
}

}  // namespace

bool gcc_copies_in(const void* function, const void* thread_number, const void* barrier) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty() || thread_number == nullptr || barrier == nullptr) return false;
  bool compares = false;
  for (const Call& call : calls_of(code, function)) {
    if (call.callee == barrier && compares) return true;
    compares |= call.callee == thread_number && compares_with_zero(call.next);
  }
  return false;
}

bool may_use_word(const void* function, std::size_t offset) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty() || offset == 0) return true;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end() - begin - kMargin);
  // Two words may be loaded at once, by the offset of the first.
  for (const std::size_t from : {offset, offset - sizeof(void*)}) {
    if (from == 0) return true;
    for (const Byte* at = begin; at < end && !ends_at(at); ++at) {
      // An operand with a displacement: after its mode byte, or that and a scale byte.
      const int mode = at[0] >> 6;
      const Byte* const displacement = at + ((at[0] & 7) == 4 ? 2 : 1);
      if (mode == 1 && *displacement == from && from < 128) return true;
      if (mode == 2 && static_cast<std::size_t>(distance_at(displacement)) == from) return true;
    }
  }
  return false;
}

bool clang_copies_in(const void* function, const void* barrier) {
  const ProgramCode code = ProgramCode::around(function);
  if (code.empty() || barrier == nullptr) return false;
  if (finds_variables_and_meets(code, function, barrier)) return true;
  // With debug information the outlined function may only call another one.
  return std::ranges::any_of(calls_of(code, function), [&](const Call& call) {
    const auto* const callee = static_cast<const Byte*>(call.callee);
    return code.holds(callee) && finds_variables_and_meets(code, callee, barrier);
  });
}

}  // namespace amasia::omp
