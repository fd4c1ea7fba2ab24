// SPDX-License-Identifier: Apache-2.0
#include "modules/storage/checkpoint_format.hpp"

#include <fmt/format.h>

#include <cstring>

#include "modules/storage/checksum.hpp"

namespace amasia::storage {
namespace {

std::uint64_t magic() {
  std::uint64_t word = 0;
  std::memcpy(&word, "AMASIACP", sizeof word);
  return word;
}

std::uint64_t sum_of_words(const Header& header) {
  return crc32c(0, header.data(), (header.size() - 1) * sizeof(std::uint64_t));
}

}  // namespace

std::size_t header_words(std::size_t regions) { return 3 + 2 * regions; }

Header make_header(const std::vector<region>& regions, const std::vector<std::uint32_t>& sums) {
  Header header(header_words(regions.size()));
  header[0] = magic();
  header[1] = regions.size();
  for (std::size_t n = 0; n < regions.size(); ++n) {
    header[2 + 2 * n] = regions[n].bytes;
    header[3 + 2 * n] = sums[n];
  }
  header.back() = sum_of_words(header);
  return header;
}

std::optional<std::string> wrong_in_header(const Header& header,
                                           const std::vector<region>& regions) {
  if (header[0] != magic()) return "is no checkpoint";
  if (header[1] != regions.size()) {
    return fmt::format("has {} regions ({} are to be restored)", header[1], regions.size());
  }
  if (header.back() != sum_of_words(header)) return "was changed: its header's checksum is wrong";
  for (std::size_t n = 0; n < regions.size(); ++n) {
    if (header[2 + 2 * n] != regions[n].bytes) {
      return fmt::format("has {} bytes of region {} ({} are to be restored)", header[2 + 2 * n], n,
                         regions[n].bytes);
    }
  }
  return std::nullopt;
}

std::uint32_t sum_in_header(const Header& header, std::size_t region) {
  return static_cast<std::uint32_t>(header[3 + 2 * region]);
}

}  // namespace amasia::storage
