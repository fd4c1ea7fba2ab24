// SPDX-License-Identifier: Apache-2.0
// Mappings. The free functions return 0 or errno and allocate nothing, because managed memory is
// made at the program's first malloc; the class at the end owns what it maps.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "base/base.hpp"

namespace amasia::os {

// An anonymous file of `size` bytes of holes. `*descriptor` is close-on-exec.
int create_memory_file(const char* name, Bytes size, int* descriptor) noexcept;
void close_memory_file(int descriptor) noexcept;

enum class Placement {
  kAnywhere,
  kAtFreeAddress,  // EEXIST where something is mapped already
  kReplace,
};

// A shared, writable mapping of part of a file. `*address` is in and out: the address wanted and
// the address got. Memory is not reserved in advance.
int map_shared(int descriptor, Bytes offset, Bytes size, Placement placement,
               std::uintptr_t* address) noexcept;
// Private zeroes, which cost memory only where they were written and are left out of core dumps.
int map_zeroes(Bytes size, std::uintptr_t* address) noexcept;
int unmap(std::uintptr_t address, Bytes size) noexcept;

// Drops the pages from the mapping; a file's content stays (MADV_DONTNEED).
int drop_pages(std::uintptr_t address, Bytes size) noexcept;
// Maps all pages writable at once, which costs less than a fault for each (MADV_POPULATE_WRITE,
// Linux 5.14). A hint.
void populate_pages(void* address, Bytes size) noexcept;
// Makes the page at `address` one that may not be touched; its content is lost. Where the kernel
// can (Linux 6.13) that costs no mapping of its own, of which a process may have 65530.
int guard_page(void* address) noexcept;
// Frees the file's content below the mapping too (MADV_REMOVE), which reads as zero afterwards.
int remove_pages(std::uintptr_t address, Bytes size) noexcept;
// How much of a memory file's content takes memory, swapped out or not.
int allocated_bytes(int descriptor, Bytes* bytes) noexcept;
// Whether anything is mapped there. A system call.
bool is_mapped(const void* address) noexcept;
// Leaves the mapping out of core dumps.
int exclude_from_dumps(std::uintptr_t address, Bytes size) noexcept;

// Sets `size` bytes of addresses aside for good, where the kernel would map next: later mappings
// lie below. Nothing for 0.
Status keep_addresses_apart(Bytes size);

// A large array of zeroes that costs memory only where it was written. Fixed size, never moved.
template <typename T>
class ReservedArray;

class Reservation {
 public:
  Reservation() = default;
  static Result<Reservation> make(Bytes size);
  Reservation(Reservation&& other) noexcept
      : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Reservation& operator=(Reservation&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Reservation();
  void* address() const { return address_; }
  Bytes size() const { return size_; }

 private:
  void* address_ = nullptr;
  Bytes size_ = 0;
};

template <typename T>
class ReservedArray {
  static_assert(std::is_trivially_destructible_v<T>, "elements are never destroyed");

 public:
  ReservedArray() = default;
  // All elements are zero bytes, which must be a valid T.
  static Result<ReservedArray> make(std::uint64_t count) {
    auto made = Reservation::make(base::round_up(count * sizeof(T), base::kPageSize));
    if (!made.ok()) return made.error();
    ReservedArray array;
    array.reservation_ = std::move(made).value();
    array.count_ = count;
    return array;
  }
  std::uint64_t size() const { return count_; }
  T& operator[](std::uint64_t index) {
    AMASIA_CHECK_DEBUG(index < count_, "index beyond the reserved array");
    return static_cast<T*>(reservation_.address())[index];
  }
  const T& operator[](std::uint64_t index) const {
    AMASIA_CHECK_DEBUG(index < count_, "index beyond the reserved array");
    return static_cast<const T*>(reservation_.address())[index];
  }

 private:
  Reservation reservation_;
  std::uint64_t count_ = 0;
};

}  // namespace amasia::os
