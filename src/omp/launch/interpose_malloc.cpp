// SPDX-License-Identifier: Apache-2.0
// malloc and its kin. Who calls decides where a block lies: what the loader, the OpenMP runtime,
// Amasia and what it uses allocate comes from the C library, all else from the managed heap. Where
// it is freed its address decides. In a process that is no node all of it is the C library's.
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "omp/launch/node_process.hpp"
#include "omp/launch/process.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))
#define AMASIA_CALLER __builtin_return_address(0)

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);
}

namespace amasia::omp {
namespace {

bool is_private(const void* caller) noexcept {
  if (!process.managed) return true;
  const AllocationMode mode = allocation_mode;
  if (__builtin_expect(mode != AllocationMode::kByCaller, 0)) {
    return mode == AllocationMode::kPrivate;
  }
  if (__builtin_expect(os::is_in_runtime_section(), 0)) return true;
  return process.objects.allocates_privately(caller);
}

bool is_managed_block(const void* block) noexcept {
  return process.arenas.contains(reinterpret_cast<std::uintptr_t>(block));
}

bool on_managed_stack() noexcept { return is_managed_block(__builtin_frame_address(0)); }

// The C library's heap has locks that the service thread takes too, so a thread must not fault
// while it holds one: not on a managed stack.
template <typename Call>
auto in_c_library(Call call) noexcept {
  if (__builtin_expect(!on_managed_stack(), 1)) return call();
  decltype(call()) result{};
  int error = 0;
  os::in_runtime_section([&] {
    result = call();
    error = errno;
  });
  if (result == nullptr) errno = error;
  return result;
}

void collect_if_any() noexcept {
  // Acquire with the release when the node was set.
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  if (__builtin_expect(node != nullptr && node->foreign_blocks().has_handed_back(), 0)) {
    // What it needs itself is not the program's, for whose sake this thread's mode may be managed.
    const AllocationScope own(AllocationMode::kByCaller);
    node->foreign_blocks().collect();
  }
}

void* allocate(std::size_t size, const void* caller) noexcept {
  if (is_private(caller)) return in_c_library([size] { return __libc_malloc(size); });
  collect_if_any();
  return process.heap.allocate(size);
}

void* allocate_aligned(std::size_t alignment, std::size_t size, const void* caller) noexcept {
  if (is_private(caller)) {
    return in_c_library([=] { return __libc_memalign(alignment, size); });
  }
  collect_if_any();
  return process.heap.allocate_aligned(alignment, size);
}

void release_foreign(void* block) noexcept {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  // Without the other nodes (a child of fork) their memory is never used again.
  const AllocationScope own(AllocationMode::kByCaller);
  if (node != nullptr) node->foreign_blocks().release(block);
}

std::size_t foreign_size(const void* block) noexcept {
  NodeProcess* const node = process.node.load(std::memory_order_acquire);
  return node == nullptr ? 0 : node->foreign_blocks().usable_size(block);
}

void* move_foreign(void* block, std::size_t size) noexcept {
  if (size == 0) {
    release_foreign(block);
    return nullptr;
  }
  void* const moved = process.heap.allocate(size);
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(size, foreign_size(block)));
  release_foreign(block);
  return moved;
}

bool is_power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT void* malloc(std::size_t size) noexcept { return allocate(size, AMASIA_CALLER); }

AMASIA_EXPORT void free(void* block) noexcept {
  if (!is_managed_block(block)) {
    if (block == nullptr) return;
    const int saved = errno;  // free keeps errno (POSIX 2024)
    in_c_library([block] {
      __libc_free(block);
      return block;
    });
    errno = saved;
  } else if (__builtin_expect(process.heap.owns(block), 1)) {
    process.heap.release(block);
  } else {
    release_foreign(block);
  }
}

AMASIA_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  if (is_private(AMASIA_CALLER)) return in_c_library([=] { return __libc_calloc(count, size); });
  collect_if_any();
  return process.heap.allocate_zeroed(count, size);
}

namespace {

void* reallocate(void* block, std::size_t size, const void* caller) noexcept {
  if (block == nullptr) return allocate(size, caller);
  if (!is_managed_block(block)) return in_c_library([=] { return __libc_realloc(block, size); });
  if (__builtin_expect(!process.heap.owns(block), 0)) return move_foreign(block, size);
  return process.heap.reallocate(block, size);
}

}  // namespace

AMASIA_EXPORT void* realloc(void* block, std::size_t size) noexcept {
  return reallocate(block, size, AMASIA_CALLER);
}

AMASIA_EXPORT void* reallocarray(void* block, std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes)) {
    errno = ENOMEM;
    return nullptr;
  }
  return reallocate(block, bytes, AMASIA_CALLER);
}

AMASIA_EXPORT int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int saved = errno;
  void* const block = allocate_aligned(alignment, size, AMASIA_CALLER);
  errno = saved;
  if (block == nullptr) return ENOMEM;
  *out = block;
  return 0;
}

// As the C library does: any alignment is rounded up to a power of two.
AMASIA_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
  if (alignment > SIZE_MAX / 2) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate_aligned(std::bit_ceil(alignment), size, AMASIA_CALLER);
}

AMASIA_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (!is_power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return allocate_aligned(alignment, size, AMASIA_CALLER);
}

AMASIA_EXPORT void* valloc(std::size_t size) noexcept {
  return allocate_aligned(amasia::base::kPageSize, size, AMASIA_CALLER);
}

AMASIA_EXPORT void* pvalloc(std::size_t size) noexcept {
  const std::size_t pages = amasia::base::round_up(size, amasia::base::kPageSize);
  if (pages < size) {
    errno = ENOMEM;
    return nullptr;
  }
  return allocate_aligned(amasia::base::kPageSize, pages, AMASIA_CALLER);
}

AMASIA_EXPORT std::size_t malloc_usable_size(void* block) noexcept {
  if (block == nullptr) return 0;
  if (is_managed_block(block)) {
    return process.heap.owns(block) ? process.heap.usable_size(block) : foreign_size(block);
  }
  static constinit Real<std::size_t(void*)> real{"malloc_usable_size"};
  return real(block);
}
