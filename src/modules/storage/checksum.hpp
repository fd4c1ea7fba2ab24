// SPDX-License-Identifier: Apache-2.0
// CRC-32C (Castagnoli, polynomial 0x1EDC6F41, as iSCSI and ext4 use it).
#pragma once

#include <cstddef>
#include <cstdint>

namespace amasia::storage {

// Of `bytes` more after what `before` is the sum of; 0 before anything.
std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t bytes) noexcept;
// Without the processor's instruction; the same sum.
std::uint32_t crc32c_portable(std::uint32_t before, const void* data, std::size_t bytes) noexcept;

}  // namespace amasia::storage
