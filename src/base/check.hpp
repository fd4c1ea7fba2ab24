// SPDX-License-Identifier: Apache-2.0
// Checks for bugs of ours: print what did not hold, and abort. For operating conditions use
// Result, for a user's mistake a sentence and exit code 2.
#pragma once

namespace amasia::base {

// Prints "<file>:<line>: check failed: <condition> (<explanation>)" with write(2) and aborts.
// Any thread, any signal context; allocates nothing.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const char* explanation) noexcept;

}  // namespace amasia::base

// Always on. The explanation says what breaks when the condition does not hold.
#define AMASIA_CHECK(condition, explanation)         \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::amasia::base::check_failed(__FILE__, __LINE__, #condition, explanation))

// On in builds without NDEBUG and wherever AMASIA_CHECK_DEBUG_ON is defined: for checks on paths
// that run once a page or once a message.
#if !defined(NDEBUG) || defined(AMASIA_CHECK_DEBUG_ON)
#define AMASIA_CHECK_DEBUG(condition, explanation) AMASIA_CHECK(condition, explanation)
#else
#define AMASIA_CHECK_DEBUG(condition, explanation) static_cast<void>(sizeof(condition))
#endif
