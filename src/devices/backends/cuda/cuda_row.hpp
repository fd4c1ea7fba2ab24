// SPDX-License-Identifier: Apache-2.0
// Several launches of one kernel, one after the other, as one command: a graph of CUDA's. Its
// driver takes a launch in 3.4 us, and one of a row in 0.9 (docs/decisions/device_backends.md).
#pragma once

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "devices/backends/cuda/cuda_driver.hpp"
#include "devices/backends/cuda/cuda_launch.hpp"

namespace amasia::devices::cuda {

class Device;

// What one launch is made of, but for the kernel.
struct Launch {
  Shape shape;
  Parameters parameters;
};

// Used by one thread at a time, in the context of its device; its own end makes that current.
class Row {
 public:
  // Of how many launches it may be: few lengths, so that those that were made are used again.
  static constexpr std::array<std::size_t, 3> kLengths = {16, 8, 4};
  // The greatest of them that is at most `launches`; 0: none, or the driver has no rows.
  static std::size_t length_for(const Driver& cuda, std::size_t launches);
  // Of one of those lengths. nullptr: the driver does not take them.
  static std::unique_ptr<Row> make(const Device& device, CUfunction function,
                                   std::span<Launch> launches);
  ~Row();
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  std::size_t length() const { return nodes_.size(); }
  // What the next begin() launches, as many. False: the driver does not take them.
  bool set(std::span<Launch> launches);
  CUresult begin(CUstream stream);

 private:
  Row(const Device& device, CUfunction function, std::size_t length)
      : device_(device), function_(function), nodes_(length), known_(length) {}
  KernelNode node_of(Launch& launch) const;

  const Device& device_;
  const CUfunction function_;
  CUgraph graph_ = nullptr;
  CUgraphExec runnable_ = nullptr;
  std::vector<CUgraphNode> nodes_;
  std::vector<std::vector<std::uint64_t>> known_;  // what each node launches now
};

}  // namespace amasia::devices::cuda
