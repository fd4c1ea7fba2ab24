// SPDX-License-Identifier: Apache-2.0
#include "omp/services.hpp"

#include <fmt/format.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

namespace amasia::omp {
namespace {

constexpr Bytes kSharedAlignment = 64;

struct Search {
  std::uintptr_t address;
  std::span<std::byte> found;
};

int look_in_module(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<Search*>(argument);
  if (info->dlpi_tls_data == nullptr) return 0;
  const auto begin = reinterpret_cast<std::uintptr_t>(info->dlpi_tls_data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type != PT_TLS) continue;
    const std::size_t size = info->dlpi_phdr[i].p_memsz;
    if (search.address >= begin && search.address < begin + size) {
      search.found = {static_cast<std::byte*>(info->dlpi_tls_data), size};
    }
  }
  return search.found.empty() ? 0 : 1;
}

// Static thread-local blocks lie just below the thread pointer. A word that is not within this
// distance of it can be in a block that a dlopen added, which is rare and not looked for when the
// word is plainly none of the loader's pointers.
constexpr std::uintptr_t kStaticBlockLimit = 1 << 20;

}  // namespace

Status Services::start_thread(pthread_t& thread, void* (*function)(void*), void* argument) {
  const int reason = pthread_create(&thread, nullptr, function, argument);
  if (reason != 0) return base::errno_error(reason, "the system has no thread to give");
  return base::ok();
}

void* Services::allocate_shared(Bytes size) {
  const Bytes whole = base::round_up(size, kSharedAlignment);
  void* const block = std::aligned_alloc(kSharedAlignment, whole);
  if (block == nullptr) abort_job(fmt::format("no memory for {} bytes shared by a team", size));
  return std::memset(block, 0, whole);
}

void Services::free_shared(void* block) { std::free(block); }

const std::byte* Services::readable_end(const void* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return reinterpret_cast<const std::byte*>(base::round_up(value + 1, base::kPageSize));
}

bool Services::is_thread_local(const void* address) const {
  const auto thread_pointer = reinterpret_cast<std::uintptr_t>(__builtin_thread_pointer());
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  if (value >= thread_pointer || thread_pointer - value > kStaticBlockLimit) return false;
  return !thread_local_block(address).empty();
}

std::span<std::byte> thread_local_block(const void* address) {
  Search search{reinterpret_cast<std::uintptr_t>(address), {}};
  dl_iterate_phdr(look_in_module, &search);
  return search.found;
}

void Services::leave_job() {
  abort_job("the program has ended while a region ran");
  __builtin_unreachable();
}

}  // namespace amasia::omp
