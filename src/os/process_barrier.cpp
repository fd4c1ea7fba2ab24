// SPDX-License-Identifier: Apache-2.0
#include "os/process_barrier.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/base.hpp"

namespace amasia::os {

bool register_process_barrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void process_barrier() noexcept {
  const long done = ::syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
  AMASIA_CHECK(done == 0, "the process was not registered for barriers");
}

}  // namespace amasia::os
