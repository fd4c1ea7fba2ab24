// SPDX-License-Identifier: Apache-2.0
// Doacross loops of global teams (ordered(n) with depend(sink) and depend(source)), for both ABIs.
// Every node has a bit for each iteration of the nest: its dependences on others may go ahead. The
// thread that posts an iteration sets its own node's bit and tells the other nodes: at once, or of
// iterations that are brief of many together. docs/protocols/work_sharing.md has the messages.
//
// field              | written by                           | guarded by
// table_             | threads that begin and end loops,    | mutex_
//                    | handler                              |
// PostLoop's bits    | threads that post, handler           | atomic: release; partner: who waits
// D1 The mutex is held on native stacks only, never across a send or a wait, and nothing managed is
//    touched under it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "loops/loops.hpp"
#include "omp/frame.hpp"
#include "omp/work_sharing/post_table.hpp"

namespace amasia::omp {

class Node;
class Team;

class Doacross final : public fabric::Handler {
 public:
  // Registers itself for kPostMessage and kAskPostMessage. The node outlives it.
  explicit Doacross(Node& node);
  ~Doacross() override;

  // The calling thread, that of `frame`, enters its team's next doacross loop, a nest of loops. The
  // outer loop is then handed out as any other, by a schedule of loops::in_turn().
  void begin(ThreadFrame& frame, std::span<const loops::Space> nest);
  // The iteration of these values of the loops' variables: has come to depend(source); and waits
  // until another one has, unless there is no such iteration. Other nodes hear of what a thread
  // posts when it waits, when they ask, or some microseconds after it has told them last. Out of
  // either the thread may go home (Halt): then it is in the program again as another thread.
  void post(ThreadFrame& frame, std::span<const std::int64_t> values);
  void wait(ThreadFrame& frame, std::span<const std::int64_t> values);
  void end(ThreadFrame& frame);
  // The thread has come from another node (team/homecoming.hpp), where it was in the last of the
  // loops that it has met, which is_open() here. Native stack.
  void join(ThreadFrame& frame);
  // Whether threads of this node are in the last of the region's first `met` loops.
  bool is_open(std::uint32_t region, std::uint64_t met);
  // How many loops the nest has that the thread is in.
  static std::size_t depth(const ThreadFrame& frame);

  void on_message(const fabric::Incoming& message) override;

 private:
  struct PostBody;
  struct AskBody;

  [[gnu::noinline]] PostLoop* open(const Team& team, std::uint64_t number,
                                   std::span<const loops::Space> nest);
  [[gnu::noinline]] void close(const Team& team, std::uint64_t number);
  void lack_memory(std::uint64_t length);
  [[gnu::noinline]] void tell(ThreadFrame& frame);
  void send_untold(ThreadFrame& frame);
  [[gnu::noinline]] static void wait_at_home(std::span<const std::int64_t> values);
  template <typename Body>
  void send_to_others(const Team& team, fabric::MessageType type, const Body& body);
  void await(const ThreadFrame& frame, const PostLoop& loop, std::uint64_t place);
  void on_ask(NodeId from, const AskBody& ask);

  Node& node_;
  std::mutex mutex_;
  PostTable table_;
};

}  // namespace amasia::omp
