// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/thread_keys.hpp"

#include <memory>

#include <gtest/gtest.h>

namespace amasia::omp {
namespace {

int destroyed = 0;
void count(void*) { ++destroyed; }

TEST(ThreadKeys, AValueIsTheThreadsOwn) {
  KeyTable table{};
  const std::uint32_t key = *table.create(nullptr);
  ThreadValues one;
  ThreadValues other;
  int value = 0;
  EXPECT_TRUE(one.set(table, key, &value));
  EXPECT_EQ(one.get(table, key), &value);
  EXPECT_EQ(other.get(table, key), nullptr);
}

TEST(ThreadKeys, ANumberUsedAgainHasNoValue) {
  KeyTable table{};
  const std::uint32_t key = *table.create(nullptr);
  ThreadValues values;
  int value = 0;
  EXPECT_TRUE(values.set(table, key, &value));
  EXPECT_TRUE(table.remove(key));
  EXPECT_FALSE(table.remove(key));
  EXPECT_FALSE(values.set(table, key, &value));
  EXPECT_EQ(values.get(table, key), nullptr);
  EXPECT_EQ(table.create(nullptr), key);
  EXPECT_EQ(values.get(table, key), nullptr);
}

TEST(ThreadKeys, AllNumbersCanBeUsedAndNoMore) {
  const auto table = std::make_unique<KeyTable>();
  for (std::uint32_t key = 0; key < KeyTable::kKeys; ++key) ASSERT_EQ(table->create(nullptr), key);
  EXPECT_FALSE(table->create(nullptr).has_value());
  EXPECT_TRUE(table->remove(77));
  EXPECT_EQ(table->create(nullptr), 77u);
  ThreadValues values;
  EXPECT_FALSE(values.set(*table, KeyTable::kKeys, &values));
}

TEST(ThreadKeys, TheEndOfAThreadCallsDestructorsOfWhatItHas) {
  KeyTable table{};
  const std::uint32_t counted = *table.create(count);
  const std::uint32_t silent = *table.create(nullptr);
  const std::uint32_t removed = *table.create(count);
  ThreadValues values;
  int value = 0;
  for (const std::uint32_t key : {counted, silent, removed}) {
    EXPECT_TRUE(values.set(table, key, &value));
  }
  EXPECT_TRUE(table.remove(removed));
  destroyed = 0;
  values.destroy(table);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(values.get(table, counted), nullptr);
}

struct Again {
  KeyTable table{};
  ThreadValues values;
  std::uint32_t key = 0;
  int calls = 0;
};

TEST(ThreadKeys, ADestructorThatSetsTheValueIsCalledABoundedNumberOfTimes) {
  Again again;
  again.key = *again.table.create([](void* given) {
    auto* const self = static_cast<Again*>(given);
    ++self->calls;
    self->values.set(self->table, self->key, self);
  });
  EXPECT_TRUE(again.values.set(again.table, again.key, &again));
  again.values.destroy(again.table);
  EXPECT_EQ(again.calls, PTHREAD_DESTRUCTOR_ITERATIONS);
}

}  // namespace
}  // namespace amasia::omp
