// SPDX-License-Identifier: Apache-2.0
// Thread-specific data (pthread_key_create) of a program on several nodes: a key that one node
// makes is a key on all. Each C library numbers keys for itself; the program's are numbered here.
//
// field       | written by                       | read by            | ordered by
// generation  | who creates or removes the key   | all nodes' threads | managed memory, seq_cst
// destructor  | who creates it, in use by then   | ending threads     | same
// ThreadValues is its thread's own.
#pragma once

#include <array>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace amasia::omp {

using KeyDestructor = void (*)(void*);

// Which keys exist; zero bytes are an empty table. Lies in managed memory.
class KeyTable {
 public:
  static constexpr std::uint32_t kKeys = PTHREAD_KEYS_MAX;

  // Any thread. nullopt: all are in use.
  std::optional<std::uint32_t> create(KeyDestructor method) noexcept;
  // False: it is not in use. Values that threads still have are forgotten, as POSIX has it.
  bool remove(std::uint32_t key) noexcept;

  // Differs for each use of the key's number; nullopt: not in use.
  std::optional<std::uint32_t> generation(std::uint32_t key) const noexcept;
  KeyDestructor destructor(std::uint32_t key) const noexcept { return keys_[key].destructor; }

 private:
  struct Key {
    std::atomic<std::uint32_t> generation{0};  // odd: in use
    std::atomic<KeyDestructor> destructor{nullptr};
  };
  std::array<Key, kKeys> keys_;
};

// One thread's values, in memory of its node.
class ThreadValues {
 public:
  // nullptr if the thread has set none since the key was made.
  void* get(const KeyTable& table, std::uint32_t key) const noexcept;
  // False: the key is not in use, or there is no memory.
  bool set(const KeyTable& table, std::uint32_t key, void* value) noexcept;
  // The thread ends: calls the destructors of values that are not nullptr, again for those that
  // destructors set, as often as the C library does.
  void destroy(const KeyTable& table) noexcept;

 private:
  struct Value {
    std::uint32_t generation = 0;
    void* value = nullptr;
  };
  std::vector<Value> values_;
};

}  // namespace amasia::omp
