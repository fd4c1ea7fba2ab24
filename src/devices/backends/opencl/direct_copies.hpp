// SPDX-License-Identifier: Apache-2.0
// Copies of one work to and from device memory that the host can write to itself, as a CPU's. Each
// that is a command costs the driver an event, a place in the queue and often a wake-up, which is
// more than the few bytes of a small one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "devices/backends/backend.hpp"
#include "os/os.hpp"

namespace amasia::devices::opencl {

class DirectCopies {
 public:
  // Larger ones are the driver's, whose threads copy while who submits goes on.
  static constexpr Bytes kMost = 256 * base::kKiB;

  void to_device(std::byte* to, const Copy& copy) {
    if (began_ == 0) began_ = os::monotonic_now();
    std::memcpy(to, copy.host, copy.size);
  }
  // Done by finish(), when the kernel has ended.
  void to_host(const std::byte* from, const Copy& copy) {
    backs_.push_back({copy.host, from, copy.size});
  }
  // Puts its times into *times, those of the work's commands.
  void finish(bool succeeded, Outcome* times) {
    if (began_ != 0) {
      if (times->copy_began == 0 || began_ < times->copy_began) times->copy_began = began_;
      if (times->run_began != 0) times->copy_began = std::min(times->copy_began, times->run_began);
    }
    if (!succeeded || backs_.empty()) return;
    for (const Back& back : backs_) std::memcpy(back.to, back.from, back.size);
    times->copy_ended = std::max(os::monotonic_now(), times->run_ended);
  }

 private:
  struct Back {
    void* to;
    const std::byte* from;
    Bytes size;
  };
  os::BlockVector<Back> backs_;
  Nanos began_ = 0;
};

}  // namespace amasia::devices::opencl
