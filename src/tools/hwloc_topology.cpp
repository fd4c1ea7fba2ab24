// SPDX-License-Identifier: Apache-2.0
#include "tools/hwloc_topology.hpp"

#include <fmt/format.h>
#include <hwloc.h>

#include <algorithm>
#include <cerrno>
#include <memory>

namespace amasia::tools {
namespace {

using machine::PlaceType;
using Handle = std::unique_ptr<hwloc_topology, decltype(&hwloc_topology_destroy)>;

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kDisplayClass = 0x03;  // the upper byte of a PCI class

Result<Handle> load() {
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) != 0) return base::errno_error(errno, "cannot start hwloc");
  Handle topology(made, &hwloc_topology_destroy);
  hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_IMPORTANT);
  if (hwloc_topology_load(made) != 0) {
    return base::errno_error(errno, "hwloc cannot look at this machine");
  }
  // Of what the system allows, what this process is bound to.
  const std::unique_ptr<hwloc_bitmap_s, decltype(&hwloc_bitmap_free)> bound(hwloc_bitmap_alloc(),
                                                                            &hwloc_bitmap_free);
  if (hwloc_get_cpubind(made, bound.get(), HWLOC_CPUBIND_PROCESS) == 0) {
    hwloc_topology_restrict(made, bound.get(), 0);
  }
  return topology;
}

// Cores by their number here; processing units where the system tells of no cores.
std::vector<hwloc_obj_t> cores_of(hwloc_topology_t topology) {
  std::vector<hwloc_obj_t> cores;
  for (const hwloc_obj_type_t type : {HWLOC_OBJ_CORE, HWLOC_OBJ_PU}) {
    hwloc_obj_t core = nullptr;
    while ((core = hwloc_get_next_obj_by_type(topology, type, core)) != nullptr) {
      cores.push_back(core);
    }
    if (!cores.empty()) break;
  }
  return cores;
}

std::vector<std::uint32_t> cores_in(hwloc_const_cpuset_t set,
                                    const std::vector<hwloc_obj_t>& cores) {
  std::vector<std::uint32_t> inside;
  for (std::uint32_t index = 0; index < cores.size(); ++index) {
    if (hwloc_bitmap_intersects(cores[index]->cpuset, set) != 0) inside.push_back(index);
  }
  return inside;
}

void add_caches(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& cores,
                machine::Topology& out) {
  constexpr hwloc_obj_type_t kTypes[] = {HWLOC_OBJ_L1CACHE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
                                         HWLOC_OBJ_L4CACHE};
  int level = 0;
  for (const hwloc_obj_type_t type : kTypes) {
    ++level;
    hwloc_obj_t cache = nullptr;
    while ((cache = hwloc_get_next_obj_by_type(topology, type, cache)) != nullptr) {
      out.shared.push_back({.name = fmt::format("L{}#{}", level, cache->logical_index),
                            .type = PlaceType::kCache,
                            .number = static_cast<int>(cache->logical_index),
                            .bytes = cache->attr->cache.size,
                            .level = level,
                            .cores = cores_in(cache->cpuset, cores)});
    }
  }
}

void add_numa_nodes(hwloc_topology_t topology, const std::vector<hwloc_obj_t>& cores,
                    machine::Topology& out) {
  hwloc_obj_t node = nullptr;
  while ((node = hwloc_get_next_obj_by_type(topology, HWLOC_OBJ_NUMANODE, node)) != nullptr) {
    out.memory_bytes += node->attr->numanode.local_memory;
    out.shared.push_back({.name = fmt::format("numa{}", node->os_index),
                          .type = PlaceType::kNumaNode,
                          .number = static_cast<int>(node->os_index),
                          .bytes = node->attr->numanode.local_memory,
                          .cores = cores_in(node->cpuset, cores)});
  }
}

void add_gpus(hwloc_topology_t topology, machine::Topology& out) {
  hwloc_obj_t device = nullptr;
  while ((device = hwloc_get_next_pcidev(topology, device)) != nullptr) {
    const auto& pci = device->attr->pcidev;
    if (pci.vendor_id != kNvidia || pci.class_id >> 8 != kDisplayClass) continue;
    const int number = static_cast<int>(out.gpus.size());
    out.gpus.push_back(
        {.name = fmt::format("gpu{}", number), .type = PlaceType::kGpu, .number = number});
  }
}

}  // namespace

Result<machine::Topology> local_topology() {
  auto loaded = load();
  if (!loaded.ok()) return loaded.error();
  const hwloc_topology_t topology = loaded.value().get();
  const std::vector<hwloc_obj_t> cores = cores_of(topology);
  machine::Topology out;
  out.cores = static_cast<std::uint32_t>(std::max<std::size_t>(1, cores.size()));
  add_caches(topology, cores, out);
  add_numa_nodes(topology, cores, out);
  add_gpus(topology, out);
  return out;
}

}  // namespace amasia::tools
