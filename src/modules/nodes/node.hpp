// SPDX-License-Identifier: Apache-2.0
// One node of a job of several: what becomes of its tasks that other nodes do, of those that it
// does for others, and where it gets some when it has none. The decisions are those of away_task
// and seeker; this sends, receives, and creates tasks.
//
//   field              | guarded by | what
//   away_              | mutex_     | records of tasks that other nodes have, by number
//   open_first_, _last | mutex_     | flexible tasks that nobody has taken; the oldest first
//   seeker_, random_   | mutex_     | who is asked for tasks, and who asks
//   serving_, early_   | mutex_     | the hold within which tasks for other nodes run
//   teller_, judge_,   | stalls_mutex_ | who has come to rest: deadlock.hpp
//   waits_             |
//   a record           | mutex_ for state and links; its creator before it is put there; else the
//                      | thread that receives (value, sink, held), as A1 to A3 let it
//   counters           | relaxed atomics
//
// The mutex is held for short steps only; messages are sent after it is let go, so that those of
// one pair may overtake each other, but for the value and the end of one task: the end is sent
// after the value was.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "amasia/nodes.hpp"
#include "modules/nodes/away_task.hpp"
#include "modules/nodes/connection.hpp"
#include "modules/nodes/deadlock.hpp"
#include "modules/nodes/messages.hpp"
#include "modules/nodes/program_image.hpp"
#include "modules/nodes/seeker.hpp"

namespace amasia::nodes::detail {

// A callable's bytes, and who waits for its answers, where that is another node.
struct Work {
  void (*perform)(void* body, void* result) = nullptr;
  std::uint32_t bytes = 0;
  std::uint32_t result_bytes = 0;
  bool wants_value = false;
  NodeId from = base::kOrigin;  // where `number` is to be answered, if the task came from elsewhere
  std::uint64_t number = 0;
  std::unique_ptr<std::byte[]> body;  // aligned as operator new aligns
};

// A task that another node has, or may have.
struct Record {
  Work work;
  bool is_foreign = false;  // it came from work.from
  AwayState state = AwayState::kOpen;
  ValueState value = ValueState::kNotWanted;
  NodeId to = base::kOrigin;  // who has it
  Sink* sink = nullptr;
  tasks::hold held = {};
  std::exception_ptr error = {};  // noted for the ticket
  Record* next = nullptr;         // among the open ones
  Record* previous = nullptr;
};

// Room for a task's result, without an allocation for small ones.
class ResultRoom {
 public:
  explicit ResultRoom(std::size_t bytes)
      : large_(bytes > sizeof small_ ? std::make_unique<std::byte[]>(bytes) : nullptr) {}
  void* data() { return large_ != nullptr ? large_.get() : small_; }

 private:
  alignas(16) std::byte small_[64];
  std::unique_ptr<std::byte[]> large_;
};

class Node final : public fabric::Handler, public fabric::PeerLostHandler {
 public:
  // `connection` may be nullptr: a job of one node.
  Node(std::unique_ptr<Connection> connection, ProgramImage image, tasks::module_host& host);
  ~Node() override;

  unsigned self() const { return self_.value; }
  unsigned count() const { return count_; }
  bool is_alone() const { return count_ == 1; }
  // Messages are taken from now on.
  void start();

  void send(NodeId to, const Parcel& parcel, Sink* sink);
  void offer(const Parcel& parcel, Sink* sink);
  void idle();
  void stalled();
  statistics get_statistics() const;

  // In a task of run(): tasks of other nodes are done in its finish scope, until end_serving().
  void begin_serving();
  void end_serving() noexcept;
  // On a node that is not the origin: until that is over. In a task.
  void wait_for_end_of_job();
  // On the origin: the others may leave.
  void end_job_in_order();
  void leave();
  // exit() was called, perhaps by a task, while others go on.
  void leave_at_exit();

  void on_message(const fabric::Incoming& message) override;
  void on_peer_lost(NodeId peer, std::string_view why) override;

 private:
  struct Counters {
    std::atomic<std::uint64_t> sent{0}, received{0}, given{0}, stolen{0}, requests{0}, lifelines{0};
  };
  // Tasks on their way to a node, which were taken from the open ones.
  struct Gift {
    NodeId to;
    bool for_lifeline = false;
    std::vector<std::byte> bytes = {};
  };

  // A worker that sends on its way to sleep may still be at it when the job ends on other threads:
  // leave() waits for it, and who comes later does nothing.
  class WhileHere {
   public:
    explicit WhileHere(Node& node) : node_(node) { node_.reporting_.fetch_add(1); }
    ~WhileHere() { node_.reporting_.fetch_sub(1); }
    WhileHere(const WhileHere&) = delete;
    WhileHere& operator=(const WhileHere&) = delete;
    // Partner: leave(), which stores that and then looks whether anybody is here.
    bool is_too_late() const { return node_.left_.load(); }

   private:
    Node& node_;
  };
  void take(const fabric::Incoming& message);
  void send_counted(NodeId to, fabric::MessageType type, std::span<const std::byte> head,
                    std::span<const std::byte> body = {});
  // Deadlocks.
  std::optional<MessageCounts> counts_if_stalled() const;
  void look_whether_stalled(bool anew);
  void take_stalled_message(NodeId from, std::span<const std::byte> body);
  void take_ask_message(NodeId from, std::span<const std::byte> body);
  void take_stall_answer_message(NodeId from, std::span<const std::byte> body);
  void act(Judgement judgement, std::uint64_t round);
  void report_deadlock();

  // Tasks that came.
  void take_task_message(NodeId from, std::span<const std::byte> body);
  void take_tasks_message(NodeId from, std::span<const std::byte> body);
  bool read_work(NodeId from, const ArrivedTask& task, Work& work);
  void do_soon(Work work);
  void put_up(Work work);
  void perform(Work work);
  // Answers.
  void take_answer_message(NodeId from, std::span<const std::byte> body);
  void settle_value(Record& record, const Answer& answer);
  void answer(const Work& work, std::uint32_t flags, std::span<const std::byte> value,
              std::exception_ptr error);
  void forward(const Record& record, const Answer& answer);
  // Flexible tasks.
  void run_ticket(Record* record);
  void do_here(Record* record);
  void link_last(Record* record) AMASIA_REQUIRES(mutex_);
  void unlink(Record* record) AMASIA_REQUIRES(mutex_);
  std::size_t tasks_to_spare() const AMASIA_REQUIRES(mutex_);
  Gift take_gift(NodeId to, bool for_lifeline) AMASIA_REQUIRES(mutex_);
  void give_surplus();
  void send_gift(const Gift& gift);
  void take_seek_message(NodeId from, fabric::MessageType type);
  void send_seek_messages(const SeekStep& step);
  std::uint64_t random() AMASIA_REQUIRES(mutex_);
  void must_be_everywhere(const Parcel& parcel) const;
  TaskHead head_of(const Work& work, std::uint64_t number) const;
  [[noreturn]] void malformed(NodeId from, std::string_view what);

  std::unique_ptr<Connection> connection_;
  const ProgramImage image_;
  tasks::module_host& host_;
  const NodeId self_;
  const std::uint32_t count_;
  tasks::promise<void> job_over_;

  os::Mutex mutex_;
  AwayTasks<Record> away_ AMASIA_GUARDED_BY(mutex_);
  Record* open_first_ AMASIA_GUARDED_BY(mutex_) = nullptr;
  Record* open_last_ AMASIA_GUARDED_BY(mutex_) = nullptr;
  std::size_t open_count_ AMASIA_GUARDED_BY(mutex_) = 0;
  Seeker seeker_ AMASIA_GUARDED_BY(mutex_);
  std::uint64_t random_ AMASIA_GUARDED_BY(mutex_);
  tasks::hold serving_ AMASIA_GUARDED_BY(mutex_);
  bool is_serving_ AMASIA_GUARDED_BY(mutex_) = false;
  std::vector<Work> early_ AMASIA_GUARDED_BY(mutex_);  // came before begin_serving()
  // Whether somebody waits for tasks of this node: looked at without the mutex, for speed. Written
  // with it; who has put a task there sees it, as both take the mutex in between.
  std::atomic<bool> is_asked_{false};
  Counters counters_;

  // Where deadlocks are to be reported. Counts: D1 of deadlock.hpp.
  std::atomic<std::uint64_t> counted_sent_{0}, counted_received_{0};
  os::Mutex stalls_mutex_;
  StallTeller teller_ AMASIA_GUARDED_BY(stalls_mutex_);
  StallJudge judge_ AMASIA_GUARDED_BY(stalls_mutex_);
  std::vector<std::string> waits_ AMASIA_GUARDED_BY(stalls_mutex_);  // by node; the origin's
  // WhileHere, and what ends it.
  std::atomic<std::uint32_t> reporting_{0};
  std::atomic<bool> left_{false};
};

}  // namespace amasia::nodes::detail
