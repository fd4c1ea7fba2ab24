// SPDX-License-Identifier: Apache-2.0
// Blocks that another node's heap gave out: freeing them and asking for their size.
//
// A free is put by for its owner and sent with others; at the owner the service thread only notes
// the addresses, since a heap must not be entered there, and a thread of the program frees them the
// next time it allocates. Sizes are answered by the service thread itself: that needs no lock.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "dsm/heap/heap.hpp"
#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

// kFreeBlocks: addresses, to their owner. kSizeRequest: an address. kSizeReply: the usable size.
inline constexpr fabric::MessageType kHeapFirst = 0x300, kHeapLast = 0x30f;
inline constexpr fabric::MessageType kFreeBlocks = 0x300;
inline constexpr fabric::MessageType kSizeRequest = 0x301;
inline constexpr fabric::MessageType kSizeReply = 0x302;

// field           | written by                    | read by       | guarded by
// batches_        | threads that free             | same          | batch_mutex_
// handed_back_    | handler; collect()            | same          | handed_mutex_
// query_          | threads that ask (one a time) | same          | query_mutex_
// Both mutexes that the handler or a sender takes are held in runtime sections only.
class ForeignBlocks final : public fabric::Handler {
 public:
  // Registers for kHeapFirst … kHeapLast; all outlive it.
  ForeignBlocks(const AddressSpace& space, Heap& heap, fabric::Fabric& fabric);

  // Frees a block in another node's heap, some time. Any thread of the program.
  void release(void* block) noexcept;
  // Sends what release() has put by. Any thread of the program.
  void flush() noexcept;
  // Bytes that the block can hold. Any thread of the program; a round trip to the owner.
  std::size_t usable_size(const void* block) noexcept;

  // Whether others have freed blocks of this node. One relaxed load: a free seen late is freed
  // late.
  bool has_handed_back() const noexcept { return any_.load(std::memory_order_relaxed); }
  // Frees those blocks. Any thread of the program.
  void collect() noexcept;

  void on_message(const fabric::Incoming& message) override;

 private:
  static constexpr std::size_t kBatch = 128;
  struct Batch {
    std::size_t count = 0;
    std::array<std::uint64_t, kBatch> blocks{};
  };
  struct SizeQuery {
    std::uint64_t block = 0;
    std::uint32_t number = 0;
    std::uint32_t unused = 0;
  };
  struct SizeReply {
    std::uint64_t size = 0;
    std::uint32_t number = 0;
    std::uint32_t unused = 0;
  };

  NodeId owner_of(const void* block) const;
  void send_locked(NodeId to, Batch& batch);

  const AddressSpace& space_;
  Heap& heap_;
  fabric::Fabric& fabric_;
  os::Mutex batch_mutex_;
  std::array<Batch, base::kMaxNodes> batches_;
  // Whether a batch may hold something. Changes under batch_mutex_; relaxed when read without it: a
  // block put by at the same time goes with the next flush.
  std::atomic<bool> has_put_by_{false};
  os::Mutex handed_mutex_;
  std::vector<std::uint64_t> handed_back_;
  std::atomic<bool> any_{false};
  os::Mutex query_mutex_;
  std::uint32_t query_number_ = 0;
  std::uint64_t answered_size_ = 0;         // before answered_
  std::atomic<std::uint32_t> answered_{0};  // release by the handler, acquire by who asked
};

}  // namespace amasia::dsm
