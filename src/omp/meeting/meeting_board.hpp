// SPDX-License-Identifier: Apache-2.0
// The meeting board: memory that the nodes of one host share, on which leaders post what they would
// otherwise send to each other's mailboxes. It is runtime memory: managed memory stays apart from
// it, and what a node wrote there before a post is visible after it by the coherence protocol's own
// rule (docs/protocols/team.md).
//
// Each node has a part; all is zero at first. Numbers of meetings and regions are never 0.
// field            | written by          | read by               | ordered by
// attends, cores   | its node, at start  | others                | the bootstrap's fence
// arrival, words   | its node's leader   | others' leaders       | BoardMeeting (A1, A2)
// sleepers         | its node's threads  | others' leaders       | BellWait (A3)
// bell             | all                 | its node's threads    | BellWait (A3)
// region_for[i]    | the origin          | node i's main thread  | released after payload
// joined, totals   | its node's main     | the origin            | released after totals
// reduction        | its node's leader   | the origin's leader   | released after payload
// consumed_for[i]  | the origin's leader | node i's leader       | –
// payload          | its node            | others                | the two releases above
// P1 But for bells, a part has one writer, its node; nothing is ever reset.
// P2 A payload is written again only when its readers have used it: the origin's (a region's
//    message) after all have joined, another's (a reduction) after its leader was let go.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <span>

#include "base/base.hpp"
#include "omp/meeting/board_meeting.hpp"
#include "omp/meeting/team_messages.hpp"

namespace amasia::omp {

// What a node's threads sleep on until a handler, or another node, has something for them. `rung`
// has a line of its own, since the others write it.
struct Bell {
  alignas(64) std::atomic<std::uint32_t> rung{0};
  alignas(64) std::atomic<std::uint32_t> sleepers{0};
};

class MeetingBoard {
 public:
  // One node's part of the memory, page-aligned: what is not used costs nothing.
  static constexpr Bytes kPartSize = 16 * base::kKiB;
  static constexpr Bytes kSize = kPartSize * base::kMaxNodes;
  static constexpr Bytes kPayloadSize = 8 * base::kKiB;

  // `memory`: kSize bytes of zeroes, mapped by all nodes of the host, page-aligned, outliving this.
  MeetingBoard(std::span<std::byte> memory, NodeId self);
  MeetingBoard(const MeetingBoard&) = delete;
  MeetingBoard& operator=(const MeetingBoard&) = delete;

  // This node will use the board. Then all nodes of the job meet by other means; then each asks
  // who else attends: nodes of other hosts, or of other launchers, have other memory.
  void attend(std::span<const int> cores);
  void look_around(std::uint32_t node_count);

  NodeId self() const { return self_; }
  bool has(NodeId node) const { return (attending_ >> node.value & 1) != 0; }
  // Whether a node that attends may run on a core that another one may run on.
  bool cores_are_shared() const { return cores_shared_; }

  // The rest is for threads of nodes that attend.

  Bell& bell();
  // Lets `node` look at what was posted for it. Any thread.
  void ring_if_sleeping(NodeId node);
  void ring(NodeId node);
  bool sleeps(NodeId node) const;

  // Meetings. A leader at a time.
  void give(std::uint64_t number, std::uint64_t word);
  void arrive(std::uint64_t number);
  bool has_arrived(NodeId node, std::uint64_t number) const;
  Word word_of(NodeId node, std::uint64_t number) const;

  // Where this node writes what it posts (P2).
  std::span<std::byte> own_payload();

  // Regions. The origin posts one to each participant here, after it wrote own_payload().
  void post_region(NodeId to, std::uint32_t region, std::uint32_t size);
  // The last region that was posted for this node; 0: none.
  std::uint32_t posted_region() const;
  std::span<const std::byte> region_message() const;
  void post_joined(const JoinedBody& joined);
  bool has_joined(NodeId node, std::uint32_t region) const;
  JoinedBody joined_of(NodeId node) const;

  // Reductions: the first `size` bytes of own_payload().
  void post_reduction(std::uint64_t key, std::uint32_t size);
  bool has_reduction(NodeId node, std::uint64_t key) const;
  std::span<std::byte> reduction(NodeId node);
  void post_consumed(NodeId to, std::uint64_t key);
  bool has_consumed(std::uint64_t key) const;

 private:
  struct Part;
  Part& part(NodeId node) const;

  const std::span<std::byte> memory_;
  const NodeId self_;
  std::uint64_t attending_ = 0;
  bool cores_shared_ = false;
};

}  // namespace amasia::omp
