// SPDX-License-Identifier: Apache-2.0
// What a job's nodes and links are, as far as it decides what they cost: measurements are used for
// a job whose identity is equal, and for no other.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/base.hpp"

namespace amasia::machine {

struct NodeIdentity {
  std::string host;
  std::string cpu;          // the model's name
  std::uint32_t cores = 1;  // that it contributes to a team
  bool operator==(const NodeIdentity&) const = default;
};

struct Identity {
  std::vector<NodeIdentity> nodes;
  // Options that decide about links and speeds, and differ from their defaults: variable and value,
  // sorted.
  std::vector<std::pair<std::string, std::string>> settings;
  bool operator==(const Identity&) const = default;
};

// The host and the processor that the caller runs on. Asks the system.
NodeIdentity identify_node(std::uint32_t cores);
// From what base::to_environment gives, and UCX's own choice of transports ("" if there is none).
std::vector<std::pair<std::string, std::string>> settings_that_matter(
    const std::vector<std::pair<std::string, std::string>>& options, std::string_view ucx_tls);

// "2 nodes on 'vm', AMASIA_TRANSPORT=tcp", for sentences.
std::string text_of(const Identity& identity);

// Between nodes: no field has a line feed.
std::string encode(const NodeIdentity& node);
Result<NodeIdentity> decode_node(std::string_view text);

}  // namespace amasia::machine
