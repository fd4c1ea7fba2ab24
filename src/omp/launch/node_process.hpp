// SPDX-License-Identifier: Apache-2.0
// All parts of a node, composed: made before main, in the order in which they depend on each other,
// and ended in the opposite one.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "delegate/delegate.hpp"
#include "dsm/dsm.hpp"
#include "fabric/fabric.hpp"
#include "omp/launch/brief_calibration.hpp"
#include "omp/launch/movable_threads.hpp"
#include "omp/launch/output.hpp"
#include "omp/launch/own_mappings.hpp"
#include "omp/launch/process.hpp"
#include "omp/launch/stack_pool.hpp"
#include "omp/launch/threads.hpp"
#include "omp/locks/lock_service.hpp"
#include "omp/node.hpp"
#include "omp/services.hpp"
#include "os/os.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

// kEndJob: from a node where the program called exit, to the origin. kNodeStatistics: from a node
// that leaves in order, to the origin, if the user wants to see them. kTouchedRunsWanted: from the
// origin, before a fork; kTouchedRuns, the answer: the runs of pages that the node has content for.
inline constexpr fabric::MessageType kProcessFirst = 0x320, kProcessLast = 0x32f;
inline constexpr fabric::MessageType kEndJob = 0x320;
inline constexpr fabric::MessageType kNodeStatistics = 0x321;
inline constexpr fabric::MessageType kTouchedRunsWanted = 0x322;
inline constexpr fabric::MessageType kTouchedRuns = 0x323;

// How a program ends: by exit, _exit or quick_exit, which differ in the handlers that they run.
enum class EndKind : std::uint32_t { kInOrder, kImmediate, kQuick };

struct EndJob {
  std::int32_t status = 0;
  EndKind kind = EndKind::kInOrder;
};

class NodeProcess final : public Services,
                          public dsm::Engine::Observer,
                          public fabric::PeerLostHandler,
                          public fabric::Handler {
 public:
  // Connects to the other nodes, compares images, makes the globals managed and starts the engine.
  // On the process's main thread before main; blocks until all nodes have come as far. On an
  // error this process cannot be a node.
  static Result<std::unique_ptr<NodeProcess>> start(Process& owner);
  ~NodeProcess() override;

  dsm::ForeignBlocks& foreign_blocks() { return *foreign_blocks_; }
  Node& node() { return *node_; }
  // What the job's nodes and links are. On the origin only.
  const machine::Identity& identity() const { return identity_; }

  // On the nodes other than the origin, main thread: serves until the origin ends the job.
  void serve();
  // The calling thread, and those it starts, execute the program from here on: what only the
  // origin's kernel can answer is asked there (delegate). An error where the system refuses it.
  Status delegate_calls();
  // On the origin, when the program's own end has been run: tells the others, waits until they
  // need nothing more from this node. Runtime section.
  void end_in_order();
  // The program ends itself on a node other than the origin, which then does it instead. Returns
  // only if the origin cannot be told.
  void end_job_from_here(int status, EndKind kind);
  // The program is about to send its own process this signal, on a node other than the origin: what
  // it has written so far is to be seen, and the launcher to know whose doing the end is. The
  // thread that does; may block for the way to the origin and back.
  void note_own_signal(int signal);
  // Whether the calling thread is the origin's that does so, or a guest, which the next runtime
  // takes for a thread outside of its regions, too.
  static bool ends_for_another_node();
  // On the origin, one thread at a time: brings all memory here that any node has written to, for
  // reading. Blocks until it has come; other threads may take pages away again. Runtime section.
  void fetch_memory();
  // The same for these runs.
  void fetch(std::span<const dsm::PageRun> runs);
  // All output of other nodes that has arrived is in the origin's streams; for the last time. If
  // the program ends in a region, what they have in their streams' buffers is asked for.
  void finish_output();

  Result<ManagedStack> acquire_stack() override { return team_stacks_.acquire(); }
  void* allocate_shared(Bytes size) override;
  void free_shared(void* block) override;
  bool is_managed(const void* address) const override { return process_.space.is_managed(address); }
  bool is_private(const void* address) const override;
  bool has_own_mappings() const override { return omp::has_own_mappings(); }
  bool is_heap(std::uintptr_t address) const override;
  const std::byte* readable_end(const void* address) const override;
  bool has_thread_locals() const override;
  ThreadLocals::Kind kind_of_thread_locals() const override;
  std::span<const ThreadBlock> thread_blocks() const override { return thread_locals_.blocks; }
  bool has_changed_thread_locals() const override { return thread_locals_.are_changed(); }
  bool may_take_thread_local_addresses() override;
  bool can_move_threads() const override {
    return movable_threads_.may_move && kind_of_thread_locals() < ThreadLocals::Kind::kWatched;
  }
  bool may_keep_own_addresses() const override { return movable_threads_.may_keep_own_addresses; }
  bool is_program_code(const void* instruction) const override {
    return process_.objects.is_of_program(instruction);
  }
  void watch_losses() override { engine_->watch_losses(); }
  Nanos stall_for_lost() const override { return engine_->stall_for_lost(); }
  delegate::CallTimes call_times() const override { return delegation_->call_times(); }
  const std::atomic<bool>* own_carrying() const override { return &delegation_->own_carrying(); }
  std::span<const int> cores() const override { return cores_; }
  Status start_thread(pthread_t& thread, void* (*function)(void*), void* argument) override {
    return start_program_thread(thread, function, argument, cores_);
  }
  bool code_is_everywhere(const void* code) const override;
  void enter_region() override {
    adopt_locale();
    adopt_time_zone();
    adopt_random_seeds();
  }
  bool flush_output() override;
  void publish_output() override;
  ThreadCounters thread_counters() override;
  void note_pause() override;
  void enter_place(std::uint64_t place) override;
  void gather_data(bool on) override;
  PageOffer offer(std::uint64_t page, std::uint64_t nodes, bool if_asked) override;
  std::uint32_t give_back(const PageWindow& window) override;
  void take_back(NodeId from, const PageWindow& window) override;
  void handle_messages() override { engine_->poll(); }
  void begin_help() override;
  int help() override;
  void end_help() override;
  void enter_region(std::string_view site) override;
  void leave_region() override;
  void show_wait(std::string_view what) override;
  void show_progress() override;
  [[noreturn]] void leave_job() override;
  void leave_job_soon() override;
  [[noreturn]] void abort_job(std::string_view why) override;

  void engine_failed(std::string_view what) override { abort_job(what); }
  void on_peer_lost(NodeId peer, std::string_view why) override;
  void on_message(const fabric::Incoming& message) override;

 private:
  explicit NodeProcess(Process& owner);
  void serve_regions();
  Status connect();
  Status share_globals();
  Status run_engine();
  Status slow_program();
  Status agree_on_image(fabric::Bootstrap& bootstrap);
  std::vector<double> core_speeds() const;
  void make_node();
  void find_calibration();
  void find_profile();
  base::NodeStatistics own_statistics() const;
  void report_statistics();
  void tell_touched_runs(NodeId to);
  bool note_touched_runs(NodeId from, std::span<const std::byte> body);

  launch::BoardSlot& slot() { return process_.membership->slot(); }
  const base::Options& options() const { return *process_.options; }
  bool wants_statistics() const { return !options().stats.empty(); }
  Nanos start_timeout() const { return options().start_timeout_s * base::kSecond; }

  Process& process_;
  const bool origin_;
  const ThreadLocals thread_locals_;
  std::once_flag looked_for_addresses_;
  bool takes_addresses_ = true;  // after that
  const MovableThreads movable_threads_;
  const std::vector<int> cores_ = os::allowed_cores();  // before the next runtime binds a thread
  StackPool team_stacks_;
  std::unique_ptr<fabric::Bootstrap> bootstrap_;
  std::unique_ptr<fabric::Fabric> fabric_;
  std::unique_ptr<delegate::Delegation> delegation_;
  std::unique_ptr<dsm::ForeignBlocks> foreign_blocks_;
  std::unique_ptr<dsm::Engine> engine_;
  std::unique_ptr<BriefCalibration> brief_calibration_;
  machine::Identity identity_;
  std::unique_ptr<MeetingBoard> board_;  // with nodes that share no memory: nullptr
  std::unique_ptr<Node> node_;
  std::unique_ptr<WorkSharing> sharing_;
  std::unique_ptr<Turns> turns_;
  std::unique_ptr<Doacross> doacross_;
  std::unique_ptr<LockService> locks_;
  std::unique_ptr<OutputSource> source_;  // not on the origin
  // How many of the program's outputs were sent at a region's end, and before an ordered part or a
  // barrier (by any thread; relaxed: a thread's own come before).
  std::uint64_t outputs_flushed_ = 0;
  std::atomic<std::uint64_t> outputs_published_{0};
  std::unique_ptr<OutputSink> sink_;      // on the origin
  // What other nodes told at their end: written by the handler, before the release of told_.
  std::array<base::NodeStatistics, base::kMaxNodes> statistics_;
  std::atomic<std::uint32_t> told_{0};
  // On the origin, of each node: written by the handler, before the release of touched_told_.
  std::array<std::vector<dsm::PageRun>, base::kMaxNodes> touched_;
  std::atomic<std::uint32_t> touched_told_{0};
  // Set before peers leave in order; relaxed: a loss seen a moment too early is only reported.
  std::atomic<bool> ending_{false};
  std::atomic<bool> leaving_{false};  // relaxed: only one of those who leave matters
};

}  // namespace amasia::omp
