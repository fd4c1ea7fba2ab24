// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/cuda/cuda_row.hpp"

#include <algorithm>

#include "devices/backends/cuda/cuda_device.hpp"

namespace amasia::devices::cuda {
namespace {

// All that tells one launch of a kernel from another.
void describe(const Launch& launch, std::vector<std::uint64_t>* out) {
  const Shape& s = launch.shape;
  out->assign({s.grid[0], s.grid[1], s.grid[2], s.block[0], s.block[1], s.block[2],
               launch.parameters.shared_bytes()});
  const auto words = launch.parameters.words();
  out->insert(out->end(), words.begin(), words.end());
}

}  // namespace

std::size_t Row::length_for(const Driver& cuda, std::size_t launches) {
  if (cuda.GraphCreate == nullptr || cuda.GraphAddKernelNode == nullptr ||
      cuda.GraphInstantiate == nullptr || cuda.GraphSetKernelNode == nullptr ||
      cuda.GraphLaunch == nullptr || cuda.GraphExecDestroy == nullptr ||
      cuda.GraphDestroy == nullptr) {
    return 0;
  }
  const auto* const length = std::find_if(kLengths.begin(), kLengths.end(),
                                          [&](std::size_t one) { return one <= launches; });
  return length == kLengths.end() ? 0 : *length;
}

KernelNode Row::node_of(Launch& launch) const {
  KernelNode node;
  node.function = function_;
  std::copy(std::begin(launch.shape.grid), std::end(launch.shape.grid), node.grid);
  std::copy(std::begin(launch.shape.block), std::end(launch.shape.block), node.block);
  node.shared_bytes = static_cast<unsigned>(launch.parameters.shared_bytes());
  node.parameters = launch.parameters.pointers();
  return node;
}

std::unique_ptr<Row> Row::make(const Device& device, CUfunction function,
                               std::span<Launch> launches) {
  const Driver& cuda = device.cuda;
  std::unique_ptr<Row> row(new Row(device, function, launches.size()));
  if (cuda.GraphCreate(&row->graph_, 0) != kSuccess) return nullptr;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    const KernelNode node = row->node_of(launches[i]);
    const CUgraphNode* const before = i == 0 ? nullptr : &row->nodes_[i - 1];
    if (cuda.GraphAddKernelNode(&row->nodes_[i], row->graph_, before, i == 0 ? 0 : 1, &node) !=
        kSuccess) {
      return nullptr;
    }
    describe(launches[i], &row->known_[i]);
  }
  if (cuda.GraphInstantiate(&row->runnable_, row->graph_, 0) != kSuccess) return nullptr;
  return row;
}

Row::~Row() {
  const InContext in(device_);
  if (runnable_ != nullptr) device_.cuda.GraphExecDestroy(runnable_);
  if (graph_ != nullptr) device_.cuda.GraphDestroy(graph_);
}

bool Row::set(std::span<Launch> launches) {
  std::vector<std::uint64_t> wanted;
  for (std::size_t i = 0; i < launches.size(); ++i) {
    describe(launches[i], &wanted);
    if (wanted == known_[i]) continue;
    const KernelNode node = node_of(launches[i]);
    if (device_.cuda.GraphSetKernelNode(runnable_, nodes_[i], &node) != kSuccess) return false;
    known_[i] = wanted;
  }
  return true;
}

CUresult Row::begin(CUstream stream) { return device_.cuda.GraphLaunch(runnable_, stream); }

}  // namespace amasia::devices::cuda
