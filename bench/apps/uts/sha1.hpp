// SPDX-License-Identifier: Apache-2.0
// SHA-1 (FIPS 180-4) of messages of at most 55 bytes, which is one block: all that UTS needs.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uts {

using Digest = std::array<std::uint8_t, 20>;

inline Digest sha1(const std::uint8_t* message, std::size_t size) {
  std::array<std::uint8_t, 64> block{};
  std::memcpy(block.data(), message, size);
  block[size] = 0x80;
  block[62] = static_cast<std::uint8_t>(size * 8 >> 8);
  block[63] = static_cast<std::uint8_t>(size * 8);
  std::array<std::uint32_t, 80> w;
  for (std::size_t t = 0; t < 16; ++t) {
    std::uint32_t word = 0;
    std::memcpy(&word, &block[4 * t], 4);
    w[t] = __builtin_bswap32(word);
  }
  for (std::size_t t = 16; t < 80; ++t) {
    w[t] = std::rotl(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
  }
  constexpr std::array<std::uint32_t, 5> kFirst = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476,
                                                   0xc3d2e1f0};
  auto [a, b, c, d, e] = kFirst;
  for (std::size_t t = 0; t < 80; ++t) {
    std::uint32_t mixed = 0;
    if (t < 20) {
      mixed = ((b & c) | (~b & d)) + 0x5a827999;
    } else if (t < 40) {
      mixed = (b ^ c ^ d) + 0x6ed9eba1;
    } else if (t < 60) {
      mixed = ((b & c) | (b & d) | (c & d)) + 0x8f1bbcdc;
    } else {
      mixed = (b ^ c ^ d) + 0xca62c1d6;
    }
    const std::uint32_t next = std::rotl(a, 5) + mixed + e + w[t];
    e = d;
    d = c;
    c = std::rotl(b, 30);
    b = a;
    a = next;
  }
  const std::array<std::uint32_t, 5> sum = {kFirst[0] + a, kFirst[1] + b, kFirst[2] + c,
                                            kFirst[3] + d, kFirst[4] + e};
  Digest digest;
  for (std::size_t n = 0; n < 5; ++n) {
    const std::uint32_t word = __builtin_bswap32(sum[n]);
    std::memcpy(&digest[4 * n], &word, 4);
  }
  return digest;
}

}  // namespace uts
