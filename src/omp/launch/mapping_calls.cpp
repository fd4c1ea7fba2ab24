// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/mapping_calls.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdarg>

#include "omp/launch/dynamic_section.hpp"
#include "omp/launch/function_slots.hpp"
#include "omp/launch/own_mappings.hpp"
#include "omp/launch/process.hpp"

namespace amasia::omp {
namespace {

// A child of fork() has no other nodes, and threads that waited for the lock may be gone.
bool notes() { return process.managed; }

void* map(void* address, std::size_t size, int protection, int flags, int file,
          off_t offset) noexcept {
  void* const got = ::mmap(address, size, protection, flags, file, offset);
  if (got == MAP_FAILED || !notes()) return got;
  const int error = errno;
  note_own_mapping(got, size);
  errno = error;
  return got;
}

// Around a call that takes the range away, unless it fails(): forgotten first, as another thread
// may get the same addresses once they are free.
template <typename Call, typename Fails>
auto take_away(const void* address, std::size_t size, Call call, Fails fails) noexcept {
  const bool is_range = reinterpret_cast<std::uintptr_t>(address) % base::kPageSize == 0;
  if (!notes() || !is_range) return call();
  const int before = errno;
  const bool had_any = has_own_mappings();
  forget_own_mapping(address, size);
  errno = before;
  const auto result = call();
  const int error = errno;
  if (had_any && fails(result)) note_own_mapping(address, size);
  errno = error;
  return result;
}

int unmap(void* address, std::size_t size) noexcept {
  return take_away(
      address, size, [=] { return ::munmap(address, size); },
      [](int result) { return result != 0; });
}

void* remap(void* old, std::size_t old_size, std::size_t size, int flags, ...) noexcept {
  std::va_list rest;
  va_start(rest, flags);
  void* const wanted = (flags & MREMAP_FIXED) != 0 ? va_arg(rest, void*) : nullptr;
  va_end(rest);
  const auto move = [=] { return ::mremap(old, old_size, size, flags, wanted); };
  const auto fails = [](const void* result) { return result == MAP_FAILED; };
  const bool stays = (flags & MREMAP_DONTUNMAP) != 0;
  void* const got = stays ? move() : take_away(old, old_size, move, fails);
  if (got == MAP_FAILED || !notes()) return got;
  const int error = errno;
  note_own_mapping(got, size);
  errno = error;
  return got;
}

bool has_regions(const LoadedObject& object) {
  return std::ranges::any_of(imported_names(object), [](std::string_view name) {
    return name == "__kmpc_fork_call" || name.starts_with("GOMP_parallel");
  });
}

}  // namespace

void lead_mapping_calls_here(const ObjectTable& objects) {
  const auto binding = [](const char* name, auto* function) {
    return Binding{name, reinterpret_cast<std::uintptr_t>(function)};
  };
  const std::array bindings = {binding("mmap", &map), binding("mmap64", &map),
                               binding("munmap", &unmap), binding("mremap", &remap)};
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const LoadedObject& object = objects[i];
    const bool is_executable = i == 0;
    if (object.role != ObjectRole::kProgram || !(is_executable || has_regions(object))) continue;
    if (const Status bound = bind_functions(object, bindings); !bound.ok()) {
      base::log_line(base::LogLevel::kError,
                     "what {} maps by itself is not seen, and must not be used in regions: {}",
                     is_executable ? "the program" : object.path, bound.error().message);
    }
  }
}

}  // namespace amasia::omp
