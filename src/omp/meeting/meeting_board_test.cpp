// SPDX-License-Identifier: Apache-2.0
// The board between threads and between processes: the same accesses that board_meeting_test
// explores, on the real memory.
#include "omp/meeting/meeting_board.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <thread>
#include <vector>

#include "os/os.hpp"

namespace amasia::omp {
namespace {

NodeId node(std::uint32_t id) { return NodeId{static_cast<NodeId::representation>(id)}; }

class SharedMemory {
 public:
  SharedMemory()
      : begin_(static_cast<std::byte*>(mmap(nullptr, MeetingBoard::kSize, PROT_READ | PROT_WRITE,
                                            MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedMemory() { munmap(begin_, MeetingBoard::kSize); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  std::span<std::byte> all() const { return {begin_, MeetingBoard::kSize}; }

 private:
  std::byte* const begin_;
};

// Nobody is patient: every wait goes to sleep, unless the post is there by then.
void await(MeetingBoard& board, NodeId other, std::uint64_t number) {
  using Action = BellWait::Action;
  std::uint32_t rung = 0;
  for (BellWait wait;;) {
    Bell& bell = board.bell();
    switch (wait.action()) {
      case Action::kLook:
        wait.looked(board.has_arrived(other, number), false);
        continue;
      case Action::kReadBell:
        rung = bell.rung.load(std::memory_order_acquire);
        break;
      case Action::kMark:
        bell.sleepers.fetch_add(1, std::memory_order_seq_cst);
        break;
      case Action::kSleep:
        os::futex_wait_shared(bell.rung, rung, -1);
        break;
      case Action::kUnmark:
        bell.sleepers.fetch_sub(1, std::memory_order_relaxed);
        break;
      case Action::kGo:
        return;
    }
    wait.done();
  }
}

Word meet(MeetingBoard& board, std::uint32_t size, std::uint64_t number, Word word) {
  using Action = BoardMeeting::Action;
  BoardMeeting meeting(board.self().value, size, word);
  for (;;) {
    switch (meeting.action()) {
      case Action::kGive:
        board.give(number, word.value);
        break;
      case Action::kArrive:
        board.arrive(number);
        break;
      case Action::kLookForSleeper:
        meeting.done(board.sleeps(node(meeting.other())));
        continue;
      case Action::kRing:
        board.ring(node(meeting.other()));
        break;
      case Action::kAwait:
        await(board, node(meeting.other()), number);
        break;
      case Action::kTake:
        meeting.take(board.word_of(node(meeting.other()), number));
        continue;
      case Action::kLeave:
        return meeting.word();
    }
    meeting.done();
  }
}

constexpr std::uint64_t kMeetings = 20000;

// False: a word did not come, or a plain store made before the meeting was not seen after it.
bool meet_many_times(MeetingBoard& board, std::uint32_t size, std::span<std::uint64_t> plain) {
  const std::uint32_t rank = board.self().value;
  for (std::uint64_t number = 1; number <= kMeetings; ++number) {
    const std::uint64_t giver = number / 3 % size;
    plain[rank * 8] = number;
    const Word mine = giver == rank ? Word{true, number * 7} : Word{};
    if (meet(board, size, 2 * number, mine) != Word{true, number * 7}) return false;
    for (std::uint32_t other = 0; other < size; ++other) {
      if (plain[other * 8] != number) return false;
    }
    if (meet(board, size, 2 * number + 1, {}) != Word{}) return false;
  }
  return true;
}

std::vector<std::unique_ptr<MeetingBoard>> boards_on(const SharedMemory& memory,
                                                     std::uint32_t size) {
  std::vector<std::unique_ptr<MeetingBoard>> boards;
  for (std::uint32_t id = 0; id < size; ++id) {
    boards.push_back(std::make_unique<MeetingBoard>(memory.all(), node(id)));
    const int core = static_cast<int>(id);
    boards.back()->attend({&core, 1});
  }
  for (const auto& board : boards) board->look_around(size);
  return boards;
}

class Boards : public testing::TestWithParam<std::uint32_t> {};

TEST_P(Boards, ThreadsMeetAndWakeEachOther) {
  const SharedMemory memory, plain;
  const auto words = std::span(reinterpret_cast<std::uint64_t*>(plain.all().data()), 512);
  const auto boards = boards_on(memory, GetParam());
  std::vector<int> good(GetParam());
  {
    std::vector<std::jthread> threads;
    for (std::uint32_t id = 0; id < GetParam(); ++id) {
      threads.emplace_back(
          [&, id] { good[id] = meet_many_times(*boards[id], GetParam(), words) ? 1 : 0; });
    }
  }
  EXPECT_EQ(good, std::vector<int>(GetParam(), 1));
}

TEST_P(Boards, ProcessesMeetAndWakeEachOther) {
  const SharedMemory memory, plain;
  const auto words = std::span(reinterpret_cast<std::uint64_t*>(plain.all().data()), 512);
  const auto boards = boards_on(memory, GetParam());
  std::vector<pid_t> children;
  for (std::uint32_t id = 0; id < GetParam(); ++id) {
    const pid_t child = fork();
    if (child == 0) _exit(meet_many_times(*boards[id], GetParam(), words) ? 0 : 1);
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Nodes, Boards, testing::Values(1u, 2u, 3u, 5u));

TEST(MeetingBoard, KnowsWhoAttendsAndWhoSharesCores) {
  const SharedMemory memory;
  MeetingBoard first(memory.all(), node(0)), third(memory.all(), node(2));
  const int some_core = 3, last_core = 1023;
  first.attend({&some_core, 1});
  third.attend({&last_core, 1});
  first.look_around(4);
  EXPECT_TRUE(first.has(node(0)));
  EXPECT_FALSE(first.has(node(1)));
  EXPECT_TRUE(first.has(node(2)));
  EXPECT_FALSE(first.cores_are_shared());
  MeetingBoard fourth(memory.all(), node(3));
  fourth.attend({&last_core, 1});
  fourth.look_around(4);
  EXPECT_TRUE(fourth.cores_are_shared());
}

TEST(MeetingBoard, CarriesRegionsJoinsAndReductions) {
  const SharedMemory memory;
  const auto boards = boards_on(memory, 3);
  MeetingBoard &origin = *boards[0], &other = *boards[1], &idle = *boards[2];
  EXPECT_EQ(other.posted_region(), 0u);
  origin.own_payload()[1] = std::byte{9};
  origin.post_region(node(1), 5, 2);
  EXPECT_EQ(other.posted_region(), 5u);
  EXPECT_EQ(idle.posted_region(), 0u);
  ASSERT_EQ(other.region_message().size(), 2u);
  EXPECT_EQ(other.region_message()[1], std::byte{9});

  other.own_payload()[0] = std::byte{4};
  EXPECT_FALSE(origin.has_reduction(node(1), 77));
  other.post_reduction(77, 1);
  ASSERT_TRUE(origin.has_reduction(node(1), 77));
  ASSERT_EQ(origin.reduction(node(1)).size(), 1u);
  EXPECT_EQ(origin.reduction(node(1))[0], std::byte{4});
  EXPECT_FALSE(other.has_consumed(77));
  origin.post_consumed(node(1), 77);
  EXPECT_TRUE(other.has_consumed(77));
  EXPECT_FALSE(idle.has_consumed(77));

  EXPECT_FALSE(origin.has_joined(node(1), 5));
  other.post_joined({5, 3, {.faults = 6, .stall_ns = 7}});
  ASSERT_TRUE(origin.has_joined(node(1), 5));
  EXPECT_EQ(origin.joined_of(node(1)).totals.stall_ns, 7);
  EXPECT_EQ(origin.joined_of(node(1)).given_back, 3U);
}

}  // namespace
}  // namespace amasia::omp
