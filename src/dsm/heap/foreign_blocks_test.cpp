// SPDX-License-Identifier: Apache-2.0
// Both nodes live in this process and share its one heap: node 1 owns blocks, node 0 frees them.
#include "dsm/heap/foreign_blocks.hpp"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "dsm/heap/heap_for_tests.hpp"

namespace amasia::dsm {
namespace {

class ForeignBlocksTest : public testing::Test {
 protected:
  ForeignBlocksTest()
      : network_(fabric::make_loopback(2)),
        user_(space_for_tests(), heap_for_tests(), fabric(0)),
        owner_(space_for_tests(), heap_for_tests(), fabric(1)) {}

  fabric::Fabric& fabric(std::uint16_t node) { return network_->fabric(NodeId{node}); }
  void deliver() {
    for (std::uint16_t node : {0, 1}) {
      while (fabric(node).poll(64) != 0) {
      }
    }
  }

  std::unique_ptr<fabric::LoopbackNetwork> network_;
  ForeignBlocks user_;
  ForeignBlocks owner_;
};

TEST_F(ForeignBlocksTest, FreesAreSentInBatchesAndDoneByTheOwnersThreads) {
  std::vector<void*> blocks;
  for (int i = 0; i < 300; ++i) blocks.push_back(heap_for_tests().allocate(100'000));
  for (void* block : blocks) user_.release(block);
  deliver();
  EXPECT_TRUE(owner_.has_handed_back());
  EXPECT_EQ(fabric(1).statistics().messages_in, 2u);  // 128 each; 44 are put by
  user_.flush();
  user_.flush();  // nothing left to send
  deliver();
  EXPECT_EQ(fabric(1).statistics().messages_in, 3u);
  owner_.collect();
  EXPECT_FALSE(owner_.has_handed_back());
  const Bytes before = heap_for_tests().bytes_taken();
  for (void*& block : blocks) block = heap_for_tests().allocate(100'000);
  EXPECT_EQ(heap_for_tests().bytes_taken(), before);  // the same memory again
  for (void* block : blocks) heap_for_tests().release(block);
}

TEST_F(ForeignBlocksTest, TheOwnerTellsTheSizeOfABlock) {
  void* const block = heap_for_tests().allocate(5000);
  std::atomic<bool> done{false};
  std::thread service([&] {
    while (!done.load()) deliver();
  });
  EXPECT_EQ(user_.usable_size(block), heap_for_tests().usable_size(block));
  EXPECT_EQ(user_.usable_size(block), heap_for_tests().usable_size(block));
  done.store(true);
  service.join();
  heap_for_tests().release(block);
}

TEST_F(ForeignBlocksTest, AddressesThatTheHeapDidNotGiveOutAreIgnored) {
  const std::uint64_t wrong[] = {0, 8, space_for_tests().arena(base::kOrigin).begin};
  fabric(0).send(NodeId{1}, kFreeBlocks, std::as_bytes(std::span(wrong)));
  fabric(0).send(NodeId{1}, kSizeRequest, {});
  deliver();
  owner_.collect();
}

}  // namespace
}  // namespace amasia::dsm
