// SPDX-License-Identifier: Apache-2.0
#include "dsm/heap/heap.hpp"

#include <jemalloc/jemalloc.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "os/os.hpp"

// The private jemalloc's interface (cmake/jemalloc.cmake).
extern "C" {
void* amasia_je_malloc(std::size_t size) noexcept;
void* amasia_je_calloc(std::size_t count, std::size_t size) noexcept;
void* amasia_je_realloc(void* block, std::size_t size) noexcept;
void amasia_je_free(void* block) noexcept;
void* amasia_je_mallocx(std::size_t size, int flags) noexcept;
std::size_t amasia_je_sallocx(const void* block, int flags) noexcept;
int amasia_je_mallctl(const char* name, void* old, std::size_t* old_length, void* value,
                      std::size_t length) noexcept;

// Its own arena holds metadata only. Nothing is ever given back to the system (decay -1): that
// would need the other nodes' consent. No separate arena for large blocks, and no threads.
extern const char* amasia_je_malloc_conf;
extern bool amasia_je_opt_cache_oblivious;
const char* amasia_je_malloc_conf =
    "narenas:1,background_thread:false,dirty_decay_ms:-1,muzzy_decay_ms:-1,oversize_threshold:0,"
    "retain:true,percpu_arena:disabled,metadata_thp:disabled,thp:never,abort_conf:true";

// Where it would look for settings: those are for the program's own jemalloc.
char* amasia_je_secure_getenv(const char*) noexcept { return nullptr; }
ssize_t amasia_je_readlink(const char*, char*, std::size_t) noexcept {
  errno = ENOENT;
  return -1;
}
}

namespace amasia::dsm {
namespace {

// jemalloc's hooks get no argument of ours; the heap is one per process because jemalloc is.
Heap* the_heap = nullptr;

__attribute__((tls_model("initial-exec"))) thread_local bool thread_is_bound = false;

constexpr Bytes kGrowLimit = 64 * base::kMiB;  // address space taken ahead of need, at most

// arena_config_t of jemalloc 5.3, which its installed header does not declare.
struct ArenaConfig {
  extent_hooks_t* extent_hooks;
  bool metadata_use_hooks;
};

}  // namespace

struct HeapHooks {
  static void* allocate(extent_hooks_t*, void* wanted, std::size_t size, std::size_t alignment,
                        bool* zero, bool* commit, unsigned) {
    void* const block = the_heap->take(reinterpret_cast<std::uintptr_t>(wanted), size, alignment);
    if (block == nullptr) return nullptr;
    *zero = true;  // never given back, so what is taken is always untouched
    *commit = true;
    return block;
  }
  // `true` means: not done, keep it. Extents stay with jemalloc and are used again.
  static bool keep(extent_hooks_t*, void*, std::size_t, bool, unsigned) { return true; }
  static bool keep_part(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, unsigned) {
    return true;
  }
  // `false` means: done. There is nothing to do: the range is one mapping.
  static bool commit(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, unsigned) {
    return false;
  }
  static bool split(extent_hooks_t*, void*, std::size_t, std::size_t, std::size_t, bool, unsigned) {
    return false;
  }
  static bool merge(extent_hooks_t*, void*, std::size_t, void*, std::size_t, bool, unsigned) {
    return false;
  }

  static inline extent_hooks_t table = {allocate,  keep,      nullptr, commit, keep_part,
                                        keep_part, keep_part, split,   merge};
};

EarlyOutcome Heap::start(AddressRange range, const Settings& settings) noexcept {
  AMASIA_CHECK(the_heap == nullptr, "a process has one managed heap");
  AMASIA_CHECK(range.begin % base::kPageSize == 0 && range.end % base::kPageSize == 0,
               "the heap is made of whole pages");
  the_heap = this;
  // Large blocks begin on a page of their own, so that no page is shared for nothing.
  amasia_je_opt_cache_oblivious = false;
  range_ = range;
  if (const int error = bounds_.start(range); error != 0) {
    return {"reserve the table of large blocks", error};
  }
  largest_block_ = std::min(settings.largest_block, range.size());
  const AddressRange spread =
      settings.spread.size() > 0 ? settings.spread : AddressRange{range.end, range.end};
  AMASIA_CHECK(spread.begin > range.begin && spread.end == range.end,
               "spread memory lies at the end of the heap");
  const Bytes own = base::round_up(std::min<Bytes>(settings.own_share, spread.begin - range.begin),
                                   base::kPageSize);
  // The first page is left out, so that no block begins at the arena's own address.
  parts_[0].set(range.begin + base::kPageSize, range.begin + std::max(own, 2 * base::kPageSize));
  const bool has_even = settings.even_spread.size() > 0;
  AMASIA_CHECK(!has_even || settings.even_spread.end == spread.end, "it is the end of that part");
  parts_[1].set(spread.begin, has_even ? settings.even_spread.begin : spread.end);
  even_part_.set(parts_[1].end, spread.end);
  others_share_ = settings.others_share;
  parts_[2].set(parts_[0].end, spread.begin);
  arena_count_ = std::clamp(os::allowed_core_count(), 1u, kMaxArenas);
  for (unsigned i = 0; i < arena_count_; ++i) {
    ArenaConfig config{&HeapHooks::table, false};
    std::size_t length = sizeof arenas_[i];
    const int error = amasia_je_mallctl("experimental.arenas_create_ext", &arenas_[i], &length,
                                        &config, sizeof config);
    if (error != 0) return {"create an arena of the managed heap", error};
    char name[48];
    *fmt::format_to_n(name, sizeof name - 1, "arena.{}.retain_grow_limit", arenas_[i]).out = '\0';
    Bytes limit = std::clamp(own / 16, kGrowLimit / 16, kGrowLimit);
    amasia_je_mallctl(name, nullptr, nullptr, &limit, sizeof limit);
  }
  return {};
}

void Heap::Part::set(std::uintptr_t first, std::uintptr_t last) noexcept {
  begin = first;
  end = last;
  next.store(first, std::memory_order_relaxed);
}

void* Heap::Part::take(std::uintptr_t wanted, Bytes size, Bytes alignment) noexcept {
  std::uintptr_t rest = next.load(std::memory_order_relaxed);
  for (;;) {
    const std::uintptr_t block = base::round_up(rest, std::max<Bytes>(alignment, 1));
    if (wanted != 0 && wanted != block) return nullptr;  // cannot grow in place
    if (block > end || end - block < size) return nullptr;
    if (next.compare_exchange_weak(rest, block + size, std::memory_order_relaxed)) {
      return reinterpret_cast<void*>(block);
    }
  }
}

void* Heap::take(std::uintptr_t wanted, Bytes size, Bytes alignment) noexcept {
  // An extent for one block, since extents that are taken ahead of need are small (kGrowLimit).
  const Bytes own_rest = parts_[0].end - parts_[0].next.load(std::memory_order_relaxed);
  const Bytes others_taken = parts_[1].next.load(std::memory_order_relaxed) - parts_[1].begin;
  const Bytes others_rest = others_share_ - std::min(others_share_, others_taken);
  if (size > others_rest && size > own_rest) {
    if (void* const block = even_part_.take(wanted, size, alignment)) return block;
  }
  for (Part& part : parts_) {
    if (void* const block = part.take(wanted, size, alignment)) return block;
  }
  return nullptr;
}

Bytes Heap::bytes_taken() const {
  Bytes taken = 0;
  for (const Part& part : parts_) taken += part.next.load(std::memory_order_relaxed) - part.begin;
  return taken + even_part_.next.load(std::memory_order_relaxed) - even_part_.begin;
}

void Heap::bind_thread() noexcept {
  thread_is_bound = true;
  unsigned arena = arenas_[next_arena_.fetch_add(1, std::memory_order_relaxed) % arena_count_];
  amasia_je_mallctl("thread.arena", nullptr, nullptr, &arena, sizeof arena);
}

// A thread whose thread-local data is being destroyed is unbound again, behind our back, and gets
// metadata memory; so every block is looked at.
void* Heap::ensure_inside(void* block, std::size_t size, int flags) noexcept {
  if (__builtin_expect(block != nullptr && !owns(block), 0)) {
    amasia_je_free(block);
    block = allocate_explicitly(size, flags);
  }
  if (block != nullptr) bounds_.note(block, size);
  return block;
}

void* Heap::allocate_explicitly(std::size_t size, int flags) noexcept {
  return amasia_je_mallocx(std::max<std::size_t>(size, 1),
                           flags | MALLOCX_ARENA(arenas_[0]) | MALLOCX_TCACHE_NONE);
}

void* Heap::allocate(std::size_t size) noexcept {
  if (__builtin_expect(size > largest_block_, 0)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (__builtin_expect(!thread_is_bound, 0)) bind_thread();
  return ensure_inside(amasia_je_malloc(size), size, 0);
}

void* Heap::allocate_zeroed(std::size_t count, std::size_t size) noexcept {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > largest_block_) {
    errno = ENOMEM;
    return nullptr;
  }
  if (__builtin_expect(!thread_is_bound, 0)) bind_thread();
  return ensure_inside(amasia_je_calloc(count, size), bytes, MALLOCX_ZERO);
}

void* Heap::allocate_aligned(std::size_t alignment, std::size_t size) noexcept {
  if (size > largest_block_ || alignment > largest_block_) {
    errno = ENOMEM;
    return nullptr;
  }
  if (__builtin_expect(!thread_is_bound, 0)) bind_thread();
  const int flags = MALLOCX_ALIGN(std::max<std::size_t>(alignment, 1));
  size = std::max<std::size_t>(size, 1);
  void* const block = ensure_inside(amasia_je_mallocx(size, flags), size, flags);
  if (block == nullptr) errno = ENOMEM;
  return block;
}

void* Heap::reallocate(void* block, std::size_t size) noexcept {
  AMASIA_CHECK_DEBUG(owns(block), "a block of another heap");
  if (__builtin_expect(size > largest_block_, 0)) {
    errno = ENOMEM;
    return nullptr;
  }
  if (__builtin_expect(!thread_is_bound, 0)) bind_thread();
  void* const moved = amasia_je_realloc(block, size);
  if (__builtin_expect(moved == nullptr || owns(moved), 1)) {
    if (moved != nullptr) bounds_.note(moved, size);
    return moved;
  }
  void* const inside = allocate_explicitly(size, 0);
  if (inside != nullptr) {
    bounds_.note(inside, size);
    std::memcpy(inside, moved, size);
  }
  amasia_je_free(moved);
  return inside;
}

void Heap::release(void* block) noexcept {
  AMASIA_CHECK_DEBUG(owns(block), "a block of another heap");
  amasia_je_free(block);
}

std::size_t Heap::usable_size(const void* block) const noexcept {
  return amasia_je_sallocx(block, 0);
}

}  // namespace amasia::dsm
