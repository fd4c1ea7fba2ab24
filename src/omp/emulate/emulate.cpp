// SPDX-License-Identifier: Apache-2.0
// libamasia-emulate.so: the omp layer without the memory. Preloaded into an OpenMP program, it
// makes several nodes of one process: each is a thread with a fabric end, a node object and a node
// team of its own, and all share the process's memory. So it proves numbering, regions, barriers,
// reductions, loops and locks with unmodified programs, fast and under any debugger.
//
//   AMASIA_NODES              how many nodes, 1 … 64; with 1 (or none) the library steps aside
//   AMASIA_THREADS_PER_NODE   capacity of each node; default 1
//   AMASIA_STATS=1            prints the regions at exit
//   AMASIA_WATCHDOG           seconds, as everywhere; likewise AMASIA_SCHEDULE and its kin
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "fabric/fabric.hpp"
#include "omp/abi/runtimes.hpp"
#include "omp/launch/program_thread_locals.hpp"
#include "omp/locks/lock_service.hpp"
#include "omp/omp.hpp"
#include "omp/real.hpp"
#include "omp/work_sharing/doacross.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {
namespace {

constexpr std::uint32_t kPollBudget = 64;
constexpr std::size_t kStacksPerNode = 512;  // address space only

// The value of a variable that holds a number, or `otherwise` where it is not set. A user's mistake
// ends the process.
std::uint32_t number_from_environment(const char* name, std::uint32_t least, std::uint32_t most,
                                      std::uint32_t otherwise) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return otherwise;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text, &end, 10);
  if (*end != '\0' || value < least || value > most) {
    base::log_line(base::LogLevel::kError, "{}={} is not a number from {} to {}", name, text, least,
                   most);
    _exit(2);
  }
  return static_cast<std::uint32_t>(value);
}

LoopSettings loops_from_environment() {
  base::Options options;
  const Status parsed = base::parse_environment(environ, options);
  if (!parsed.ok()) {
    base::log_line(base::LogLevel::kError, "{}", parsed.error().message);
    _exit(2);
  }
  return loop_settings(options);
}

std::byte* reserve_stacks(Bytes length) {
  void* const base = mmap(nullptr, length, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (base == MAP_FAILED) {
    base::log_line(base::LogLevel::kError, "no address space for {} bytes of stacks", length);
    _exit(1);
  }
  return static_cast<std::byte*>(base);
}

// The program's, which are as much each thread's own here as on nodes with a process each. Never
// destroyed: exit() may still ask. nullptr: there are too many libraries.
const ThreadLocals* find_thread_locals() {
  const auto objects = std::make_unique<ObjectTable>();
  if (!objects->scan(reinterpret_cast<const void*>(&find_thread_locals))) return nullptr;
  return new ThreadLocals(thread_locals_of(*objects));
}

class EmulatedServices final : public Services {
 public:
  // `thread_locals` may be nullptr: nothing is known of them.
  EmulatedServices(fabric::Fabric& fabric, const ThreadLocals* thread_locals)
      : fabric_(fabric),
        thread_locals_(thread_locals),
        stack_size_(managed_stack_size(true)),
        stacks_(reserve_stacks(kStacksPerNode * (stack_size_ + base::kPageSize)),
                kStacksPerNode * (stack_size_ + base::kPageSize), stack_size_) {}

  Result<ManagedStack> acquire_stack() override { return stacks_.acquire(); }
  int help() override { return static_cast<int>(fabric_.poll(kPollBudget)); }
  ThreadLocals::Kind kind_of_thread_locals() const override {
    return thread_locals_ == nullptr ? ThreadLocals::Kind::kBound : thread_locals_->kind;
  }
  bool has_changed_thread_locals() const override { return thread_locals_->are_changed(); }
  std::span<const ThreadBlock> thread_blocks() const override {
    return thread_locals_ == nullptr ? std::span<const ThreadBlock>() : thread_locals_->blocks;
  }
  [[noreturn]] void abort_job(std::string_view why) override {
    base::log_line(base::LogLevel::kError, "{}", why);
    _exit(1);
  }

 private:
  fabric::Fabric& fabric_;
  const ThreadLocals* const thread_locals_;
  const Bytes stack_size_;
  StackPool stacks_;
};

// One node with what belongs to it.
class EmulatedNode {
 public:
  EmulatedNode(fabric::Fabric& fabric, const NodeSettings& settings, const LoopSettings& loops,
               const ThreadLocals* thread_locals)
      : fabric_(fabric),
        services_(fabric, thread_locals),
        node_(fabric, services_, settings),
        sharing_(node_, loops),
        turns_(node_),
        doacross_(node_),
        locks_(fabric, services_, kLocksFirst) {
    set_runtimes(node_);
    node_.fix_team_size();  // programs are told how many threads there are to be
    node_.set_work_sharing(&sharing_);
    node_.set_turns(&turns_);
    node_.set_doacross(&doacross_);
    node_.set_locks(&locks_);
  }

  Node& node() { return node_; }

  // The threads live as long as the process: nobody waits for them at exit, as nobody waits for
  // the runtime's own.
  void start() {
    std::thread([this] { service(); }).detach();
    if (node_.self() != base::kOrigin) std::thread([this] { node_.serve(); }).detach();
  }

 private:
  void service() {
    for (;;) fabric::wait_and_poll(fabric_, kPollBudget, 0, base::kSecond);
  }

  fabric::Fabric& fabric_;
  EmulatedServices services_;
  Node node_;
  WorkSharing sharing_;
  Turns turns_;
  Doacross doacross_;
  LockService locks_;
};

struct Emulation {
  std::unique_ptr<fabric::LoopbackNetwork> network;
  std::vector<std::unique_ptr<EmulatedNode>> nodes;
};

// Never destroyed: its threads run until the process ends.
Emulation* emulation = nullptr;

void print_statistics() {
  for (const RegionRecord& record : emulation->nodes[0]->node().region_records()) {
    std::fprintf(stderr, "amasia: region %s: %lu runs, %lu on one node%s%s, nodes %u, %.3f ms\n",
                 record.site.c_str(), record.runs, record.runs_single,
                 record.runs_single != 0 ? ", because " : "", text_of(record.single_reason),
                 record.nodes, static_cast<double>(record.elapsed_ns) / 1e6);
  }
}

// What the program has called exit() with.
std::atomic<int> exit_status{-1};

// Comes before the end of the program's runtime, as the library was loaded before it, and is the
// process's end where the program called exit. libomp's own end frees what threads use that are not
// in a region of more than one thread, as it knows regions; but teams of one thread on other nodes
// may be on their way into one ("OMP: Error #132: Thread identifier invalid").
__attribute__((destructor)) void end_before_runtime() {
  if (emulation == nullptr) return;
  if (std::getenv("AMASIA_STATS") != nullptr) print_statistics();
  const int status = exit_status.load(std::memory_order_acquire);
  if (status < 0) return;
  std::fflush(nullptr);
  // Which libomp's own end would have removed.
  const std::string registered = fmt::format("/__KMP_REGISTERED_LIB_{}_{}", getpid(), getuid());
  shm_unlink(registered.c_str());
  _exit(status);
}

// A child of fork() has none of the threads: it runs on its own, as without the library.
void step_aside() { set_process_node(nullptr); }

__attribute__((constructor)) void start_emulation() {
  const std::uint32_t count = number_from_environment("AMASIA_NODES", 1, base::kMaxNodes, 1);
  // Shells and wrappers around the program are left alone.
  if (count == 1 || !is_openmp_program()) return;
  NodeSettings settings;
  settings.capacity.assign(count, number_from_environment("AMASIA_THREADS_PER_NODE", 1, 1024, 1));
  settings.core_speeds.assign(count, 1.0);
  settings.share = base::SharePolicy::kAlways;  // there is one memory: nothing to be found out
  settings.watchdog = base::kSecond * number_from_environment("AMASIA_WATCHDOG", 0, 1000000, 60);
  settings.reduction_window =
      number_from_environment("AMASIA_REDUCTION_WINDOW", 0, 1 << 20, 32 * 1024);
  const LoopSettings loops = loops_from_environment();
  const ThreadLocals* const thread_locals = find_thread_locals();
  emulation = new Emulation;
  emulation->network = fabric::make_loopback(count);
  for (std::uint32_t id = 0; id < count; ++id) {
    const NodeId node{static_cast<NodeId::representation>(id)};
    emulation->nodes.push_back(
        std::make_unique<EmulatedNode>(emulation->network->fabric(node), settings, loops,
                                       thread_locals));
  }
  set_process_node(&emulation->nodes[0]->node());
  for (const auto& node : emulation->nodes) node->start();
  pthread_atfork(nullptr, nullptr, step_aside);
}

}  // namespace
}  // namespace amasia::omp

// The program's calls of exit, and nobody else's: a program that returns from main is in no region.
extern "C" __attribute__((visibility("default"))) void exit(int status) {
  static constinit amasia::omp::Real<void(int)> real{"exit"};
  amasia::omp::exit_status.store(status & 0xff, std::memory_order_release);
  real(status);
  __builtin_unreachable();
}
