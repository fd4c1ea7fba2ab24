// SPDX-License-Identifier: Apache-2.0
#include "machine/topology.hpp"

#include <algorithm>
#include <tuple>

namespace amasia::machine {
namespace {

using Indices = std::vector<std::uint32_t>;

void add_once(Indices& path, std::uint32_t place) {
  if (std::find(path.begin(), path.end(), place) == path.end()) path.push_back(place);
}

// Larger ones around smaller ones: what is shared by more cores, and of equals the outer cache.
bool is_outside(const SharedMemory& one, const SharedMemory& other) {
  if (one.cores.size() != other.cores.size()) return one.cores.size() > other.cores.size();
  const bool numa = one.type == PlaceType::kNumaNode;
  if (numa != (other.type == PlaceType::kNumaNode)) return numa;
  if (one.level != other.level) return one.level > other.level;
  return std::tie(one.cores, one.name) < std::tie(other.cores, other.name);
}

bool has_core(const SharedMemory& memory, std::uint32_t core) {
  return std::binary_search(memory.cores.begin(), memory.cores.end(), core);
}

class Builder {
 public:
  explicit Builder(const Topology& topology) : shared_(topology.shared) {
    // One NUMA node is the memory itself.
    const auto is_numa = [](const SharedMemory& one) { return one.type == PlaceType::kNumaNode; };
    if (std::count_if(shared_.begin(), shared_.end(), is_numa) < 2) {
      std::erase_if(shared_, is_numa);
    }
    std::erase_if(shared_, [](const SharedMemory& one) { return one.cores.empty(); });
    std::sort(shared_.begin(), shared_.end(), is_outside);
    platform_.places.push_back({"memory", PlaceType::kMemory, -1, topology.memory_bytes});
    for (const SharedMemory& one : shared_) {
      platform_.places.push_back({one.name, one.type, one.number, one.bytes});
    }
    for (const PlatformPlace& gpu : topology.gpus) {
      gpus_.push_back(add_next_to_memory(gpu));
    }
    interconnect_ = add_next_to_memory({"interconnect", PlaceType::kInterconnect});
    storage_ = add_next_to_memory({"storage", PlaceType::kStorage});
    connect_shared();
  }

  Platform build(std::uint32_t cores) {
    const auto workers = std::clamp<std::uint32_t>(cores, 1, kMostWorkers);
    for (std::uint32_t core = 0; core < workers; ++core) {
      platform_.workers.push_back(worker_of(core, workers));
    }
    return std::move(platform_);
  }

 private:
  static std::uint32_t place_of(std::size_t shared) {
    return static_cast<std::uint32_t>(shared + 1);
  }
  std::uint32_t add_next_to_memory(const PlatformPlace& place) {
    const auto index = static_cast<std::uint32_t>(platform_.places.size());
    platform_.places.push_back(place);
    platform_.edges.emplace_back(0, index);
    return index;
  }
  void connect_shared() {
    for (std::size_t inner = 0; inner < shared_.size(); ++inner) {
      std::uint32_t around = 0;
      for (std::size_t outer = inner; outer-- > 0 && around == 0;) {
        const Indices& cores = shared_[outer].cores;
        const bool contains = std::includes(cores.begin(), cores.end(),
                                            shared_[inner].cores.begin(),
                                            shared_[inner].cores.end());
        if (contains) around = place_of(outer);
      }
      platform_.edges.emplace_back(around, place_of(inner));
    }
  }
  // From the core outwards, without the memory of all.
  Indices chain_of(std::uint32_t core) const {
    Indices chain;
    for (std::size_t index = shared_.size(); index-- > 0;) {
      if (has_core(shared_[index], core)) chain.push_back(place_of(index));
    }
    return chain;
  }
  std::uint32_t home_of(const Indices& chain) const {
    for (auto place = chain.rbegin(); place != chain.rend(); ++place) {
      if (platform_.places[*place].type == PlaceType::kCache) return *place;
    }
    return chain.empty() ? 0 : chain.back();
  }
  PlatformWorker worker_of(std::uint32_t core, std::uint32_t workers) const {
    PlatformWorker worker;
    const Indices chain = chain_of(core);
    worker.home = home_of(chain);
    if (core == 0) worker.pop = {interconnect_, storage_};
    worker.pop.insert(worker.pop.end(), chain.begin(), chain.end());
    worker.pop.push_back(0);
    worker.steal = worker.pop;
    // Of others, those first whose chain meets this one earliest.
    for (const std::uint32_t around : chain) {
      for (std::uint32_t other = 0; other < workers; ++other) {
        if (has_core(shared_[around - 1], other)) {
          add_once(worker.steal, home_of(chain_of(other)));
        }
      }
    }
    for (std::uint32_t other = 0; other < workers; ++other) {
      add_once(worker.steal, home_of(chain_of(other)));
    }
    for (const std::uint32_t gpu : gpus_) {
      worker.pop.push_back(gpu);
      worker.steal.push_back(gpu);
    }
    return worker;
  }

  std::vector<SharedMemory> shared_;  // the outermost first; place 0 is around all
  Platform platform_;
  Indices gpus_;
  std::uint32_t interconnect_ = 0;
  std::uint32_t storage_ = 0;
};

}  // namespace

Platform platform_of(const Topology& topology) { return Builder(topology).build(topology.cores); }

}  // namespace amasia::machine
