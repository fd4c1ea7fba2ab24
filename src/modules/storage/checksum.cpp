// SPDX-License-Identifier: Apache-2.0
#include "modules/storage/checksum.hpp"

#include <array>
#include <cstring>

namespace amasia::storage {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1) != 0 ? (value >> 1) ^ 0x82F63B78u : value >> 1;
    }
    table[byte] = value;
  }
  return table;
}
constexpr std::array<std::uint32_t, 256> kTable = make_table();

#ifdef __x86_64__
[[gnu::target("sse4.2")]] std::uint32_t crc32c_by_instruction(std::uint32_t before,
                                                              const void* data,
                                                              std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint64_t sum = ~before;
  for (; bytes >= 8; bytes -= 8, at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    sum = __builtin_ia32_crc32di(sum, word);
  }
  auto low = static_cast<std::uint32_t>(sum);
  for (; bytes > 0; --bytes, ++at) low = __builtin_ia32_crc32qi(low, *at);
  return ~low;
}
#endif

}  // namespace

std::uint32_t crc32c_portable(std::uint32_t before, const void* data, std::size_t bytes) noexcept {
  const auto* at = static_cast<const unsigned char*>(data);
  std::uint32_t sum = ~before;
  for (; bytes > 0; --bytes, ++at) sum = (sum >> 8) ^ kTable[(sum ^ *at) & 0xFF];
  return ~sum;
}

std::uint32_t crc32c(std::uint32_t before, const void* data, std::size_t bytes) noexcept {
#ifdef __x86_64__
  if (__builtin_cpu_supports("sse4.2")) return crc32c_by_instruction(before, data, bytes);
#endif
  return crc32c_portable(before, data, bytes);
}

}  // namespace amasia::storage
