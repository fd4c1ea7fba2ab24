// SPDX-License-Identifier: Apache-2.0
#include "devices/wire/ring.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <random>
#include <thread>

namespace amasia::devices {
namespace {

Record numbered(std::uint64_t number) { return short_record(RecordKind::kCancel, number); }
std::uint64_t number_of(const Record& record) { return record.as<ShortRecord>().number; }

TEST(Ring, KeepsOrderAndTellsFullFromEmpty) {
  auto ring = std::make_unique<Ring>();
  RingProducer producer(ring.get());
  RingConsumer consumer(ring.get());
  std::deque<std::uint64_t> expected;
  std::mt19937_64 random(1);
  std::uint64_t next = 1;
  bool was_full = false, was_empty = false;
  for (int step = 0; step < 20000; ++step) {
    const bool filling = (step / 3000) % 2 == 0;
    if (random() % 4 < (filling ? 3U : 1U)) {
      const RingState state = producer.push(numbered(next));
      ASSERT_EQ(state == RingState::kOk, expected.size() < kRingSlots);
      was_full |= state == RingState::kNothing;
      if (state == RingState::kOk) expected.push_back(next++);
      producer.publish();
    } else {
      Record record;
      const RingState state = consumer.pop(&record);
      ASSERT_EQ(state == RingState::kOk, !expected.empty());
      was_empty |= state == RingState::kNothing;
      if (state != RingState::kOk) continue;
      ASSERT_EQ(number_of(record), expected.front());
      expected.pop_front();
    }
  }
  EXPECT_TRUE(was_full);
  EXPECT_TRUE(was_empty);
}

TEST(Ring, IsNotSeenBeforeItIsPublished) {
  auto ring = std::make_unique<Ring>();
  RingProducer producer(ring.get());
  RingConsumer consumer(ring.get());
  ASSERT_EQ(producer.push(numbered(7)), RingState::kOk);
  Record record;
  EXPECT_EQ(consumer.pop(&record), RingState::kNothing);
  EXPECT_FALSE(producer.publish());
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  EXPECT_EQ(number_of(record), 7U);
}

TEST(Ring, CountsThatMakeNoSenseAreCorrupt) {
  auto ring = std::make_unique<Ring>();
  RingProducer producer(ring.get());
  RingConsumer consumer(ring.get());
  Record record;
  std::mt19937 random(2);
  for (int step = 0; step < 1000; ++step) {
    const auto rubbish = static_cast<std::uint32_t>(random());
    ring->control.tail.store(rubbish);
    RingConsumer fresh(ring.get());
    const RingState popped = fresh.pop(&record);
    EXPECT_EQ(popped, rubbish == 0            ? RingState::kNothing
                      : rubbish <= kRingSlots ? RingState::kOk
                                              : RingState::kCorrupt);
    ring->control.head.store(rubbish);
    RingProducer made(ring.get());
    // head in (0, 2^32 - slots) is ahead of a tail of 0.
    const bool sensible = 0U - rubbish <= kRingSlots;
    const RingState pushed = made.push(numbered(1));
    EXPECT_EQ(pushed == RingState::kCorrupt, !sensible) << rubbish;
  }
}

TEST(Ring, TellsTheProducerOfASleeperOnce) {
  auto ring = std::make_unique<Ring>();
  RingProducer producer(ring.get());
  RingConsumer consumer(ring.get());
  EXPECT_TRUE(consumer.may_sleep());
  ASSERT_EQ(producer.push(numbered(1)), RingState::kOk);
  EXPECT_TRUE(producer.publish());
  ASSERT_EQ(producer.push(numbered(2)), RingState::kOk);
  EXPECT_FALSE(producer.publish());
  EXPECT_FALSE(consumer.may_sleep()) << "there is something";
  Record record;
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  EXPECT_TRUE(consumer.may_sleep());
  consumer.wake();
  ASSERT_EQ(producer.push(numbered(3)), RingState::kOk);
  EXPECT_FALSE(producer.publish());
}

TEST(Ring, WakesWhoSleepsForWhatIsUrgentEnough) {
  auto ring = std::make_unique<Ring>();
  RingProducer producer(ring.get());
  RingConsumer consumer(ring.get());
  ASSERT_TRUE(consumer.may_sleep(Urgency::kOwn));
  ASSERT_EQ(producer.push(numbered(1)), RingState::kOk);
  EXPECT_FALSE(producer.publish(Urgency::kNone));
  ASSERT_EQ(producer.push(numbered(2)), RingState::kOk);
  EXPECT_TRUE(producer.publish(Urgency::kOwn));
  EXPECT_FALSE(consumer.may_sleep(Urgency::kOwn)) << "what is not urgent is there all the same";
  Record record;
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  EXPECT_EQ(number_of(record), 1U);
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  ASSERT_TRUE(consumer.may_sleep());
  ASSERT_EQ(producer.push(numbered(3)), RingState::kOk);
  EXPECT_TRUE(producer.publish(Urgency::kNone)) << "it sleeps for any";
  ASSERT_EQ(consumer.pop(&record), RingState::kOk);
  ASSERT_TRUE(consumer.may_sleep(Urgency::kOthers));
  ASSERT_EQ(producer.push(numbered(4)), RingState::kOk);
  EXPECT_FALSE(producer.publish(Urgency::kNone));
  ASSERT_EQ(producer.push(numbered(5)), RingState::kOk);
  EXPECT_TRUE(producer.publish(Urgency::kOthers));
}

// A consumer that waits for its flag only after may_sleep() never misses a record.
TEST(Ring, NoWakeUpIsLostBetweenThreads) {
  auto ring = std::make_unique<Ring>();
  std::atomic<std::uint32_t> flag{0};
  constexpr std::uint64_t kCount = 30000;
  std::thread producing([&] {
    RingProducer producer(ring.get());
    for (std::uint64_t number = 1; number <= kCount;) {
      if (producer.push(numbered(number)) == RingState::kOk) ++number;
      if (producer.publish()) {
        flag.fetch_add(1);
        flag.notify_one();
      }
    }
  });
  RingConsumer consumer(ring.get());
  for (std::uint64_t expected = 1; expected <= kCount;) {
    const std::uint32_t seen = flag.load();
    Record record;
    const RingState state = consumer.pop(&record);
    if (state == RingState::kNothing) {
      if (consumer.may_sleep()) flag.wait(seen);
      continue;
    }
    ASSERT_EQ(state, RingState::kOk);
    ASSERT_EQ(number_of(record), expected++);
  }
  producing.join();
}

}  // namespace
}  // namespace amasia::devices
