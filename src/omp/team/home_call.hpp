// SPDX-License-Identifier: Apache-2.0
// The origin's side of coming home out of a loop: a thread looks at a region that may come home and
// passes no barrier, and calls the other nodes' threads home if that pays (loops/midway.hpp has
// when; halt.hpp the other nodes' side).
//
//   watcher                            the other nodes     origin's leader
//   every kTick: Look                  Seen
//   it pays: Halt                      all hold: Halted
//   held                                                   waits for the others, at a barrier, a
//                                                          reduction or the region's end: take()
//                                      leave: Travellers   Verdict; takes the guests in
//   not taken in time, or refused: Verdict: they go on
//
// All go or none of the nodes that have yet to end the region. They hold until the origin's leader
// waits for them: then all threads of the origin do, and nobody there looks at the team or has
// begun what the others have not come to.
//
// field    | written by                     | read by         | ordered by
// region_  | begin, end                     | watcher         | release/acquire
// phase_   | watcher, who leaves kHeld      | all             | compare-exchange
// seen_, halted_ | the handler, once a number | watcher, leader | release/acquire of the number
// L1 While the watcher is at a region it has mutex_, which end() takes before the team changes.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "loops/loops.hpp"
#include "omp/meeting/team_messages.hpp"
#include "os/os.hpp"

namespace amasia::omp {

class Node;

class HomeCall {
 public:
  struct Settings {
    Nanos tick = 10 * base::kMillisecond;
    bool insists = false;  // for tests: every look finds that it pays
  };

  HomeCall(Node& node, Settings settings) : node_(node), settings_(settings) {}
  ~HomeCall();
  HomeCall(const HomeCall&) = delete;
  HomeCall& operator=(const HomeCall&) = delete;

  // The team has begun a region of several nodes whose threads may come home; what tries may lose,
  // ns. It is about to change, or the region to end. By the thread that does so, on its native
  // stack; end() may block for a moment.
  void begin(double allowance);
  void end();

  // Whether the other nodes' threads hold, so that take() is worth a try. Any thread.
  bool is_held() const { return phase_.load(std::memory_order_acquire) == Phase::kHeld; }
  // By the team's leader, when all of the origin's threads wait for the others. True: these come
  // home now, and the leader is to take them in.
  bool take();
  // A thread of the origin waits for what they would do: they go on. Any thread.
  void let_go();
  // From which nodes, after take().
  std::span<const NodeShare> called() const { return called_; }
  // By the last look, ns.
  double lost() const { return lost_; }

  // Handler side. False: the message cannot be.
  bool on_seen(NodeId from, const SeenBody& seen);
  bool on_halted(NodeId from, const HaltedBody& halted);

 private:
  enum class Phase : std::uint32_t { kIdle, kAsked, kHeld, kTaking, kTaken, kOutOfStep };

  void watch();
  void await_region();
  void look(std::uint32_t region);
  std::optional<loops::Midway::Look> ask(std::uint32_t region);
  void call(std::uint32_t region, Nanos patience);
  void hold(std::uint32_t region, Nanos patience);
  void take_in_the_middle(std::uint32_t region);
  std::uint64_t left_at_home(std::uint32_t region) const;
  bool all_hold(std::uint32_t region);
  void tell(bool goes_home);
  std::vector<NodeShare> nodes_in_region() const;
  template <typename Body>
  void send_to(std::span<const NodeShare> nodes, fabric::MessageType type, const Body& body);
  template <typename Ready>
  bool await(std::uint32_t region, Nanos patience, Ready ready);
  void ring();

  Node& node_;
  const Settings settings_;
  os::Thread thread_;
  std::atomic<bool> stopping_{false}, asleep_{false};
  std::atomic<std::uint32_t> news_{0};
  std::atomic<std::uint32_t> region_{0};  // 0: none to look at
  std::mutex mutex_;                      // L1
  std::atomic<Phase> phase_{Phase::kIdle};

  // The watcher's: the stretch without a barrier that it looks at.
  std::uint32_t stretch_region_ = 0, stretch_meetings_ = 0;
  Nanos stretch_began_ = 0;
  Nanos held_ = 0;  // so long others have held, in vain, since then
  std::optional<loops::Midway> midway_;
  std::optional<std::array<SeenBody, base::kMaxNodes>> first_seen_;
  std::array<SeenBody, base::kMaxNodes> last_seen_{};  // also of nodes that have ended the region
  Nanos next_call_ = 0;
  double allowance_ = 0;  // written by begin(), before region_
  double lost_ = 0;       // read by the leader after take()
  // The nodes that the attempt is about; read by the leader once they hold.
  std::vector<NodeShare> called_;

  // Of the look and the attempt under way: their numbers, and the answers by node, whose numbers
  // are written last.
  template <typename Body>
  struct Answers {
    std::atomic<std::uint32_t> wanted{0};
    std::array<Body, base::kMaxNodes> bodies{};
    std::array<std::atomic<std::uint32_t>, base::kMaxNodes> numbers{};

    bool put(NodeId from, const Body& body);
    bool have_come(std::span<const NodeShare> nodes) const;
  };
  Answers<SeenBody> seen_;
  Answers<HaltedBody> halted_;
};

}  // namespace amasia::omp
