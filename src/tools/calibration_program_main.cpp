// SPDX-License-Identifier: Apache-2.0
// The microbenchmark of libHetMP (section 3.4, figure 5): how fast a node computes on pages that it
// has to take from the origin, by how much it computes on each. An ordinary OpenMP program, which
// `amasia calibrate` runs as `amasia run` runs any other: what it sees is what users get, with
// read-ahead and all. Prints one JSON document for machine-made reading, on standard output.
//
//   amasia-calibration-program full|quick
#include <dlfcn.h>
#include <fmt/format.h>
#include <omp.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "amasia.h"
#include "base/base.hpp"
#include "machine/machine.hpp"
#include "os/os.hpp"

namespace {

using amasia::Nanos;
using amasia::base::kMillisecond;
using amasia::base::kPageSize;
using amasia::machine::kDoublesPerPage;
using amasia::machine::kOpsPerPass;

constexpr std::size_t kMostPages = 512;    // of a thread, in one round
constexpr std::size_t kLeastPages = 4;     // where each is much work
constexpr std::size_t kRowPages = 1024;    // of the sequential walk
constexpr std::size_t kSinglesArea = 512;  // pages that nobody can foresee lie here …
constexpr std::size_t kStride = 37;        // … this far apart, modulo the area: never neighbours
constexpr std::uint64_t kMostPasses = 1 << 17;

// What a mode costs and gives.
struct Effort {
  int repeats;
  Nanos round;                    // how long one round should take, about
  std::uint64_t factor;           // from one number of operations per byte to the next
  std::uint64_t ordinary_passes;  // the curve goes as far, and further until it is near its peak
  std::size_t singles;
  std::size_t row;
};
constexpr Effort kFull = {3, 40 * kMillisecond, 2, 1 << 14, 128, kRowPages};
constexpr Effort kQuick = {2, 10 * kMillisecond, 4, 1 << 10, 24, 256};
constexpr double kNearPeak = 0.9;

// One thread's part of a round; a page each, so that nobody waits for another's.
struct alignas(kPageSize) Slot {
  unsigned node = 0;
  Nanos begin = 0, end = 0;
  unsigned long long faults = 0;
  Nanos stall = 0;
  std::size_t wrong = 0;  // pages whose contents were not the origin's newest
  double sink = 0;
};

amasia_thread_state_t state_of_thread() {
  using Ask = int(amasia_thread_state_t*);
  static const auto ask = reinterpret_cast<Ask*>(::dlsym(RTLD_DEFAULT, "amasia_thread_state"));
  amasia_thread_state_t state{0, 1, 0, 0};
  if (ask != nullptr) ask(&state);
  return state;
}

struct Job {
  std::vector<unsigned> node_of;               // by thread
  std::vector<std::vector<unsigned>> threads;  // by node
  Slot* slots = nullptr;                       // by thread
  double* pages = nullptr;
  std::uint64_t rounds = 0;

  double* page(std::size_t index) const { return pages + index * kDoublesPerPage; }
};

// Who is to do what in a round.
struct Round {
  unsigned node = 0;
  std::size_t workers = 0;  // of the node's threads, the first ones
  std::size_t pages = 0;    // of each worker
  std::uint64_t passes = 0;
  bool warm = false;  // the pages are touched once before the clock runs: no transfers
};

struct Measured {
  double seconds = 0;  // from the first begin to the last end
  double operations = 0;
  double thread_ns = 0;  // sum over threads
  double stall_ns = 0;
  double faults = 0;
  std::size_t pages = 0;
};

// What the origin writes: the last double tells the round.
void write_page(double* page, std::uint64_t round) {
  for (std::size_t i = 0; i < kDoublesPerPage; ++i) page[i] = static_cast<double>(i % 7) / 8;
  page[kDoublesPerPage - 1] = static_cast<double>(round) * 1e-6;
}

// By value: what it reads while the clock runs lies on the thread's own stack.
void work(Slot& slot, double* pages, Round round, std::uint64_t number) {
  double sum = 0;
  std::size_t wrong = 0;
  const auto touch = [&](double* page) {
    *static_cast<volatile double*>(page) = 0.5;
    if (page[kDoublesPerPage - 1] != static_cast<double>(number) * 1e-6) ++wrong;
  };
  if (round.warm) {
    for (std::size_t i = 0; i < round.pages; ++i) touch(pages + i * kDoublesPerPage);
  }
  const amasia_thread_state_t before = state_of_thread();
  const Nanos begin = amasia::os::monotonic_now();
  for (std::size_t i = 0; i < round.pages; ++i) {
    double* const page = pages + i * kDoublesPerPage;
    touch(page);
    sum += amasia::machine::pass_over_page(page, round.passes);
  }
  const Nanos end = amasia::os::monotonic_now();
  const amasia_thread_state_t after = state_of_thread();
  slot.begin = begin;
  slot.end = end;
  slot.faults = after.faults - before.faults;
  slot.stall = after.stall_ns - before.stall_ns;
  slot.wrong += wrong;
  slot.sink = sum;
}

// The origin's threads write all pages; then the workers take and use their own, side by side.
Measured run_round(Job& job, const Round& round) {
  const std::uint64_t number = ++job.rounds;
  const std::size_t all = round.workers * round.pages;
  const std::vector<unsigned>& workers = job.threads[round.node];
  const std::size_t writers = job.threads[0].size();
#pragma omp parallel
  {
    const auto self = static_cast<unsigned>(omp_get_thread_num());
    if (job.node_of[self] == 0) {
      const std::size_t from = all * self / writers, to = all * (self + 1) / writers;
      for (std::size_t i = from; i < to; ++i) write_page(job.page(i), number);
    }
#pragma omp barrier
    const std::size_t rank = self - workers.front();
    if (job.node_of[self] == round.node && rank < round.workers) {
      work(job.slots[self], job.page(rank * round.pages), round, number);
    }
  }
  Measured out;
  Nanos first = job.slots[workers.front()].begin, last = 0;
  for (std::size_t rank = 0; rank < round.workers; ++rank) {
    const Slot& slot = job.slots[workers[rank]];
    first = std::min(first, slot.begin);
    last = std::max(last, slot.end);
    out.thread_ns += static_cast<double>(slot.end - slot.begin);
    out.stall_ns += static_cast<double>(slot.stall);
    out.faults += static_cast<double>(slot.faults);
  }
  out.seconds = static_cast<double>(std::max<Nanos>(last - first, 1)) / 1e9;
  out.pages = all;
  out.operations = static_cast<double>(all) * static_cast<double>(round.passes) * kOpsPerPass;
  return out;
}

// The quickest one: what else the machine does only ever takes time.
Measured repeat(Job& job, const Round& round, int repeats) {
  Measured best = run_round(job, round);
  for (int i = 1; i < repeats; ++i) {
    const Measured next = run_round(job, round);
    if (next.seconds < best.seconds) best = next;
  }
  return best;
}

// The median wait of the node's first thread for a page that nobody could foresee.
double single_fault_ns(Job& job, unsigned node, std::size_t count) {
  const std::uint64_t number = ++job.rounds;
  const unsigned worker = job.threads[node].front();
  Nanos* const waits = new Nanos[count];
#pragma omp parallel
  {
    const auto self = static_cast<unsigned>(omp_get_thread_num());
    if (self == 0) {
      for (std::size_t i = 0; i < kSinglesArea; ++i) write_page(job.page(i), number);
    }
#pragma omp barrier
    if (self == worker) {
      for (std::size_t i = 0; i < count; ++i) waits[i] = 0;  // brings their own page here
      for (std::size_t i = 0; i < count; ++i) {
        volatile double* const page = job.page(i * kStride % kSinglesArea);
        const Nanos before = amasia::os::monotonic_now();
        *page = 0.5;
        waits[i] = amasia::os::monotonic_now() - before;
      }
    }
  }
  std::nth_element(waits, waits + count / 2, waits + count);
  const auto median = static_cast<double>(waits[count / 2]);
  delete[] waits;
  return median;
}

std::string point_json(const Measured& measured, std::uint64_t passes) {
  return fmt::format(
      "{{\"ops_per_byte\": {}, \"ops_per_s\": {}, \"thread_ns\": {}, \"stall_ns\": {}, "
      "\"faults\": {}, \"pages\": {}}}",
      passes, measured.operations / measured.seconds, measured.thread_ns, measured.stall_ns,
      measured.faults, measured.pages);
}

std::string measure_node(Job& job, unsigned node, const Effort& effort) {
  const std::size_t workers = job.threads[node].size();
  // As fast as it gets: one page that is here, for the time of a round.
  std::uint64_t passes = 256;
  Round peak_round{node, workers, 1, passes, true};
  Measured peak = run_round(job, peak_round);
  while (peak.seconds * 1e9 < static_cast<double>(effort.round) && passes < kMostPasses) {
    peak_round.passes = passes *= 2;
    peak = run_round(job, peak_round);
  }
  peak = repeat(job, peak_round, effort.repeats);
  const double peak_ops = peak.operations / peak.seconds;

  const double single = node == 0 ? 0 : single_fault_ns(job, node, effort.singles);
  const Measured row = repeat(job, {node, 1, effort.row, 0, false}, effort.repeats);
  const Measured bare = repeat(job, {node, workers, kMostPages, 0, false}, effort.repeats);
  std::string points;
  double page_ns = bare.thread_ns / static_cast<double>(bare.pages);
  for (std::uint64_t k = 1; k <= kMostPasses; k *= effort.factor) {
    const double work_ns =
        static_cast<double>(k) * kOpsPerPass * static_cast<double>(workers) / peak_ops * 1e9;
    const double expected = std::max(work_ns, page_ns);
    const auto pages = static_cast<std::size_t>(static_cast<double>(effort.round) / expected);
    const Round round{node, workers, std::clamp(pages, kLeastPages, kMostPages), k, false};
    const Measured measured = repeat(job, round, effort.repeats);
    page_ns = measured.thread_ns / static_cast<double>(measured.pages);
    if (!points.empty()) points += ",\n    ";
    points += point_json(measured, k);
    const double part = measured.operations / measured.seconds / peak_ops;
    if (k >= effort.ordinary_passes && (node == 0 || part >= kNearPeak)) break;
  }
  return fmt::format(
      "{{\"node\": {}, \"threads\": {}, \"peak_ops_per_s\": {}, \"fault_latency_ns\": {}, "
      "\"page_stream_ns\": {},\n   \"bare\": {},\n   \"points\": [\n    {}]}}",
      node, workers, peak_ops, single,
      node == 0 ? 0 : row.thread_ns / static_cast<double>(row.pages), point_json(bare, 0), points);
}

// Which thread is where. The sentence says what is wrong, "" if nothing is.
std::string look_around(Job& job) {
  const auto most = static_cast<std::size_t>(omp_get_max_threads());
  void* slots = nullptr;
  if (::posix_memalign(&slots, kPageSize, most * sizeof(Slot)) != 0) return "there is no memory";
  job.slots = static_cast<Slot*>(slots);
  std::uninitialized_default_construct_n(job.slots, most);
  std::size_t count = 0;
#pragma omp parallel
  {
    job.slots[omp_get_thread_num()].node = state_of_thread().node;
    if (omp_get_thread_num() == 0) count = static_cast<std::size_t>(omp_get_num_threads());
  }
  job.threads.resize(state_of_thread().nodes);
  for (std::size_t i = 0; i < count; ++i) {
    job.node_of.push_back(job.slots[i].node);
    job.threads[job.slots[i].node].push_back(static_cast<unsigned>(i));
  }
  std::size_t largest = 0;
  for (std::size_t node = 0; node < job.threads.size(); ++node) {
    if (job.threads[node].empty()) {
      return fmt::format("node {} has no thread in a team of {}", node, count);
    }
    largest = std::max(largest, job.threads[node].size());
  }
  const std::size_t pages = std::max({largest * kMostPages, kRowPages, kSinglesArea});
  void* memory = nullptr;
  if (::posix_memalign(&memory, kPageSize, pages * kPageSize) != 0) return "there is no memory";
  job.pages = static_cast<double*>(memory);
  return "";
}

}  // namespace

int main(int count, char** values) {
  const std::string_view mode = count == 2 ? values[1] : "";
  if (mode != "full" && mode != "quick") {
    std::fprintf(stderr, "usage: amasia-calibration-program full|quick (see amasia calibrate)\n");
    return 2;
  }
  static Job job;
  if (const std::string wrong = look_around(job); !wrong.empty()) {
    std::fprintf(stderr, "amasia-calibration-program: %s\n", wrong.c_str());
    return 1;
  }
  std::string nodes;
  for (unsigned node = 0; node < job.threads.size(); ++node) {
    if (node > 0) nodes += ",\n  ";
    nodes += measure_node(job, node, mode == "full" ? kFull : kQuick);
  }
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < job.node_of.size(); ++i) wrong += job.slots[i].wrong;
  if (wrong != 0) {
    std::fprintf(stderr, "amasia-calibration-program: %zu pages were not what was written\n",
                 wrong);
    return 1;
  }
  const auto ask = reinterpret_cast<const char* (*)()>(::dlsym(RTLD_DEFAULT, "amasia_identity"));
  const char* const identity = ask == nullptr ? nullptr : ask();
  std::printf("{\"identity\": %s,\n \"nodes\": [\n  %s]}\n",
              identity == nullptr ? "null" : identity, nodes.c_str());
  return 0;
}
