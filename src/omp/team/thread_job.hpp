// SPDX-License-Identifier: Apache-2.0
// For tests: whole teams over the loopback fabric, with a runtime of plain threads instead of a
// program's own.
#pragma once

#include <sys/mman.h>

#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "omp/launch/stack_pool.hpp"
#include "omp/locks/lock_service.hpp"
#include "omp/node.hpp"
#include "omp/team/team.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

inline constexpr Bytes kStackSize = 256 * base::kKiB;
inline constexpr std::size_t kStacks = 8;

using Work = void (*)(ThreadFrame& frame, void* const* words);

// Functions that are taken for the program's own code, where threads may be stopped: by themselves
// in a section of that name, whose ends the linker knows. There is one, so that there are ends.
#define AMASIA_TEST_PROGRAM __attribute__((section("test_program"), noinline))
extern "C" {
extern const char __start_test_program[], __stop_test_program[];
}
AMASIA_TEST_PROGRAM inline void nothing_of_a_program() {}

// Forks std::threads and meets at a std::barrier.
class ThreadRuntime final : public LocalRuntime {
 public:
  Abi abi() const override { return Abi::kKmpc; }
  bool available() const override { return true; }
  Icvs icvs() override { return icvs_; }
  std::int32_t max_active_levels() override { return icvs_.max_active_levels; }
  std::uint32_t nested_threads() override {
    return static_cast<std::uint32_t>(icvs_.nested_threads);
  }
  bool dynamic() override { return icvs_.dynamic != 0; }
  void set_icvs(const Icvs& icvs) override { icvs_ = icvs; }
  void set_affinity_format(const std::string& format) override { format_ = format; }
  const std::string& affinity_format() const { return format_; }
  void show_affinity() override { ++shown_.at(current_frame()->global_id); }
  // By number in the whole team.
  std::uint32_t times_shown(std::size_t thread) const { return shown_.at(thread); }
  void set_threads(std::uint32_t threads) override {
    icvs_.nested_threads = static_cast<std::int32_t>(threads);
  }
  bool cancellation() override { return cancellation_; }
  std::uint32_t thread_limit() override { return 1000; }
  std::uint32_t active_level() override { return 0; }
  void set_dynamic(bool on) override { icvs_.dynamic = on; }

  std::string_view source_of(const void*) const override { return {}; }
  RegionCode code_of(const void*) const override { return {reentry_, {}}; }
  ReachedCode reached_code_of(const void*, const RegionCode&) const override { return reached_; }
  std::optional<IdleThread> idle_thread_of(const Outlined&) const override { return idle_; }

  void fork(const void*, std::uint32_t threads, std::int32_t, LocalBody& body) override {
    barrier_ = std::make_unique<std::barrier<>>(threads);
    std::vector<std::thread> others;
    for (std::uint32_t id = 1; id < threads; ++id) {
      others.emplace_back([&body, id, threads] { body.run(id, threads, nullptr, nullptr); });
    }
    body.run(0, threads, nullptr, nullptr);
    for (std::thread& other : others) other.join();
  }
  void invoke(ThreadFrame& frame, const Outlined& outlined) override {
    amasia_enter(outlined.function, &frame, const_cast<void**>(outlined.words.data()),
                 &frame.entry);
  }
  bool gather(ThreadFrame& frame) override {
    barrier_->arrive_and_wait();
    if (frame.local_id == 0) return true;
    barrier_->arrive_and_wait();
    return false;
  }
  void release(ThreadFrame&) override { barrier_->arrive_and_wait(); }

  Icvs icvs_{};
  bool cancellation_ = false;
  Reentry reentry_ = Reentry::kNever;
  ReachedCode reached_{.uses_thread_locals = false, .asks_for_numbers = false};
  std::optional<IdleThread> idle_;

 private:
  std::string format_;
  std::array<std::uint32_t, 64> shown_{};  // each written by its thread
  std::unique_ptr<std::barrier<>> barrier_;
};

class TestServices final : public Services {
 public:
  explicit TestServices(fabric::Fabric& fabric, std::span<const ThreadBlock> blocks = {})
      : fabric_(fabric),
        blocks_(blocks),
        memory_(static_cast<std::byte*>(
            mmap(nullptr, kLength, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))),
        stacks_(memory_, kLength, kStackSize) {}
  ~TestServices() override { munmap(memory_, kLength); }

  Result<ManagedStack> acquire_stack() override { return stacks_.acquire(); }
  bool code_is_everywhere(const void*) const override { return !late_; }
  // The origin's flush sees how many of the others' came before it.
  bool flush_output() override {
    if (flushes_ == nullptr) return false;
    if (fabric_.self() == base::kOrigin) {
      seen_by_origin_ = flushes_->load(std::memory_order_acquire);
      return false;
    }
    // Every other time, as if something had been printed.
    return flushes_->fetch_add(1, std::memory_order_release) % 2 == 0;
  }
  int help() override { return static_cast<int>(fabric_.poll(8)); }
  ThreadCounters thread_counters() override {
    thread_local std::uint64_t calls = 0;
    return {++calls, 10 * static_cast<Nanos>(calls)};
  }
  [[noreturn]] void abort_job(std::string_view why) override {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(why.size()), why.data());
    std::abort();
  }

  ThreadLocals::Kind kind_of_thread_locals() const override { return kind_; }
  std::span<const ThreadBlock> thread_blocks() const override { return blocks_; }
  bool has_changed_thread_locals() const override { return changed_; }
  bool may_take_thread_local_addresses() override { return takes_addresses_; }

  bool is_managed(const void* address) const override {
    return !thread_locals_unmanaged_ || thread_local_block(address).empty();
  }

  bool is_private(const void* address) const override {
    return private_ != nullptr && address == private_;
  }
  bool has_own_mappings() const override { return own_mappings_; }
  bool can_move_threads() const override { return threads_move_; }
  bool is_program_code(const void* instruction) const override {
    const auto* const at = static_cast<const char*>(instruction);
    return at >= __start_test_program && at < __stop_test_program;
  }

  bool may_keep_own_addresses() const override { return keep_own_addresses_; }

  const void* private_ = nullptr;
  bool own_mappings_ = false;
  bool threads_move_ = false;
  bool takes_addresses_ = true;
  bool keep_own_addresses_ = false;
  ThreadLocals::Kind kind_ = ThreadLocals::Kind::kBound;
  bool changed_ = false;
  bool late_ = false;
  bool thread_locals_unmanaged_ = false;
  std::atomic<std::uint32_t>* flushes_ = nullptr;
  std::uint32_t seen_by_origin_ = 0;

 private:
  static constexpr Bytes kLength = kStacks * (kStackSize + base::kPageSize);
  fabric::Fabric& fabric_;
  const std::span<const ThreadBlock> blocks_;
  std::byte* const memory_;
  StackPool stacks_;
};

struct Shape {
  std::uint32_t nodes, threads;
  // So many of the nodes, the first ones, are on one host and share a board; 0: none are.
  std::uint32_t host = 0;
};

// The boards of a host's nodes, on memory of their own.
class Boards {
 public:
  Boards(std::uint32_t nodes, std::uint32_t host)
      : memory_(static_cast<std::byte*>(mmap(nullptr, MeetingBoard::kSize, PROT_READ | PROT_WRITE,
                                             MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {
    for (std::uint32_t id = 0; id < host; ++id) {
      boards_.push_back(
          std::make_unique<MeetingBoard>(std::span(memory_, MeetingBoard::kSize),
                                         NodeId{static_cast<NodeId::representation>(id)}));
      const int core = static_cast<int>(id);
      boards_.back()->attend({&core, 1});
    }
    for (const auto& board : boards_) board->look_around(nodes);
  }
  ~Boards() { munmap(memory_, MeetingBoard::kSize); }
  Boards(const Boards&) = delete;
  Boards& operator=(const Boards&) = delete;

  MeetingBoard* of(std::uint32_t id) { return id < boards_.size() ? boards_[id].get() : nullptr; }

 private:
  std::byte* const memory_;
  std::vector<std::unique_ptr<MeetingBoard>> boards_;
};

// N nodes; the test's thread is the origin's main thread.
class Job {
 public:
  // `last_cores`: what the last node is limited to; 0: nothing. Short as they are, regions are to
  // be carried.
  Job(const Shape& shape, Bytes window = 32 * base::kKiB, double last_cores = 0,
      base::SharePolicy share = base::SharePolicy::kAlways,
      HomeCall::Settings home_call = {}, std::span<const ThreadBlock> blocks = {})
      : network_(fabric::make_loopback(shape.nodes)), board_(shape.nodes, shape.host) {
    const auto [nodes, threads_per_node, host] = shape;
    NodeSettings settings;
    settings.capacity.assign(nodes, threads_per_node);
    settings.core_speeds.assign(nodes, 1.0);
    settings.share = share;
    settings.reduction_window = window;
    settings.home_call = home_call;
    settings.cpu_limits.resize(nodes);
    settings.cpu_limits.back() = {.cores = last_cores, .period = base::kMillisecond};
    // What every kernel counts, in the place of what not every processor does.
    settings.counters.events = {os::PerfEvent::kTaskClock, os::PerfEvent::kPageFaults};
    parts_.resize(nodes);
    for (std::uint32_t id = 0; id < nodes; ++id) {
      Part& part = parts_[id];
      fabric::Fabric& fabric = network_->fabric(NodeId{static_cast<NodeId::representation>(id)});
      part.services = std::make_unique<TestServices>(fabric, blocks);
      part.node = std::make_unique<Node>(fabric, *part.services, settings, board_.of(id));
      part.node->set_runtime(Abi::kKmpc, part.runtime);
      part.sharing = std::make_unique<WorkSharing>(*part.node);
      part.node->set_work_sharing(part.sharing.get());
      part.locks = std::make_unique<LockService>(fabric, *part.services, kLocksFirst);
      part.node->set_locks(part.locks.get());
      part.turns = std::make_unique<Turns>(*part.node);
      part.node->set_turns(part.turns.get());
      part.doacross = std::make_unique<Doacross>(*part.node);
      part.node->set_doacross(part.doacross.get());
      part.poller = std::jthread([&fabric](std::stop_token stop) {
        while (!stop.stop_requested()) {
          fabric::wait_and_poll(fabric, 8, 0, base::kMillisecond);
        }
      });
      if (id > 0) part.server = std::thread([&part] { part.node->serve(); });
    }
    thread_context.node = &origin();
  }
  ~Job() {
    origin().shutdown();
    for (Part& part : parts_) {
      if (part.server.joinable()) part.server.join();
    }
    for (Part& part : parts_) {
      part.poller.request_stop();
      part.poller.join();
    }
    thread_context = ThreadContext{};
  }

  Node& origin() { return *parts_[0].node; }
  ThreadRuntime& runtime(std::size_t node = 0) { return parts_[node].runtime; }
  TestServices& services() { return *parts_[0].services; }

  void count_flushes(std::atomic<std::uint32_t>& count) {
    for (Part& part : parts_) part.services->flushes_ = &count;
  }

  void let_keep_own_addresses() {
    for (Part& part : parts_) part.services->keep_own_addresses_ = true;
  }
  // Their threads have nothing of their own, unless `on` is false.
  void move_threads(bool on = true) {
    for (Part& part : parts_) {
      part.services->threads_move_ = on;
      part.services->kind_ = on ? ThreadLocals::Kind::kNone : ThreadLocals::Kind::kBound;
    }
  }
  // They have some that cannot move, and have changed none.
  void watch_variables() {
    for (Part& part : parts_) part.services->kind_ = ThreadLocals::Kind::kWatched;
  }
  // All of another node's threads have.
  void change_variables(std::size_t node) { parts_[node].services->changed_ = true; }
  // They have thread-local variables, in the job's blocks, which each region uses.
  void move_threads_with_variables(bool takes_addresses) {
    move_threads();
    for (Part& part : parts_) {
      part.services->takes_addresses_ = takes_addresses;
      part.services->kind_ = ThreadLocals::Kind::kMovable;
      part.runtime.reached_.uses_thread_locals = true;
    }
  }

  void allow_cancelling() {
    for (Part& part : parts_) part.runtime.cancellation_ = true;
  }

  void manage_all_but_thread_locals() {
    for (Part& part : parts_) part.services->thread_locals_unmanaged_ = true;
  }

  RegionPlan run(Work work, std::vector<void*> words, std::uint32_t threads = 0,
                 std::span<const std::byte> extra = {}, bool shows_affinity = false) {
    RegionRequest request;
    request.shows_affinity = shows_affinity;
    request.outlined = {reinterpret_cast<void*>(work), words};
    request.threads = threads;
    request.extra = extra;
    const RegionPlan plan = origin().plan_region(request);
    if (plan.global()) {
      origin().run_region(request, plan);
    } else if (plan.stands_in()) {
      origin().run_here(request, plan);
    } else {
      origin().finish_single(plan);
    }
    return plan;
  }

 private:
  struct Part {
    ThreadRuntime runtime;
    std::unique_ptr<TestServices> services;
    std::unique_ptr<Node> node;
    std::unique_ptr<WorkSharing> sharing;
    std::unique_ptr<LockService> locks;
    std::unique_ptr<Turns> turns;
    std::unique_ptr<Doacross> doacross;
    std::jthread poller;
    std::thread server;
  };
  std::unique_ptr<fabric::LoopbackNetwork> network_;
  Boards board_;
  std::vector<Part> parts_;
};

inline void compute(Nanos cpu_time) {
  for (const Nanos begin = os::own_cpu_time(); os::own_cpu_time() - begin < cpu_time;) {
  }
}

}  // namespace amasia::omp
