// SPDX-License-Identifier: Apache-2.0
#include "os/descriptor.hpp"

#include <unistd.h>

namespace amasia::os {

void Descriptor::close() noexcept {
  if (number_ >= 0) ::close(std::exchange(number_, -1));
}

}  // namespace amasia::os
