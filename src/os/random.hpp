// SPDX-License-Identifier: Apache-2.0
// Random bytes from the kernel.
#pragma once

#include <cstddef>
#include <span>

namespace amasia::os {

// Fills `bytes` (at most 256) with bytes fit for secrets. Any thread; does not block after boot.
void fill_random(std::span<std::byte> bytes) noexcept;

}  // namespace amasia::os
