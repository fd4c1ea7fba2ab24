// SPDX-License-Identifier: Apache-2.0
// What this process is: a node, or a program that the preload reached and that is left alone.
// The one process-wide state beside the ABI's, since malloc and the C library's entry points have
// no argument of ours. It is decided once, before any other code of the process has run.
#pragma once

#include <atomic>
#include <utility>

#include "base/base.hpp"
#include "delegate/delegate.hpp"
#include "dsm/dsm.hpp"
#include "launch/launch.hpp"
#include "omp/launch/objects.hpp"
#include "omp/launch/stack_pool.hpp"

namespace amasia::omp {

class KeyTable;
class NodeProcess;

// Where the next allocations of a thread go.
enum class AllocationMode : std::uint8_t { kByCaller, kPrivate, kManaged };

struct Process {
  // True from early_start on, if this process is a node: memory is managed. False for ever else,
  // and in children of fork(), which keep what they have but are no node.
  bool managed = false;
  bool catches_calls = false;  // SIGSYS is ours; set before main and before regions, never unset
  bool is_child = false;
  bool displays_affinity = false;  // in the place of the OpenMP runtime
  int id = 0;  // as the kernel numbers processes; another number: a child of vfork
  dsm::AddressSpace space;
  dsm::AddressRange arenas;
  dsm::Heap heap;
  ObjectTable objects;
  launch::Membership* membership = nullptr;  // nullptr: managed alone, without a launcher
  const base::Options* options = nullptr;    // set with membership
  // The rest of the node; set before main. Release when set, acquire by other threads' frees.
  std::atomic<NodeProcess*> node{nullptr};
};

extern constinit Process process;

// The calling thread's mode; ABI wrappers of omp_alloc set kManaged for their call.
// initial-exec: malloc reads it, which must not make the loader allocate.
extern constinit thread_local AllocationMode allocation_mode
    __attribute__((tls_model("initial-exec")));
inline AllocationMode exchange_allocation_mode(AllocationMode mode) noexcept {
  return std::exchange(allocation_mode, mode);
}

class AllocationScope {
 public:
  explicit AllocationScope(AllocationMode mode) : before_(exchange_allocation_mode(mode)) {}
  ~AllocationScope() { exchange_allocation_mode(before_); }
  AllocationScope(const AllocationScope&) = delete;
  AllocationScope& operator=(const AllocationScope&) = delete;

 private:
  const AllocationMode before_;
};

// The program's descriptors are the origin's (delegate), which has the numbers of a plain run: the
// runtime's own begin at this one there, and lie above all of the program's on other nodes.
constexpr int first_own_descriptor(bool origin) {
  return origin ? launch::kFirstOwnFileOfOrigin : launch::kFirstOwnFileElsewhere;
}
static_assert(first_own_descriptor(false) == delegate::kLastProgramDescriptor + 1);

// Decides what the process is and, for a node, makes its memory. Called by the library's
// constructor before those of all other libraries: one thread, C library usable, its stdio not.
void early_start(char** environment) noexcept;

struct RandomSeed {
  std::uint32_t changes = 0;  // how often the program has set it
  std::uint64_t value = 0;
};

// The first page of the origin's heap, which holds no block. What each node's C library knows for
// itself is written down here for all: where the environment's list begins, and the program's keys
// of thread-specific data, the locale, the time zone, and what random numbers begin from.
struct SharedPage {
  char** environment = nullptr;
  KeyTable* keys = nullptr;
  // The locale that the program has set: how often it did, and its name; longer ones are not told.
  std::uint32_t locale_changes = 0;
  char locale[2048] = "";
  // TZ, as the program has set it: how often it did, whether there is one, and its value.
  std::uint32_t time_zone_changes = 0;
  bool has_time_zone = false;
  char time_zone[256] = "";
  RandomSeed random;    // of rand and random
  RandomSeed random48;  // of drand48 and its kin
};
static_assert(sizeof(SharedPage) <= base::kPageSize);
inline SharedPage& shared_page() noexcept {
  return *reinterpret_cast<SharedPage*>(process.space.heap(base::kOrigin).begin);
}

// Of a count in the shared page: whether it differs from the one that was `seen` last, which is
// brought up to date.
inline bool has_changed(std::uint32_t count, std::uint32_t& seen) noexcept {
  return std::exchange(seen, count) != count;
}

// On the origin, before main: from here on pthread_key_create makes keys of the job.
void make_key_table() noexcept;

// On the other nodes, before a region: takes over the locale that the program has set. A load if it
// is the same as at the last region.
void adopt_locale() noexcept;

// The same for the time zone, which the C library looks up in its own environment.
void adopt_time_zone() noexcept;

// The same for random numbers: seeds by what the program has set, and the node.
void adopt_random_seeds() noexcept;

// On the origin: lets the other nodes' getenv find what `environ` points to now.
void publish_environment() noexcept;

// Frees the low descriptors that were kept from the runtime, for the program. On the origin, once
// the runtime has opened its own.
void return_descriptors() noexcept;

// Takes signal handlers back that libraries of the runtime installed when they were loaded (UCX's
// for faults and SIGHUP): a program finds its signals as it would without us. Before main.
void return_signals() noexcept;

// Prints one sentence (through the launcher where there is one) and leaves with exit code 2.
[[noreturn]] void fail_start(std::string_view sentence) noexcept;

}  // namespace amasia::omp
