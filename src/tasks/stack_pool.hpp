// SPDX-License-Identifier: Apache-2.0
// Stacks of one size, each with a page below it that may not be touched. They cost memory where
// they were used, are used again, and are given back all at once.
#pragma once

#include <cstddef>
#include <vector>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tasks {

class StackPool {
 public:
  explicit StackPool(Bytes stack_bytes)
      : bytes_(base::round_up(stack_bytes, base::kPageSize) + base::kPageSize) {}

  // Any thread. The usable part; a new one each time. Error: no addresses or no memory left.
  Result<void*> make();
  Bytes usable_bytes() const { return bytes_ - base::kPageSize; }

 private:
  static constexpr Bytes kStacksPerMapping = 16;
  const Bytes bytes_;
  os::Mutex mutex_;
  std::vector<os::Reservation> mappings_ AMASIA_GUARDED_BY(mutex_);
  Bytes used_ AMASIA_GUARDED_BY(mutex_) = kStacksPerMapping;
};

}  // namespace amasia::tasks
