// SPDX-License-Identifier: Apache-2.0
// The executable and libraries of this process, and which of them belong to the program.
//
// Words: a *program object* is the executable or a library whose writable data is shared between
// the nodes. A *runtime object* is the loader, an OpenMP runtime, Amasia or something that it uses:
// its state is this node's own, and so is what it allocates. A *system object* is a part of the C
// library: its state is the node's own, but what it allocates (a FILE, a line) is the program's.
#pragma once

#include <link.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/base.hpp"

namespace amasia::omp {

enum class ObjectRole : std::uint8_t { kProgram, kSystem, kRuntime };

struct LoadedObject {
  std::uintptr_t begin = 0;  // of all its segments
  std::uintptr_t end = 0;
  std::uintptr_t load_address = 0;
  const ElfW(Phdr) * headers = nullptr;
  std::uint16_t header_count = 0;
  ObjectRole role = ObjectRole::kProgram;
  const char* path = "";  // as the loader has it; "" for the executable

  bool contains(std::uintptr_t address) const { return address >= begin && address < end; }
};

// By file name alone, as for a library that is opened late. Any thread.
ObjectRole role_of_library(const char* path) noexcept;

// Constant-initialised; allocates nothing, since malloc consults it.
//
//   operation         who                      when
//   scan              the composition root     once, one thread, before the rest
//   settle            the composition root     once, one thread, after scan
//   accept_opened     MPI's initialisation     once, one thread
//   queries           any thread, any context  after scan
//
// field        | written by                | read by       | ordered by
// start_       | scan                      | all           | constant afterwards
// late_        | remember_late, under lock | role_of       | release/acquire of late_count_
// last_        | settle, accept_opened     | late_library  | release/acquire
// accepted_    | accept_opened, one thread | late_library  | release/acquire of accepted_count_
class ObjectTable {
 public:
  static constexpr std::size_t kMaxObjects = 512;
  static constexpr std::size_t kMaxLate = 256;

  constexpr ObjectTable() = default;

  // Records what is loaded now; everything that comes later is *late*. `own_code` is any address
  // within Amasia's library, whose dependencies are runtime objects. False: too many objects.
  bool scan(const void* own_code) noexcept;

  std::size_t size() const { return count_; }
  // In the order in which the loader has them, which is the same on every node.
  const LoadedObject& operator[](std::size_t index) const { return start_[index]; }

  // Whether code at `address` was loaded at start, so is on every node.
  bool is_from_start(const void* address) const noexcept;

  // Whether it is within a part of the C library that was loaded at start.
  bool is_of_c_library(const void* address) const noexcept {
    const LoadedObject* const object = find(reinterpret_cast<std::uintptr_t>(address));
    return object != nullptr && object->role == ObjectRole::kSystem;
  }

  // Whether it is within a program object that was loaded at start.
  bool is_of_program(const void* address) const noexcept {
    const LoadedObject* const object = find(reinterpret_cast<std::uintptr_t>(address));
    return object != nullptr && object->role == ObjectRole::kProgram;
  }

  // Whether what the code at `address` allocates is this node's own business. Some 5 ns for what
  // was loaded at start; code of unknown origin (generated at run time) is the program's.
  bool allocates_privately(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    if (executable_.contains(at)) return false;
    return role_at(at) == ObjectRole::kRuntime;
  }

  // The path of a program object with writable data that was opened after scan, or nullptr. It is
  // not shared between the nodes. Some ns while nothing has been loaded since settle(); then some
  // 100 ns, and takes the loader's lock.
  const char* late_library() noexcept;
  // What Amasia itself loads late is there. Once, before the program's main; an object that was
  // loaded last stays loaded from now on.
  void settle() noexcept;
  // What has been opened since is called on this node only, as are MPI's components and what they
  // use: it is not late, nor are further components. The caller has seen that nothing was late
  // before.
  void accept_opened() noexcept;

 private:
  struct Late {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    ObjectRole role = ObjectRole::kProgram;
  };
  void note_last() noexcept;
  bool is_accepted(const LoadedObject& object) const noexcept;
  ObjectRole role_at(std::uintptr_t address) noexcept;
  ObjectRole remember_late(std::uintptr_t address) noexcept;
  void mark_dependencies(std::size_t index) noexcept;
  const LoadedObject* find(std::uintptr_t address) const noexcept;

  std::array<LoadedObject, kMaxObjects> start_{};
  std::array<std::uint16_t, kMaxObjects> by_address_{};
  std::size_t count_ = 0;
  LoadedObject executable_{};
  std::array<Late, kMaxLate> late_{};
  std::atomic<std::size_t> late_count_{0};
  std::atomic_flag late_lock_ = ATOMIC_FLAG_INIT;
  // The loader's count of objects ever added, at scan and when late_library() last looked.
  unsigned long long added_at_start_ = 0;
  std::atomic<unsigned long long> added_seen_{0};
  std::atomic<const char*> late_path_{nullptr};
  std::atomic<link_map*> last_{nullptr};  // the loader's list ended here at note_last()
  std::array<std::size_t, kMaxObjects> accepted_{};  // their identities
  std::atomic<std::size_t> accepted_count_{0};
  std::array<char, 256> late_path_text_{};
};

}  // namespace amasia::omp
