// SPDX-License-Identifier: Apache-2.0
#include "omp/region/region.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace amasia::omp {
namespace {

constexpr std::array<const char*, static_cast<std::size_t>(SingleReason::kCount)> kTexts = {
    "",
    "it has one thread",
    "its threads fit on the origin",
    "it is nested in another region",
    "another thread's region was running across nodes",
    "it was forked by a thread outside of regions on another node than the origin",
    "its code may use what was loaded after the start",
    "its thread runs on a stack that other nodes cannot reach",
    "it uses memory that other nodes cannot reach, such as the OpenMP runtime's for a task",
    "the program has mapped memory by itself (mmap), which other nodes cannot reach",
    "it shares a thread-local variable of its thread",
    "a region before it stayed for that, and with it its threads' threadprivate variables",
    "in a region that stayed there its threads have changed thread-local variables of a library",
    "it has too many arguments",
    "sharing it would cost more than it saves",
    "all regions together are quicker there",
    "tries of sharing have taken too much of the run so far",
    "--share=never",
    "it uses a construct that is not carried across nodes",
};

}  // namespace

const char* text_of(SingleReason reason) {
  const auto index = static_cast<std::size_t>(reason);
  AMASIA_CHECK(index < kTexts.size(), "every reason has a text");
  return kTexts[index];
}

void RegionRecord::note_outcome(Nanos elapsed, Way way) {
  const bool first = shared.runs + alone.runs + elsewhere.runs == 0;
  base::RegionOutcome& outcome = way == Way::kShared  ? shared
                                 : way == Way::kAlone ? alone
                                                      : elsewhere;
  outcome.add(elapsed, !first && way == last_way);
  last_way = way;
  if (way == Way::kAlone) latest_alone = elapsed;
}

void RegionRecord::count(const Samples& latest) {
  for (std::size_t i = 0; i < counted.size(); ++i) {
    counted[i].cache_misses += latest.nodes[i].cache_misses;
    counted[i].instructions += latest.nodes[i].instructions;
  }
}

std::vector<loops::Power> powers_of(std::span<const NodeShare> shares) {
  std::vector<loops::Power> powers;
  powers.reserve(shares.size());
  for (const NodeShare& share : shares) {
    powers.push_back({share.threads, share.speed, share.seam});
  }
  return powers;
}

void take_samples(std::span<const NodeShare> shares, std::span<const NodeTotals> totals,
                  Nanos joining, bool by_threads, Samples& samples) {
  double iterations = 0, power = 0, threads = 0;
  bool divided = false;
  for (const NodeShare& share : shares) {
    iterations += static_cast<double>(totals[share.node.value].iterations);
    power += static_cast<double>(share.threads) * share.speed;
    threads += share.threads;
    if ((totals[share.node.value].marks & kDividedBySpeed) != 0) divided = true;
  }
  std::fill_n(samples.nodes.begin(), totals.size(), loops::RegionPart{});
  samples.divided = divided || by_threads || iterations > 0;
  for (const NodeShare& share : shares) {
    const NodeTotals& one = totals[share.node.value];
    loops::RegionPart& sample = samples.nodes[share.node.value];
    sample.threads = share.threads;
    sample.busy = one.busy_ns / share.threads;
    sample.stall = one.stall_ns / share.threads;
    sample.waited = one.waited_us * base::kMicrosecond / share.threads;
    sample.faults = one.faults;
    sample.cache_misses = one.cache_misses;
    sample.instructions = one.instructions;
    if (divided) {
      sample.work = static_cast<double>(share.threads) * share.speed / power;
    } else if (iterations > 0) {
      sample.work = static_cast<double>(one.iterations) / iterations;
    } else {
      sample.work = share.threads / threads;
    }
  }
  samples.nodes[0].joining = joining;
}

void hold_to_limits(std::span<const NodeShare> shares, std::span<const NodeTotals> totals,
                    std::span<const loops::CpuLimit> limits, Nanos rest, Samples& samples) {
  if (limits.empty()) return;
  for (const NodeShare& share : shares) {
    loops::RegionPart& part = samples.nodes[share.node.value];
    // The origin does not rest: it does what lies between regions.
    const Nanos rested = share.node == base::kOrigin ? 0 : rest;
    const Nanos time = loops::sustained_time(limits[share.node.value],
                                             totals[share.node.value].cpu_ns, rested);
    part.busy = std::max(part.busy, time - part.stall);
  }
}

std::vector<NodeShare> pack_threads(std::uint32_t threads,
                                    std::span<const std::uint32_t> capacity) {
  AMASIA_CHECK(threads > 0 && !capacity.empty() && capacity[0] > 0,
               "there is at least one thread, and a place for it on the origin");
  const std::uint64_t sum = std::accumulate(capacity.begin(), capacity.end(), std::uint64_t{0});
  const std::uint64_t excess = threads > sum ? threads - sum : 0;
  std::vector<NodeShare> shares;
  std::uint32_t offset = 0;
  std::uint64_t capacity_before = 0;
  for (std::size_t node = 0; node < capacity.size() && offset < threads; ++node) {
    // Of the excess, node k gets floor(excess * C(k+1) / sum) - floor(excess * C(k) / sum), where
    // C(k) is the capacity of the nodes before k: the shares add up to the excess.
    const std::uint64_t before = excess * capacity_before / sum;
    capacity_before += capacity[node];
    const std::uint64_t extra = excess * capacity_before / sum - before;
    const auto here = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(capacity[node] + extra, threads - offset));
    if (here == 0) continue;
    shares.push_back({NodeId{static_cast<NodeId::representation>(node)}, here, offset});
    offset += here;
  }
  AMASIA_CHECK(offset == threads, "every thread has a node");
  return shares;
}

std::string site_of(const void* function, std::string_view source) {
  // ";file;function;line;column;;", or "unknown" parts where the program has no debug information.
  std::array<std::string_view, 3> parts;
  std::size_t begin = source.find(';');
  for (std::string_view& part : parts) {
    if (begin == std::string_view::npos) break;
    const std::size_t end = source.find(';', begin + 1);
    part = source.substr(begin + 1, end == std::string_view::npos ? end : end - begin - 1);
    begin = end;
  }
  if (!parts[2].empty() && parts[2] != "0" && parts[0] != "unknown") {
    return fmt::format("{}:{} {}", parts[0], parts[2], parts[1]);
  }
  Dl_info info{};
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  if (dladdr(function, &info) == 0) return fmt::format("{:#x}", address);
  if (info.dli_sname != nullptr) {
    return fmt::format("{}+{:#x}", info.dli_sname,
                       address - reinterpret_cast<std::uintptr_t>(info.dli_saddr));
  }
  std::string_view file = info.dli_fname != nullptr ? info.dli_fname : "?";
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) {
    file.remove_prefix(slash + 1);
  }
  return fmt::format("{}+{:#x}", file, address - reinterpret_cast<std::uintptr_t>(info.dli_fbase));
}

}  // namespace amasia::omp
