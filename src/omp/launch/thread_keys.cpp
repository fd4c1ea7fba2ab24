// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/thread_keys.hpp"

#include <new>
#include <utility>

namespace amasia::omp {

std::optional<std::uint32_t> KeyTable::create(KeyDestructor method) noexcept {
  for (std::uint32_t key = 0; key < kKeys; ++key) {
    std::uint32_t generation = keys_[key].generation.load();
    if (generation % 2 != 0) continue;
    if (!keys_[key].generation.compare_exchange_strong(generation, generation + 1)) continue;
    keys_[key].destructor.store(method);
    return key;
  }
  return std::nullopt;
}

bool KeyTable::remove(std::uint32_t key) noexcept {
  auto used = generation(key);
  return used.has_value() && keys_[key].generation.compare_exchange_strong(*used, *used + 1);
}

std::optional<std::uint32_t> KeyTable::generation(std::uint32_t key) const noexcept {
  if (key >= kKeys) return std::nullopt;
  const std::uint32_t generation = keys_[key].generation.load();
  return generation % 2 != 0 ? std::optional(generation) : std::nullopt;
}

void* ThreadValues::get(const KeyTable& table, std::uint32_t key) const noexcept {
  if (key >= values_.size() || values_[key].value == nullptr) return nullptr;
  return values_[key].generation == table.generation(key) ? values_[key].value : nullptr;
}

bool ThreadValues::set(const KeyTable& table, std::uint32_t key, void* value) noexcept {
  const auto generation = table.generation(key);
  if (!generation.has_value()) return false;
  if (key >= values_.size()) {
    if (value == nullptr) return true;
    try {
      values_.resize(key + 1);
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  values_[key] = {*generation, value};
  return true;
}

void ThreadValues::destroy(const KeyTable& table) noexcept {
  bool called = true;
  for (int round = 0; called && round < PTHREAD_DESTRUCTOR_ITERATIONS; ++round) {
    called = false;
    // By index: a destructor may set values, also of keys that had none.
    for (std::uint32_t key = 0; key < values_.size(); ++key) {
      void* const value = get(table, key);
      values_[key].value = nullptr;
      const KeyDestructor method = value != nullptr ? table.destructor(key) : nullptr;
      if (method == nullptr) continue;
      method(value);
      called = true;
    }
  }
}

}  // namespace amasia::omp
