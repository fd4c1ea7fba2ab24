// SPDX-License-Identifier: Apache-2.0
// The only file that includes libsodium (docs/decisions/libsodium.md).
#include "fabric/proof.hpp"

#include <sodium/crypto_auth_hmacsha256.h>
#include <sodium/crypto_verify_32.h>

#include <cstring>
#include <string_view>

#include "os/os.hpp"

namespace amasia::fabric {
namespace {

static_assert(sizeof(Mac) == crypto_auth_hmacsha256_BYTES);
static_assert(sizeof(JobSecret::bytes) == crypto_auth_hmacsha256_KEYBYTES);

const unsigned char* octets(const void* bytes) { return static_cast<const unsigned char*>(bytes); }

Mac compute(const JobSecret& secret, std::string_view label, const Direction& direction) {
  crypto_auth_hmacsha256_state state;
  crypto_auth_hmacsha256_init(&state, octets(secret.bytes.data()), secret.bytes.size());
  crypto_auth_hmacsha256_update(&state, octets(label.data()), label.size());
  const std::uint16_t ends[2] = {direction.from.value, direction.to.value};
  crypto_auth_hmacsha256_update(&state, octets(ends), sizeof ends);
  crypto_auth_hmacsha256_update(&state, octets(direction.nonce_from.data()), sizeof(Nonce));
  crypto_auth_hmacsha256_update(&state, octets(direction.nonce_to.data()), sizeof(Nonce));
  Mac mac;
  crypto_auth_hmacsha256_final(&state, reinterpret_cast<unsigned char*>(mac.data()));
  return mac;
}

}  // namespace

JobSecret make_job_secret() {
  JobSecret secret;
  os::fill_random(secret.bytes);
  return secret;
}

Mac compute_proof(const JobSecret& secret, const Direction& direction) {
  return compute(secret, "amasia proof", direction);
}

std::uint64_t compute_token(const JobSecret& secret, const Direction& direction) {
  const Mac mac = compute(secret, "amasia token", direction);
  std::uint64_t token = 0;
  std::memcpy(&token, mac.data(), sizeof token);
  return token | 1;  // 0 marks the frames of the handshake
}

bool is_same(const Mac& a, const Mac& b) {
  return crypto_verify_32(octets(a.data()), octets(b.data())) == 0;
}

}  // namespace amasia::fabric
