// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/program_thread_locals.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>

#include "omp/code/thread_pointer.hpp"
#include "omp/launch/dynamic_section.hpp"

namespace amasia::omp {
namespace {

bool is_of_a_language(const LoadedObject& object) {
  constexpr std::array kLanguages = {"/libstdc++.so", "/libgfortran.so", "/libquadmath.so",
                                     "/libgcc_s.so"};
  return std::ranges::any_of(kLanguages, [&object](const char* name) {
    return std::strstr(object.path, name) != nullptr;
  });
}

// Open MPI's own, and udev's, which hwloc opens devices by. Their threads' values are theirs, and
// no other node calls them: interpose_mpi.cpp sees to that.
bool is_of_mpi(const LoadedObject& object) {
  constexpr std::array kLibraries = {"/libmpi", "/libopen-pal.so", "/libopen-rte.so", "/libmca_",
                                     "/libudev.so"};
  return std::ranges::any_of(kLibraries, [&object](const char* name) {
    return std::strstr(object.path, name) != nullptr;
  });
}

// Whose thread-local variables count, and follow the program's threads.
bool is_programs(const LoadedObject& object) {
  return object.role == ObjectRole::kProgram && !is_of_a_language(object) && !is_of_mpi(object);
}

Bytes thread_local_size(const LoadedObject& object) {
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    if (object.headers[i].p_type == PT_TLS) return object.headers[i].p_memsz;
  }
  return 0;
}

bool any_starts_with(std::span<const std::string_view> names,
                     std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(names, [beginnings](std::string_view name) {
    return std::ranges::any_of(beginnings,
                               [name](std::string_view begin) { return name.starts_with(begin); });
  });
}

bool runtime_keeps_some(std::span<const std::string_view> imports) {
  return any_starts_with(imports, {"__kmpc_threadprivate"});
}

bool can_be_packed(std::span<const std::string_view> imports) {
  return any_starts_with(imports, {"GOMP_", "__kmpc_", "omp_"}) &&
         !any_starts_with(imports, {"__cxa_thread_atexit"});
}

// More than this is not looked through after each region. OpenBLAS alone has 60 KiB.
constexpr Bytes kMostWatched = 256 * base::kKiB;

std::span<const std::byte> image_of(const LoadedObject& object) {
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    if (header.p_type != PT_TLS) continue;
    return {reinterpret_cast<const std::byte*>(object.load_address + header.p_vaddr),
            header.p_filesz};
  }
  return {};
}

struct BlockSearch {
  const LoadedObject* object;
  const void* data = nullptr;  // the calling thread's block
};

int find_block(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<BlockSearch*>(argument);
  if (info->dlpi_phdr != search.object->headers) return 0;
  search.data = info->dlpi_tls_data;
  return 1;
}

std::optional<ThreadBlock> block_of(const LoadedObject& object) {
  BlockSearch search{&object};
  dl_iterate_phdr(find_block, &search);
  if (search.data == nullptr) return std::nullopt;
  const auto* const thread = static_cast<const std::byte*>(__builtin_thread_pointer());
  return ThreadBlock{static_cast<const std::byte*>(search.data) - thread,
                     thread_local_size(object)};
}

}  // namespace

ThreadLocals thread_locals_of(const ObjectTable& objects) {
  ThreadLocals found{.kind = ThreadLocals::Kind::kNone};
  const ThreadLocals bound{.kind = ThreadLocals::Kind::kBound};
  Bytes size = 0;
  bool can_move = true;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const LoadedObject& object = objects[i];
    if (!is_programs(object)) continue;
    const std::vector<std::string_view> imports = imported_names(object);
    if (runtime_keeps_some(imports)) return bound;
    if (thread_local_size(object) == 0) continue;
    const std::optional<ThreadBlock> block = block_of(object);
    if (!block.has_value()) return bound;
    can_move = can_move && can_be_packed(imports);
    size += block->size;
    found.kind = ThreadLocals::Kind::kMovable;
    found.blocks.push_back(*block);
    found.watched.push_back({*block, image_of(object)});
  }
  if (can_move && size <= kMaxThreadValues) {
    found.watched.clear();
    return found;
  }
  if (size > kMostWatched) return bound;
  found.kind = ThreadLocals::Kind::kWatched;
  found.blocks.clear();
  return found;
}

bool may_take_addresses(const ObjectTable& objects) {
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const LoadedObject& object = objects[i];
    if (!is_programs(object)) continue;
    for (std::uint16_t k = 0; k < object.header_count; ++k) {
      const ElfW(Phdr)& header = object.headers[k];
      if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
      const auto* const begin =
          reinterpret_cast<const Byte*>(object.load_address + header.p_vaddr);
      if (may_read_thread_pointer({begin, header.p_filesz})) return true;
    }
  }
  return false;
}

}  // namespace amasia::omp
