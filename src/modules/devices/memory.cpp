// SPDX-License-Identifier: Apache-2.0
#include "modules/devices/memory.hpp"

#include <fmt/format.h>

#include <cstring>
#include <new>

namespace amasia::device_tasks {
namespace {

// As devices that use the host's memory in place want it.
constexpr std::align_val_t kAlignment{4096};

struct Transfer final : Ending::Handle {
  mcl_transfer* open = nullptr;
  ~Transfer() override {
    if (open != nullptr) mcl_transfer_free(open);
  }
};

template <typename T>
tasks::future<T> failed() {
  tasks::promise<T> promise;
  promise.fail(std::current_exception());
  return promise.get_future();
}

}  // namespace

tasks::module_host& Memory::host() const {
  if (host_ == nullptr) throw std::logic_error("the module 'devices' is not attached any more");
  return *host_;
}

tasks::future<void*> Memory::allocate(std::size_t bytes) {
  const std::size_t size = std::max<std::size_t>(bytes, 1);
  try {
    host();
    void* const block = ::operator new(size, kAlignment);
    try {
      devices::detail::checked(mcl_register_buffer(
          block, size, MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC));
      const os::MutexLock lock(mutex_);
      blocks_.emplace(static_cast<char*>(block), size);
    } catch (...) {
      ::operator delete(block, kAlignment);
      throw;
    }
    tasks::promise<void*> made;
    made.put(block);
    return made.get_future();
  } catch (...) {
    return failed<void*>();
  }
}

// Copies on devices are void, so that unregistering has none to wait for.
tasks::future<void> Memory::release(void* block) {
  try {
    devices::detail::checked(mcl_invalidate_buffer(block));
    devices::detail::checked(mcl_unregister_buffer(block));
    {
      const os::MutexLock lock(mutex_);
      blocks_.erase(static_cast<char*>(block));
    }
    ::operator delete(block, kAlignment);
    tasks::promise<void> done;
    done.put();
    return done.get_future();
  } catch (const error& failure) {
    // A task uses it still: it is not freed.
    base::log_line(base::LogLevel::kError, "devices: memory is kept: {}", failure.what());
    return failed<void>();
  }
}

Memory::Part Memory::part_of(const void* at, std::size_t bytes) {
  const auto* const first = static_cast<const char*>(at);
  const os::MutexLock lock(mutex_);
  auto after = blocks_.upper_bound(first);
  if (after != blocks_.begin()) {
    const auto& [base, size] = *std::prev(after);
    const auto offset = static_cast<std::size_t>(first - base);
    if (offset <= size && bytes <= size - offset) {
      return {const_cast<char*>(base), offset, bytes};
    }
  }
  throw error(MCL_ERR_RESDATA, fmt::format("{} bytes at {} are not within memory of the place of "
                                           "devices", bytes, at));
}

std::unique_ptr<Ending::Handle> Memory::prepare(const Part& part, std::uint64_t flags) {
  auto transfer = std::make_unique<Transfer>();
  transfer->open = mcl_transfer_create(1, 1, 0);
  if (transfer->open == nullptr) devices::detail::fail(-MCL_ERR_MEMALLOC, mcl_reason());
  devices::detail::checked(mcl_transfer_set_arg(transfer->open, 0, part.base, part.bytes,
                                                static_cast<off_t>(part.offset), flags));
  return transfer;
}

tasks::future<void> Memory::transfer(std::unique_ptr<Ending::Handle> prepared) {
  tasks::promise<void> result;
  auto done = result.get_future();
  Ending::begin(line_, std::move(result), host().hold_scope(), [&](Ending* ending) {
    mcl_transfer* const open = static_cast<Transfer&>(*prepared).open;
    devices::detail::checked(mcl_task_on_end(open->handles[0], &Ending::tell, ending));
    devices::detail::checked(mcl_transfer_exec(open, classes_));
    return std::move(prepared);
  });
  return done;
}

tasks::future<void> Memory::copy_to_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return tasks::async_future([] {});
  return tasks::async_future([self = shared_from_this(), to, from, bytes] {
    // What devices have of it is void from here on, before the bytes are there: nothing that is
    // saved from a device comes over them.
    auto prepared = self->prepare(self->part_of(to, bytes), MCL_ARG_INPUT | MCL_ARG_REWRITE);
    std::memcpy(to, from, bytes);
    self->transfer(std::move(prepared)).get();
  });
}

tasks::future<void> Memory::copy_from_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return tasks::async_future([] {});
  return tasks::async_future([self = shared_from_this(), to, from, bytes] {
    self->transfer(self->prepare(self->part_of(from, bytes), MCL_ARG_OUTPUT)).get();
    std::memcpy(to, from, bytes);
  });
}

tasks::future<void> Memory::copy_on_device(void* to, const void* from, std::size_t bytes) {
  if (bytes == 0) return tasks::async_future([] {});
  return tasks::async_future([self = shared_from_this(), to, from, bytes] {
    self->transfer(self->prepare(self->part_of(from, bytes), MCL_ARG_OUTPUT)).get();
    self->copy_to_device(to, from, bytes).get();
  });
}

}  // namespace amasia::device_tasks
