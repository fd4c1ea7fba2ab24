// SPDX-License-Identifier: Apache-2.0
// A process image as bytes, for the way from the origin's launcher to the others.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "base/base.hpp"
#include "os/os.hpp"

namespace amasia::tools {

std::vector<std::byte> pack_image(const std::optional<os::ProcessImage>& image);
// An error if the bytes are not what pack_image made; they come from another process.
Result<std::optional<os::ProcessImage>> unpack_image(std::span<const std::byte> bytes);

}  // namespace amasia::tools
