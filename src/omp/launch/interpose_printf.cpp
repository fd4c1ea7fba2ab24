// SPDX-License-Identifier: Apache-2.0
// register_printf_specifier and its kin: what printf looks up for each conversion once a library
// has registered one (libquadmath does, which all of gfortran's programs load) is each C library's
// own, and lies in this node's own memory. Threads of the runtime print, too; UCX does to watch
// over its peers. The engine's would wait for ever for a page of managed memory.
#include <printf.h>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int register_printf_specifier(int letter, printf_function* print,
                                            printf_arginfo_size_function* describe) noexcept {
  static constinit Real<int(int, printf_function*, printf_arginfo_size_function*)> real{
      "register_printf_specifier"};
  const AllocationScope scope(AllocationMode::kPrivate);
  return real(letter, print, describe);
}

AMASIA_EXPORT int register_printf_function(int letter, printf_function* print,
                                           printf_arginfo_function* describe) noexcept {
  static constinit Real<int(int, printf_function*, printf_arginfo_function*)> real{
      "register_printf_function"};
  const AllocationScope scope(AllocationMode::kPrivate);
  return real(letter, print, describe);
}

AMASIA_EXPORT int register_printf_modifier(const wchar_t* text) noexcept {
  static constinit Real<int(const wchar_t*)> real{"register_printf_modifier"};
  const AllocationScope scope(AllocationMode::kPrivate);
  return real(text);
}

AMASIA_EXPORT int register_printf_type(printf_va_arg_function* take) noexcept {
  static constinit Real<int(printf_va_arg_function*)> real{"register_printf_type"};
  const AllocationScope scope(AllocationMode::kPrivate);
  return real(take);
}
