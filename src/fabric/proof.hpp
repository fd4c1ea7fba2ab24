// SPDX-License-Identifier: Apache-2.0
// What a node computes to show that it knows the job's secret without telling it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/bootstrap.hpp"

namespace amasia::fabric {

using Nonce = std::array<std::byte, 32>;
using Mac = std::array<std::byte, 32>;

// One direction of one connection. The nonces make it this connection and no earlier one; the
// direction makes a proof worthless when it is sent back to the node that made it.
struct Direction {
  NodeId from;
  NodeId to;
  Nonce nonce_from;
  Nonce nonce_to;
};

// HMAC-SHA256 under the secret of ("amasia proof", from, to, nonce_from, nonce_to). Pure.
Mac compute_proof(const JobSecret& secret, const Direction& direction);
// Eight bytes of the same with "amasia token": never 0. Carried by every frame of the direction.
std::uint64_t compute_token(const JobSecret& secret, const Direction& direction);
// Compares in a time that does not depend on the contents.
bool is_same(const Mac& a, const Mac& b);

}  // namespace amasia::fabric
