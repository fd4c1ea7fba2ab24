// SPDX-License-Identifier: Apache-2.0
// userfaultfd(2) over shared mappings: faults of a registered range are reported instead of
// resolved. Semantics that callers rely on, each found out by experiment on Linux 6.x:
//   - a hole in a range registered without kMissing is zero-filled without an event;
//   - a page that is in the file but not in the mapping raises a minor event, one for each page;
//   - `map` on a page that is mapped already fails with EEXIST and wakes nobody;
//   - `map` on a hole fails with EFAULT; on a partly mapped range with EAGAIN after some pages;
//   - a protected page stays protected when it is dropped, until it is mapped writable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "os/descriptor.hpp"

namespace amasia::os {

struct PageFault {
  std::uintptr_t address = 0;  // rounded down to its page
  int thread_id = 0;
  bool write = false;
  bool protection = false;  // the page is mapped, but protected against writing
};

enum class Registration {
  kPresent,  // minor faults and write protection: holes are filled by the kernel
  kAll,      // holes are reported too
};

enum class Mapping { kWritable, kReadOnly };

class Userfaultfd {
 public:
  // Opens it with all that a kernel access to absent pages needs (no USER_MODE_ONLY); tries the
  // system call, then /dev/userfaultfd. The error names what was refused and how to allow it.
  static Result<Userfaultfd> open();

  int descriptor() const { return descriptor_.get(); }

  Status register_range(std::uintptr_t begin, Bytes size, Registration registration);
  Status unregister_range(std::uintptr_t begin, Bytes size);

  // Reads reported faults without blocking; returns how many.
  std::size_t read_faults(std::span<PageFault> faults) noexcept;

  // The calls below return 0 or errno, and allocate nothing.

  // Maps pages that are in the file. `*done` receives the bytes mapped before an error. Wakes the
  // threads that wait for the pages mapped.
  int map(std::uintptr_t begin, Bytes size, Mapping mapping, Bytes* done) noexcept;
  // After it returns no thread can write to the range without an event.
  int protect(std::uintptr_t begin, Bytes size) noexcept;
  // Lifts the protection of mapped pages and wakes their threads.
  int unprotect(std::uintptr_t begin, Bytes size) noexcept;
  int wake(std::uintptr_t begin, Bytes size) noexcept;

 private:
  int change_protection(std::uintptr_t begin, Bytes size, std::uint64_t mode) noexcept;
  Descriptor descriptor_;
};

}  // namespace amasia::os
