// SPDX-License-Identifier: Apache-2.0
#include "tasks/stack_pool.hpp"

namespace amasia::tasks {

Result<void*> StackPool::make() {
  const os::MutexLock lock(mutex_);
  if (used_ == kStacksPerMapping) {
    auto made = os::Reservation::make(kStacksPerMapping * bytes_);
    if (!made.ok()) return made.error();
    mappings_.push_back(std::move(made).value());
    used_ = 0;
  }
  char* const low = static_cast<char*>(mappings_.back().address()) + used_ * bytes_;
  ++used_;
  if (const int refused = os::guard_page(low); refused != 0) {
    return base::errno_error(refused, "cannot guard a task's stack");
  }
  return static_cast<void*>(low + base::kPageSize);
}

}  // namespace amasia::tasks
