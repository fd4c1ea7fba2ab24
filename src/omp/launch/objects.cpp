// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/objects.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <string_view>

#include "launch/launch.hpp"

namespace amasia::omp {
namespace {

constexpr std::string_view kSystemLibraries[] = {
    "libc.so",      "libm.so",      "libmvec.so", "libpthread.so", "libdl.so", "librt.so",
    "libresolv.so", "libutil.so",   "libanl.so",  "libnsl.so",     "libnss_",  "libBrokenLocale.so",
    "linux-vdso",   "linux-gate.so"};
// libgcc_s keeps the unwinder's caches and the keys of emulated thread-local variables: per node.
constexpr std::string_view kRuntimeLibraries[] = {
    "ld-linux", "ld.so",      "libgcc_s.so", "libamasia",  "libucp",     "libuct",
    "libucs",   "libucm",     "libnuma.so",  "libibverbs", "librdmacm",  "libmlx",
    "libnl-",   "libpmix",    "libhwloc",    "libasan.so", "libtsan.so", "libubsan.so",
    "liblsan",  "libarcher.", "libomptarget"};

// Open MPI's and PMIx's, also those that are opened when a program first needs them.
constexpr std::string_view kComponents[] = {"mca_", "libmca_", "pmix_mca_"};

std::string_view file_name(std::string_view path) {
  const auto slash = path.rfind('/');
  return slash == std::string_view::npos ? path : path.substr(slash + 1);
}

bool is_one_of(std::string_view name, std::span<const std::string_view> prefixes) {
  return std::ranges::any_of(prefixes, [&](auto prefix) { return name.starts_with(prefix); });
}

LoadedObject describe(const dl_phdr_info& info) {
  LoadedObject object;
  object.load_address = info.dlpi_addr;
  object.headers = info.dlpi_phdr;
  object.header_count = info.dlpi_phnum;
  object.path = info.dlpi_name;
  object.role = role_of_library(info.dlpi_name);
  object.begin = UINTPTR_MAX;
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type != PT_LOAD) continue;
    object.begin = std::min<std::uintptr_t>(object.begin, info.dlpi_addr + header.p_vaddr);
    object.end =
        std::max<std::uintptr_t>(object.end, info.dlpi_addr + header.p_vaddr + header.p_memsz);
  }
  return object;
}

// What tells it from another one that is loaded at its address when it has been closed.
std::size_t identity_of(const LoadedObject& object) {
  return object.begin ^ std::hash<std::string_view>()(object.path);
}

bool has_writable_data(const LoadedObject& object) {
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0) return true;
  }
  return false;
}

// Calls visit(name) for each DT_NEEDED entry.
template <typename Visit>
void for_each_dependency(const LoadedObject& object, Visit visit) {
  const ElfW(Dyn)* dynamic = nullptr;
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    if (object.headers[i].p_type == PT_DYNAMIC) {
      dynamic = reinterpret_cast<const ElfW(Dyn)*>(object.load_address + object.headers[i].p_vaddr);
    }
  }
  if (dynamic == nullptr) return;
  std::uintptr_t strings = 0;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL; ++entry) {
    if (entry->d_tag == DT_STRTAB) strings = entry->d_un.d_ptr;
  }
  // glibc has relocated the address in place, except where .dynamic is read-only.
  if (strings < object.load_address) strings += object.load_address;
  for (const ElfW(Dyn)* entry = dynamic; entry->d_tag != DT_NULL && strings != 0; ++entry) {
    if (entry->d_tag == DT_NEEDED)
      visit(reinterpret_cast<const char*>(strings + entry->d_un.d_val));
  }
}

template <typename Visit>
void for_each_object(Visit visit) {
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* argument) {
        return static_cast<int>((*static_cast<Visit*>(argument))(*info));
      },
      &visit);
}

}  // namespace

ObjectRole role_of_library(const char* path) noexcept {
  const std::string_view name = file_name(path);
  if (launch::openmp_runtime_of(name) != launch::OpenMpRuntime::kNone) return ObjectRole::kRuntime;
  if (is_one_of(name, kRuntimeLibraries)) return ObjectRole::kRuntime;
  if (is_one_of(name, kSystemLibraries)) return ObjectRole::kSystem;
  return ObjectRole::kProgram;
}

bool ObjectTable::scan(const void* own_code) noexcept {
  bool fits = true;
  for_each_object([&](const dl_phdr_info& info) {
    added_at_start_ = info.dlpi_adds;
    const LoadedObject object = describe(info);
    if (object.end == 0) return false;  // no segments: nothing to find in it
    fits = count_ < kMaxObjects;
    if (fits) start_[count_++] = object;
    return !fits;
  });
  if (!fits || count_ == 0) return false;
  added_seen_.store(added_at_start_, std::memory_order_relaxed);
  executable_ = start_[0];
  for (std::size_t i = 0; i < count_; ++i) by_address_[i] = static_cast<std::uint16_t>(i);
  std::sort(by_address_.begin(), by_address_.begin() + count_,
            [&](auto a, auto b) { return start_[a].begin < start_[b].begin; });
  for (std::size_t i = 0; i < count_; ++i) {
    if (!start_[i].contains(reinterpret_cast<std::uintptr_t>(own_code))) continue;
    // Not for an executable that contains Amasia, as a unit test does.
    if (i != 0) start_[i].role = ObjectRole::kRuntime, mark_dependencies(i);
  }
  return true;
}

void ObjectTable::mark_dependencies(std::size_t index) noexcept {
  for_each_dependency(start_[index], [&](const char* needed) {
    for (std::size_t i = 1; i < count_; ++i) {
      LoadedObject& object = start_[i];
      if (file_name(object.path) != needed || object.role != ObjectRole::kProgram) continue;
      object.role = ObjectRole::kRuntime;
      mark_dependencies(i);  // at most once for each object: its role has changed
    }
  });
}

const LoadedObject* ObjectTable::find(std::uintptr_t address) const noexcept {
  const auto* const end = by_address_.data() + count_;
  const auto* after = std::upper_bound(
      by_address_.data(), end, address,
      [&](std::uintptr_t value, std::uint16_t index) { return value < start_[index].begin; });
  if (after == by_address_.data()) return nullptr;
  const LoadedObject& object = start_[*(after - 1)];
  return object.contains(address) ? &object : nullptr;
}

bool ObjectTable::is_from_start(const void* address) const noexcept {
  return find(reinterpret_cast<std::uintptr_t>(address)) != nullptr;
}

ObjectRole ObjectTable::role_at(std::uintptr_t address) noexcept {
  if (const LoadedObject* object = find(address); object != nullptr) return object->role;
  // Acquire with the release in remember_late: the entries below the count are complete.
  const std::size_t count = late_count_.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < count; ++i) {
    if (address >= late_[i].begin && address < late_[i].end) return late_[i].role;
  }
  return remember_late(address);
}

ObjectRole ObjectTable::remember_late(std::uintptr_t address) noexcept {
  // Code that no object holds was generated: its neighbourhood is taken for the program's.
  constexpr std::uintptr_t kNeighbourhood = base::kMiB;
  Late found{base::round_down(address, kNeighbourhood),
             base::round_down(address, kNeighbourhood) + kNeighbourhood, ObjectRole::kProgram};
  for_each_object([&](const dl_phdr_info& info) {
    const LoadedObject object = describe(info);
    if (!object.contains(address)) return false;
    found = {object.begin, object.end, object.role};
    return true;
  });
  // Acquire and release of the lock order the writers among themselves.
  while (late_lock_.test_and_set(std::memory_order_acquire)) {
  }
  const std::size_t count = late_count_.load(std::memory_order_relaxed);
  if (count < kMaxLate) {
    late_[count] = found;
    late_count_.store(count + 1, std::memory_order_release);
  }
  late_lock_.clear(std::memory_order_release);
  return found.role;
}

void ObjectTable::settle() noexcept {
  late_library();  // of all that came before
  note_last();
}

void ObjectTable::note_last() noexcept {
  link_map* last = _r_debug.r_map;
  while (last->l_next != nullptr) last = last->l_next;
  if (dlopen(last->l_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE) != nullptr) {
    last_.store(last, std::memory_order_release);
  }
}

void ObjectTable::accept_opened() noexcept {
  std::size_t count = 0;
  bool fits = true;
  for_each_object([&](const dl_phdr_info& info) {
    const LoadedObject object = describe(info);
    if (object.end == 0 || find(object.begin) != nullptr) return false;
    fits = count < accepted_.size();
    if (fits) accepted_[count++] = identity_of(object);
    return !fits;
  });
  if (!fits) return;
  accepted_count_.store(count, std::memory_order_release);
  late_path_.store(nullptr, std::memory_order_release);  // of one that a region saw meanwhile
  note_last();
}

bool ObjectTable::is_accepted(const LoadedObject& object) const noexcept {
  const std::size_t count = accepted_count_.load(std::memory_order_acquire);
  if (count == 0) return false;
  const auto* const end = accepted_.data() + count;
  return std::find(accepted_.data(), end, identity_of(object)) != end ||
         is_one_of(file_name(object.path), kComponents);
}

const char* ObjectTable::late_library() noexcept {
  // The loader appends to its list. Relaxed: a thread that has opened a library has seen it do so.
  link_map* const last = last_.load(std::memory_order_acquire);
  if (last != nullptr &&
      std::atomic_ref<link_map*>(last->l_next).load(std::memory_order_relaxed) == nullptr) {
    return late_path_.load(std::memory_order_acquire);
  }
  unsigned long long added = 0;
  for_each_object([&](const dl_phdr_info& info) {
    added = info.dlpi_adds;
    return true;
  });
  // Relaxed: a race makes two threads look and find the same. late_path_ is released below.
  if (added != added_seen_.load(std::memory_order_relaxed)) {
    for_each_object([&](const dl_phdr_info& info) {
      const LoadedObject object = describe(info);
      const bool late = find(object.begin) == nullptr && object.role == ObjectRole::kProgram;
      // gconv modules are the C library's, which opens them when a program reads text.
      if (!late || !has_writable_data(object) || is_accepted(object)) return false;
      if (std::strstr(info.dlpi_name, "/gconv/") != nullptr) return false;
      // And what hwloc looks for devices with is hwloc's, which opens it once.
      if (std::strstr(info.dlpi_name, "/hwloc/hwloc_") != nullptr) return false;
      if (late_path_.load(std::memory_order_relaxed) == nullptr) {
        std::strncpy(late_path_text_.data(), info.dlpi_name, late_path_text_.size() - 1);
      }
      late_path_.store(late_path_text_.data(), std::memory_order_release);
      return true;
    });
    added_seen_.store(added, std::memory_order_relaxed);
  }
  return late_path_.load(std::memory_order_acquire);
}

}  // namespace amasia::omp
