// SPDX-License-Identifier: Apache-2.0
// What a checkpoint looks like. Pure.
//
//   word 0            "AMASIACP"
//   word 1            number of regions
//   words 2, 3        length and CRC-32C of region 0; and so on for each
//   last word         CRC-32C of all words before
//   then              the regions' bytes, one after the other, and nothing else
//
// Words have 64 bits, in the machine's order.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "amasia/storage.hpp"

namespace amasia::storage {

using Header = std::vector<std::uint64_t>;

// The sums are those of the regions.
Header make_header(const std::vector<region>& regions, const std::vector<std::uint32_t>& sums);
// How long the header of so many regions is.
std::size_t header_words(std::size_t regions);
// What is wrong with a header that was read for these regions, if anything.
std::optional<std::string> wrong_in_header(const Header& header,
                                           const std::vector<region>& regions);
std::uint32_t sum_in_header(const Header& header, std::size_t region);

}  // namespace amasia::storage
