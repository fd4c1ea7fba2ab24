// SPDX-License-Identifier: Apache-2.0
// What Amasia's tasks are held against: the same on the first of the same devices by its driver
// itself, as a straightforward program that waits for each task and as one that keeps several in a
// queue by hand. Both have their program built and their memory made before the time is taken.
#pragma once

#include <memory>

#include "amasia_tasks.hpp"
#include "products.hpp"

namespace bench {

class Peer {
 public:
  virtual ~Peer() = default;
  // Kernels that do nothing; waits when so many are in the queue.
  virtual void run_noops(int tasks, int in_queue) = 0;

  // Products with memory of their own for as many as are in the queue.
  class Pipeline {
   public:
    virtual ~Pipeline() = default;
    // Each brings its inputs and takes its result back. Some of what they gave is checked.
    virtual void run(Products& all) = 0;
  };
  virtual std::unique_ptr<Pipeline> products(std::size_t size, int in_queue) = 0;
};

std::unique_ptr<Peer> make_opencl_peer(const Devices& devices);
std::unique_ptr<Peer> make_cuda_peer();

inline std::unique_ptr<Peer> make_peer(const Devices& devices) {
  return devices.by_cuda() ? make_cuda_peer() : make_opencl_peer(devices);
}

}  // namespace bench
