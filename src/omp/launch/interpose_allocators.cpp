// SPDX-License-Identifier: Apache-2.0
// OpenMP's allocators. The OpenMP runtime would take their memory from its own malloc, which other
// nodes cannot reach. All predefined allocators give managed memory here, as malloc does: their
// memory spaces are one to the runtimes of a plain host, and their traits allow it. An allocator
// that the program has made stays the runtime's, and regions stay on one node from then on
// (abi/omp_api.hpp). Which of both a block came from its address tells.
#include <cstdint>
#include <cstdlib>
#include <cstring>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

using Handle = std::uintptr_t;  // omp_allocator_handle_t, equal in libomp and libgomp
constexpr Handle kNoAllocator = 0;    // omp_null_allocator: the default one
constexpr Handle kLastPredefined = 8;  // omp_thread_mem_alloc

bool is_ours(Handle allocator) {
  if (!process.managed) return false;
  if (allocator == kNoAllocator) {
    static constinit Real<Handle()> real_default{"omp_get_default_allocator"};
    allocator = real_default();
  }
  return allocator <= kLastPredefined;
}

bool is_ours(const void* block) {
  return process.arenas.contains(reinterpret_cast<std::uintptr_t>(block));
}

bool is_alignment(std::size_t alignment) {
  return alignment != 0 && (alignment & (alignment - 1)) == 0;
}

// As both runtimes do: no memory is no block.
void* allocate(std::size_t alignment, std::size_t size) {
  if (size == 0 || !is_alignment(alignment)) return nullptr;
  const AllocationScope managed(AllocationMode::kManaged);
  return alignment <= alignof(std::max_align_t) ? std::malloc(size)
                                                : std::aligned_alloc(alignment, size);
}

void* allocate_zeroed(std::size_t alignment, std::size_t count, std::size_t size) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes == 0 || !is_alignment(alignment)) {
    return nullptr;
  }
  const AllocationScope managed(AllocationMode::kManaged);
  if (alignment <= alignof(std::max_align_t)) return std::calloc(count, size);
  void* const block = std::aligned_alloc(alignment, bytes);
  if (block != nullptr) std::memset(block, 0, bytes);
  return block;
}

// `block` is ours, or nullptr.
void* reallocate(void* block, std::size_t size) {
  const AllocationScope managed(AllocationMode::kManaged);
  if (size != 0) return std::realloc(block, size);
  std::free(block);
  return nullptr;
}

constexpr std::size_t kUsual = alignof(std::max_align_t);

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

// The next runtime's entry point of this name.
#define AMASIA_REAL(SIGNATURE, NAME) \
  static constinit Real<SIGNATURE> real { NAME }

AMASIA_EXPORT void* omp_alloc(std::size_t size, Handle allocator) {
  AMASIA_REAL(void*(std::size_t, Handle), "omp_alloc");
  return is_ours(allocator) ? allocate(kUsual, size) : real(size, allocator);
}

AMASIA_EXPORT void* omp_aligned_alloc(std::size_t alignment, std::size_t size, Handle allocator) {
  AMASIA_REAL(void*(std::size_t, std::size_t, Handle), "omp_aligned_alloc");
  return is_ours(allocator) ? allocate(alignment, size) : real(alignment, size, allocator);
}

AMASIA_EXPORT void* omp_calloc(std::size_t count, std::size_t size, Handle allocator) {
  AMASIA_REAL(void*(std::size_t, std::size_t, Handle), "omp_calloc");
  return is_ours(allocator) ? allocate_zeroed(kUsual, count, size) : real(count, size, allocator);
}

AMASIA_EXPORT void* omp_aligned_calloc(std::size_t alignment, std::size_t count, std::size_t size,
                                       Handle allocator) {
  AMASIA_REAL(void*(std::size_t, std::size_t, std::size_t, Handle), "omp_aligned_calloc");
  return is_ours(allocator) ? allocate_zeroed(alignment, count, size)
                            : real(alignment, count, size, allocator);
}

AMASIA_EXPORT void* omp_realloc(void* block, std::size_t size, Handle allocator,
                                Handle free_allocator) {
  AMASIA_REAL(void*(void*, std::size_t, Handle, Handle), "omp_realloc");
  const bool ours = block != nullptr ? is_ours(block) : is_ours(allocator);
  return ours ? reallocate(block, size) : real(block, size, allocator, free_allocator);
}

AMASIA_EXPORT void omp_free(void* block, Handle allocator) {
  AMASIA_REAL(void(void*, Handle), "omp_free");
  is_ours(block) ? std::free(block) : real(block, allocator);
}

// What the compilers call for allocate clauses and directives.

AMASIA_EXPORT void* GOMP_alloc(std::size_t alignment, std::size_t size, Handle allocator) {
  AMASIA_REAL(void*(std::size_t, std::size_t, Handle), "GOMP_alloc");
  return is_ours(allocator) ? allocate(alignment, size) : real(alignment, size, allocator);
}

AMASIA_EXPORT void GOMP_free(void* block, Handle allocator) {
  AMASIA_REAL(void(void*, Handle), "GOMP_free");
  is_ours(block) ? std::free(block) : real(block, allocator);
}

AMASIA_EXPORT void* __kmpc_alloc(int gtid, std::size_t size, Handle allocator) {
  AMASIA_REAL(void*(int, std::size_t, Handle), "__kmpc_alloc");
  return is_ours(allocator) ? allocate(kUsual, size) : real(gtid, size, allocator);
}

AMASIA_EXPORT void* __kmpc_aligned_alloc(int gtid, std::size_t alignment, std::size_t size,
                                         Handle allocator) {
  AMASIA_REAL(void*(int, std::size_t, std::size_t, Handle), "__kmpc_aligned_alloc");
  return is_ours(allocator) ? allocate(alignment, size) : real(gtid, alignment, size, allocator);
}

AMASIA_EXPORT void* __kmpc_calloc(int gtid, std::size_t count, std::size_t size,
                                  Handle allocator) {
  AMASIA_REAL(void*(int, std::size_t, std::size_t, Handle), "__kmpc_calloc");
  return is_ours(allocator) ? allocate_zeroed(kUsual, count, size)
                            : real(gtid, count, size, allocator);
}

AMASIA_EXPORT void* __kmpc_realloc(int gtid, void* block, std::size_t size, Handle allocator,
                                   Handle free_allocator) {
  AMASIA_REAL(void*(int, void*, std::size_t, Handle, Handle), "__kmpc_realloc");
  const bool ours = block != nullptr ? is_ours(block) : is_ours(allocator);
  return ours ? reallocate(block, size) : real(gtid, block, size, allocator, free_allocator);
}

AMASIA_EXPORT void __kmpc_free(int gtid, void* block, Handle allocator) {
  AMASIA_REAL(void(int, void*, Handle), "__kmpc_free");
  is_ours(block) ? std::free(block) : real(gtid, block, allocator);
}
