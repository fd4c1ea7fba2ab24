// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/gomp_reductions.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace amasia::omp::gomp {
namespace {

// The list as the compiler lays it out (libgomp, task.c): count, size of a block, alignment
// and then address of the array, allocator, next list, hash table, end of the array, entries.
enum Field : std::size_t { kBlockSize = 1, kArray = 2, kNext = 4, kTable = 5, kEnd = 6 };
constexpr Bytes kAlignment = 64;

constinit Real<void()> real_taskgroup_start{"GOMP_taskgroup_start"};
constinit Real<void()> real_taskgroup_end{"GOMP_taskgroup_end"};
constinit Real<void(std::uintptr_t*)> real_register{"GOMP_taskgroup_reduction_register"};
constinit Real<void(std::uintptr_t*)> real_unregister{"GOMP_taskgroup_reduction_unregister"};

// Arrays in use, for the mending of addresses in them. Entries are few: one per open construct.
struct Array {
  std::uintptr_t begin;
  std::uintptr_t end;
  std::uintptr_t block_size;
};
class Arrays {
 public:
  void add(Array array) {
    const std::lock_guard lock(mutex_);
    arrays_.push_back(array);
  }
  void remove(std::uintptr_t begin) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find_if(arrays_.begin(), arrays_.end(),
                                 [begin](const Array& array) { return array.begin == begin; });
    if (at != arrays_.end()) arrays_.erase(at);
  }
  // The block size of the array that holds `address`; 0: none of ours does.
  std::uintptr_t block_size_at(std::uintptr_t address) {
    const std::lock_guard lock(mutex_);
    for (const Array& array : arrays_) {
      if (address >= array.begin && address < array.end) return array.block_size;
    }
    return 0;
  }

 private:
  std::mutex mutex_;
  std::vector<Array> arrays_;
};
// The ABI has no object to keep it in: the calls carry addresses only.
Arrays& arrays() {
  static Arrays all;
  return all;
}

// The lists of one construct: those before the one that an outer construct registered, which
// libgomp has appended if it has the table of its own construct.
template <typename Function>
void for_each_list(std::uintptr_t* first, Function function) {
  std::uintptr_t* list = first;
  do {
    std::uintptr_t* const next = reinterpret_cast<std::uintptr_t*>(list[kNext]);
    function(list);
    list = next;
  } while (list != nullptr && list[kTable] == 0);
}

std::uintptr_t array_size(const std::uintptr_t* list, const ThreadFrame& frame) {
  return base::round_up(list[kBlockSize] * frame.team->size(), kAlignment);
}

// Before registration the chain ends with a null pointer.
std::uintptr_t arrays_size(const std::uintptr_t* list, const ThreadFrame& frame) {
  std::uintptr_t size = 0;
  for (; list != nullptr; list = reinterpret_cast<const std::uintptr_t*>(list[kNext])) {
    size += array_size(list, frame);
  }
  return size;
}

// Registers with libgomp, then puts arrays of the global size in the place of its own; from
// `memory` on if it is given, else each allocated.
void register_lists(const ThreadFrame& frame, std::uintptr_t* lists, std::byte* memory) {
  real_register(lists);
  for_each_list(lists, [&](std::uintptr_t* list) {
    const std::uintptr_t size = array_size(list, frame);
    std::free(reinterpret_cast<void*>(list[kArray]));
    std::byte* array = memory;
    if (memory != nullptr) {
      memory += size;
    } else {
      array = static_cast<std::byte*>(std::aligned_alloc(kAlignment, size));
      AMASIA_CHECK(array != nullptr, "there is memory for a team's reductions");
      std::memset(array, 0, size);
    }
    list[kArray] = reinterpret_cast<std::uintptr_t>(array);
    list[kEnd] = list[kArray] + list[kBlockSize] * frame.team->size();
    arrays().add({list[kArray], list[kEnd], list[kBlockSize]});
  });
}

void forget_arrays(std::uintptr_t* lists) {
  for_each_list(lists, [](const std::uintptr_t* list) { arrays().remove(list[kArray]); });
}

// Memory that a team's global thread 0 has allocated, and how many constructs with reductions its
// thread was in then: scopes nest.
struct SharedBlock {
  void* memory;
  std::size_t depth;
};
thread_local std::vector<SharedBlock> shared_blocks;
// Of the constructs that this thread is in, innermost last.
thread_local std::vector<std::uintptr_t*> open_lists;

// Frees what constructs had that ended before the one which begins. All threads of the team have
// come to that one, so none uses the others' memory any more.
void free_ended_blocks(Services& services) {
  while (!shared_blocks.empty() && shared_blocks.back().depth >= open_lists.size()) {
    services.free_shared(shared_blocks.back().memory);
    shared_blocks.pop_back();
  }
}

}  // namespace

void begin_shared_state(ThreadFrame& frame, std::uintptr_t* reductions, void** memory) {
  if (reductions == nullptr && memory == nullptr) return;
  Services& services = frame.team->node().services();
  const std::uintptr_t lists_size = arrays_size(reductions, frame);
  const auto memory_size = memory != nullptr ? reinterpret_cast<std::uintptr_t>(*memory) : 0;
  std::optional<std::uint64_t> block;
  if (frame.global_id == 0) {
    block = reinterpret_cast<std::uint64_t>(services.allocate_shared(lists_size + memory_size));
  }
  auto* const base = reinterpret_cast<std::byte*>(frame.team->barrier_with(frame, block));
  if (frame.global_id == 0) {
    free_ended_blocks(services);
    shared_blocks.push_back({base, open_lists.size()});
  }
  if (memory != nullptr) *memory = base + lists_size;
  if (reductions == nullptr) return;
  real_taskgroup_start();
  register_lists(frame, reductions, base);
  open_lists.push_back(reductions);
}

// The end of what begin_shared_state began with reductions: a barrier, unless cancelled.
AMASIA_ENTRY void GOMP_workshare_task_reduction_unregister(bool cancelled) {
  static constinit Real<void(bool)> real{"GOMP_workshare_task_reduction_unregister"};
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real(cancelled);
  real_taskgroup_end();
  AMASIA_CHECK(!open_lists.empty(), "a construct's reductions are unregistered by who registered");
  std::uintptr_t* const lists = open_lists.back();
  open_lists.pop_back();
  forget_arrays(lists);
  // The arrays are the team's: libgomp must free its table only.
  for_each_list(lists, [](std::uintptr_t* list) { list[kArray] = 0; });
  real_unregister(lists);
  if (!cancelled) frame->team->barrier(*frame);
}

AMASIA_ENTRY void GOMP_taskgroup_reduction_register(std::uintptr_t* lists) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_register(lists);
  register_lists(*frame, lists, nullptr);
}

AMASIA_ENTRY void GOMP_taskgroup_reduction_unregister(std::uintptr_t* lists) {
  if (current_frame() != nullptr) forget_arrays(lists);
  real_unregister(lists);
}

// libgomp finds a thread's block by its local number; the block of its global number is meant.
AMASIA_ENTRY void GOMP_task_reduction_remap(std::size_t count, std::size_t originals,
                                            void** addresses) {
  static constinit Real<void(std::size_t, std::size_t, void**)> real{"GOMP_task_reduction_remap"};
  real(count, originals, addresses);
  const ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return;
  const std::uintptr_t shift = frame->global_id - frame->local_id;
  for (std::size_t i = 0; i < count; ++i) {
    const auto address = reinterpret_cast<std::uintptr_t>(addresses[i]);
    addresses[i] = reinterpret_cast<void*>(address + shift * arrays().block_size_at(address));
  }
}

namespace {

// taskloop with a reduction: libgomp would register it out of our sight, so it is done here and the
// loop told that there is none, and no taskgroup, since this is it.
constexpr unsigned kReductionFlag = 1 << 12, kNoGroupFlag = 1 << 11;

template <typename T>
using Taskloop = void(Outline, void*, void (*)(void*, void*), long, long, unsigned, unsigned long,
                      int, T, T, T);

template <typename T>
void run_taskloop(Real<Taskloop<T>>& real, Outline function, void* data,
                  void (*copy)(void*, void*), long size, long alignment, unsigned flags,
                  unsigned long tasks, int priority, T start, T end, T step) {
  adopt_thread();
  ThreadFrame* const frame = current_frame();
  if (frame != nullptr) frame->may_have_tasks = true;
  if (frame == nullptr || (flags & kReductionFlag) == 0) {
    return real(function, data, copy, size, alignment, flags, tasks, priority, start, end, step);
  }
  struct Head {
    T bounds[2];
    std::uintptr_t* lists;
  };
  real_taskgroup_start();
  register_lists(*frame, static_cast<Head*>(data)->lists, nullptr);
  real(function, data, copy, size, alignment, (flags & ~kReductionFlag) | kNoGroupFlag, tasks,
       priority, start, end, step);
  real_taskgroup_end();
}

}  // namespace

AMASIA_ENTRY void GOMP_taskloop(Outline function, void* data, void (*copy)(void*, void*),
                                long size, long alignment, unsigned flags, unsigned long tasks,
                                int priority, long start, long end, long step) {
  static constinit Real<Taskloop<long>> real{"GOMP_taskloop"};
  run_taskloop(real, function, data, copy, size, alignment, flags, tasks, priority, start, end,
               step);
}

AMASIA_ENTRY void GOMP_taskloop_ull(Outline function, void* data, void (*copy)(void*, void*),
                                    long size, long alignment, unsigned flags,
                                    unsigned long tasks, int priority, unsigned long long start,
                                    unsigned long long end, unsigned long long step) {
  static constinit Real<Taskloop<unsigned long long>> real{"GOMP_taskloop_ull"};
  run_taskloop(real, function, data, copy, size, alignment, flags, tasks, priority, start, end,
               step);
}

}  // namespace amasia::omp::gomp
