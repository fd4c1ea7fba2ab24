// SPDX-License-Identifier: Apache-2.0
#include "omp/region/outlined_code.hpp"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

namespace amasia::omp {
namespace {

using Byte = unsigned char;

// What copies in is at a function's begin, which may first make other private copies.
constexpr std::ptrdiff_t kBytesLookedAt = 4096;

// How far behind an instruction's begin is looked.
constexpr std::ptrdiff_t kMargin = 32;

// The object that code is in: its executable segment, and all of its memory.
struct Code {
  const Byte* begin = nullptr;
  const Byte* end = nullptr;
  const Byte* low = nullptr;
  const Byte* high = nullptr;

  bool holds(const Byte* address) const { return address >= begin && address < end; }
};

struct CodeSearch {
  const Byte* function;
  Code found;
};

int look_in_object(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<CodeSearch*>(argument);
  Code code;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    const auto* const begin = reinterpret_cast<const Byte*>(info->dlpi_addr + part.p_vaddr);
    const Byte* const end = begin + part.p_memsz;
    code.low = code.low == nullptr ? begin : std::min(code.low, begin);
    code.high = std::max(code.high, end);
    if ((part.p_flags & PF_X) != 0 && search.function >= begin && search.function < end) {
      code.begin = begin;
      code.end = end;
    }
  }
  if (code.begin == nullptr) return 0;
  search.found = code;
  return 1;
}

std::int32_t distance_at(const Byte* at) {
  std::int32_t distance;
  std::memcpy(&distance, at, sizeof distance);
  return distance;
}

// The address in the table slot that an instruction with its end at `next` refers to.
const void* slot_value(const Code& code, const Byte* next) {
  const Byte* const slot = next + distance_at(next - 4);
  if (slot < code.low || slot + sizeof(void*) > code.high) return nullptr;
  const void* value;
  std::memcpy(&value, slot, sizeof value);
  return value;
}

// Where the stub of the procedure linkage table at `stub` leads to; nullptr: it is none.
const void* through_stub(const Code& code, const Byte* stub) {
  if (!code.holds(stub) || code.end - stub < 16) return nullptr;
  if (std::memcmp(stub, "\xf3\x0f\x1e\xfa", 4) == 0) stub += 4;  // endbr64
  if (*stub == 0xf2) ++stub;                                      // bnd
  return stub[0] == 0xff && stub[1] == 0x25 ? slot_value(code, stub + 6) : nullptr;
}

// What an instruction at `at` calls: {the function, nullptr when `at` is no call; what follows}.
struct Call {
  const void* callee = nullptr;
  const Byte* next = nullptr;
};
Call call_at(const Code& code, const Byte* at) {
  if (at[0] == 0xff && at[1] == 0x15) return {slot_value(code, at + 6), at + 6};
  if (at[0] != 0xe8) return {};
  const Byte* const target = at + 5 + distance_at(at + 1);
  if (!code.holds(target)) return {};
  const void* const far = through_stub(code, target);
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
std::vector<Call> calls_of(const Code& code, const void* function) {
  std::vector<Call> calls;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end - begin - kMargin);
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

Code code_of(const void* function) {
  CodeSearch search{static_cast<const Byte*>(function), {}};
  dl_iterate_phdr(look_in_object, &search);
  return search.found;
}

// mov %fs:0, reg or add %fs:0, reg: the thread pointer, from which the addresses of thread-local
// variables are computed.
bool reads_thread_pointer(const Byte* at) {
  return at[0] == 0x64 && (at[1] & 0xf8) == 0x48 && (at[2] == 0x8b || at[2] == 0x03) &&
         at[4] == 0x25 && distance_at(at + 5) == 0;
}

// Whether the function comes to a barrier after it asked where a thread-local variable is.
bool finds_variables_and_meets(const Code& code, const void* function, const void* barrier) {
  static const void* const find_variable = dlsym(RTLD_DEFAULT, "__tls_get_addr");
  const Byte* found = nullptr;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end - begin - kMargin);
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
  const Code code = code_of(function);
  if (code.begin == nullptr || thread_number == nullptr || barrier == nullptr) return false;
  bool compares = false;
  for (const Call& call : calls_of(code, function)) {
    if (call.callee == barrier && compares) return true;
    compares |= call.callee == thread_number && compares_with_zero(call.next);
  }
  return false;
}

bool may_use_word(const void* function, std::size_t offset) {
  const Code code = code_of(function);
  if (code.begin == nullptr || offset == 0) return true;
  const auto* const begin = static_cast<const Byte*>(function);
  const Byte* const end = begin + std::min(kBytesLookedAt, code.end - begin - kMargin);
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
  const Code code = code_of(function);
  if (code.begin == nullptr || barrier == nullptr) return false;
  if (finds_variables_and_meets(code, function, barrier)) return true;
  // With debug information the outlined function may only call another one.
  return std::ranges::any_of(calls_of(code, function), [&](const Call& call) {
    const auto* const callee = static_cast<const Byte*>(call.callee);
    return code.holds(callee) && finds_variables_and_meets(code, callee, barrier);
  });
}

}  // namespace amasia::omp
