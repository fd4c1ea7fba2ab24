// SPDX-License-Identifier: Apache-2.0
// From what a machine is made of to a platform for tasks. Pure; who looks at the machine is
// elsewhere (tools/hwloc_topology).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "machine/platform.hpp"

namespace amasia::machine {

// A memory or cache that some cores share.
struct SharedMemory {
  std::string name;
  PlaceType type = PlaceType::kCache;
  int number = -1;
  std::uint64_t bytes = 0;
  int level = 0;                     // of a cache; of cores that are the same, lower is nearer
  std::vector<std::uint32_t> cores;  // in order
};

struct Topology {
  std::uint64_t memory_bytes = 0;
  std::uint32_t cores = 0;
  std::vector<SharedMemory> shared;   // caches and NUMA nodes, in any order
  std::vector<PlatformPlace> gpus;
};

// A worker for each core, at most kMostWorkers. A worker looks outwards: its own caches, its NUMA
// node, the memory, and last where the others keep theirs, the near ones first. Its home is the
// largest cache that it has, so that those who share it take each other's tasks first. Nothing that
// is put anywhere lacks a worker. The interconnect and storage are worker 0's, GPUs everybody's.
Platform platform_of(const Topology& topology);

// A picture of it, as SVG: places in rows, homes of workers with a thick border, edges between
// them, and below the workers, with their paths in words.
std::string drawing_of(const Platform& platform);

}  // namespace amasia::machine
