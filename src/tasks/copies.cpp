// SPDX-License-Identifier: Apache-2.0
// Copies between places, and memory at them.
#include <fmt/format.h>

#include <cstring>
#include <limits>
#include <new>
#include <stdexcept>

#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace {

using detail::PlaceRecord;

// One task copies so much: enough that its creation does not count, and that several can share.
constexpr std::size_t kPiece = 1 << 20;
constexpr std::size_t kAlignment = 64;

bool is_of_cores(place at) {
  return at.type() == place_type::memory || at.type() == place_type::numa_node ||
         at.type() == place_type::cache;
}

const PlaceRecord& record_of(place at) {
  if (!at.valid()) throw std::logic_error("an invalid place is given");
  const PlaceRecord& record = *at.record();
  if (record.scheduler != detail::worker_of_task().scheduler) {
    throw std::logic_error(fmt::format("the place '{}' belongs to another runtime", record.name));
  }
  return record;
}

// The finish scope of the caller waits for what a module has under way.
void hold_scope_until(const future<void>& copied) {
  if (!copied.ready()) async_await([] {}, copied);
}

future<void> copy_by_tasks(char* to, const char* from, std::size_t bytes) {
  if (bytes <= kPiece) {
    return async_future([=] {
      if (bytes != 0) std::memcpy(to, from, bytes);
    });
  }
  const auto pieces = static_cast<std::ptrdiff_t>((bytes + kPiece - 1) / kPiece);
  return forasync_future(range<1>{{0}, {pieces}, {1}}, [=](std::ptrdiff_t piece) {
    const std::size_t at = static_cast<std::size_t>(piece) * kPiece;
    std::memcpy(to + at, from + at, std::min(kPiece, bytes - at));
  });
}

const memory_functions* owner_of(const PlaceRecord& place) {
  const auto& memories = place.scheduler->copiers().memories;
  const memory_functions& of_type = memories[static_cast<std::size_t>(place.type)];
  return of_type.allocate ? &of_type : nullptr;
}

[[noreturn]] void no_memory_at(const PlaceRecord& place) {
  throw std::logic_error(fmt::format("no module gives memory at the place '{}' ({})", place.name,
                                     name_of(place.type)));
}

template <typename T>
future<T> ready_future(T value) {
  promise<T> made;
  made.put(value);
  return made.get_future();
}
future<void> ready_future() {
  promise<void> made;
  made.put();
  return made.get_future();
}

void* host_memory(place at, std::size_t bytes) {
  if (at.type() == place_type::numa_node && at.number() >= 0) {
    return os::allocate_on_numa_node(bytes, at.number());
  }
  return ::operator new(bytes, std::align_val_t(kAlignment), std::nothrow);
}

void release_host_memory(const PlaceRecord& at, void* block, std::size_t bytes) noexcept {
  if (at.type == place_type::numa_node && at.number >= 0) {
    os::free_on_numa_node(block, bytes);
  } else {
    ::operator delete(block, std::align_val_t(kAlignment));
  }
}

future<void> release(const PlaceRecord& at, void* block, std::size_t bytes) {
  if (const memory_functions* const owner = owner_of(at)) {
    return owner->release(place(&at), block, bytes);
  }
  if (!is_of_cores(place(&at))) no_memory_at(at);
  release_host_memory(at, block, bytes);
  return ready_future();
}

}  // namespace

future<void> async_copy(void* to, place to_place, const void* from, place from_place,
                        std::size_t bytes) {
  const PlaceRecord& target = record_of(to_place);
  const PlaceRecord& source = record_of(from_place);
  detail::PlaceCounts& counts = detail::worker_of_task().at[target.index];
  counts.copies.add(1);
  counts.bytes.add(static_cast<std::int64_t>(bytes));
  const copy_function& by_module =
      target.scheduler->copiers()
          .copies[static_cast<std::size_t>(target.type)][static_cast<std::size_t>(source.type)];
  if (by_module) {
    future<void> copied = by_module(to, to_place, from, from_place, bytes);
    hold_scope_until(copied);
    return copied;
  }
  if (is_of_cores(to_place) && is_of_cores(from_place)) {
    return copy_by_tasks(static_cast<char*>(to), static_cast<const char*>(from), bytes);
  }
  throw std::logic_error(fmt::format("no module copies from '{}' ({}) to '{}' ({})", source.name,
                                     name_of(source.type), target.name, name_of(target.type)));
}

future<void*> allocate_at(place at, std::size_t bytes) {
  // More than that is rounded up to little by those who round (libstdc++'s aligned operator new).
  constexpr std::size_t kMost = std::numeric_limits<std::ptrdiff_t>::max();
  const PlaceRecord& record = record_of(at);
  const memory_functions* const owner = owner_of(record);
  if (owner != nullptr && bytes <= kMost) return owner->allocate(at, bytes);
  if (owner == nullptr && !is_of_cores(at)) no_memory_at(record);
  void* const block = bytes <= kMost ? host_memory(at, std::max<std::size_t>(bytes, 1)) : nullptr;
  if (block != nullptr) return ready_future(block);
  promise<void*> failed;
  failed.fail(std::make_exception_ptr(std::bad_alloc()));
  return failed.get_future();
}

future<void> free_at(place at, void* block, std::size_t bytes) {
  return release(record_of(at), block, std::max<std::size_t>(bytes, 1));
}

buffer::~buffer() {
  if (data_ == nullptr) return;
  release(*place_.record(), data_, std::max<std::size_t>(bytes_, 1));
}

}  // namespace amasia::tasks
