// SPDX-License-Identifier: Apache-2.0
// What the files of the kmpc ABI share: the compiler's types, and how a call is decided. Layouts
// and values are those of LLVM's openmp/runtime/src/kmp.h, which are frozen ABI.
#pragma once

#include <cstdint>

#include "omp/omp.hpp"
#include "omp/real.hpp"

#define AMASIA_ENTRY extern "C" __attribute__((visibility("default")))

namespace amasia::omp::kmpc {

// A place in the program. psource: ";file;function;line;column;;".
struct ident_t {
  std::int32_t reserved_1;
  std::int32_t flags;
  std::int32_t reserved_2;
  std::int32_t reserved_3;
  const char* psource;
};

using Microtask = void (*)(std::int32_t* gtid, std::int32_t* bound_id, ...);
using Critical = std::int32_t[8];

// Schedules of __kmpc_for_static_init_* and __kmpc_dispatch_init_*.
enum Schedule : std::int32_t {
  kLower = 32,
  kStaticChunked = 33,
  kStatic = 34,
  kDynamicChunked = 35,
  kGuidedChunked = 36,
  kRuntime = 37,
  kAuto = 38,
  kTrapezoidal = 39,
  kStaticGreedy = 40,
  kStaticBalanced = 41,
  kGuidedIterative = 42,
  kGuidedAnalytical = 43,
  kStaticSteal = 44,
  kStaticBalancedChunked = 45,
  kGuidedSimd = 46,
  kRuntimeSimd = 47,
  kUpper = 48,
  kOrderedLower = 64,
  kOrderedUpper = 80,
  kDistributeChunked = 91,
  kDistribute = 92,
  kNoMergeLower = 160,
  kMonotonic = 1 << 29,
  kNonmonotonic = 1 << 30,
};
inline constexpr std::int32_t kModifiers = kMonotonic | kNonmonotonic;

// Calls `function(gtid, bound_id, words...)`. On the stack that the caller is on. Unless `entry` is
// nullptr, *entry is the call's frame until it returns.
extern "C" void amasia_call_outlined(void* function, std::int32_t* gtid, std::int32_t* bound_id,
                                     std::int64_t word_count, void* const* words,
                                     EntryFrame** entry = nullptr);

// The process's kmpc runtime for Node::set_runtime.
LocalRuntime& local_runtime();

}  // namespace amasia::omp::kmpc
