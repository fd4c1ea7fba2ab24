// SPDX-License-Identifier: Apache-2.0
#include "machine/identity.hpp"

#include <cpuid.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <set>

namespace amasia::machine {
namespace {

// Names come from outside: what could end a field or a line does not get in.
std::string printable(std::string_view text) {
  std::string out;
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte >= 0x20 && byte < 0x7f) out += character;
  }
  const auto first = out.find_first_not_of(' ');
  if (first == std::string::npos) return "unknown";
  return out.substr(first, out.find_last_not_of(' ') - first + 1);
}

// Asked of the processor itself: /proc/cpuinfo is long where there are many cores.
std::string processor_name() {
  std::array<unsigned, 12> words{};
  for (unsigned i = 0; i < 3; ++i) {
    unsigned* const part = &words[4 * i];
    if (__get_cpuid(0x80000002 + i, &part[0], &part[1], &part[2], &part[3]) == 0) return "unknown";
  }
  char text[sizeof words + 1] = {};
  std::memcpy(text, words.data(), sizeof words);
  return printable(text);
}

// Of base's table; a variable that an older or newer one lacks never turns up.
constexpr std::array<std::string_view, 8> kSettings = {
    "AMASIA_BIND",       "AMASIA_EMULATE", "AMASIA_LINK",    "AMASIA_NETNS",
    "AMASIA_READ_AHEAD", "AMASIA_SPIN",    "AMASIA_THREADS", "AMASIA_TRANSPORT"};

}  // namespace

NodeIdentity identify_node(std::uint32_t cores) {
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) != 0) host[0] = '\0';
  return {.host = printable(host), .cpu = processor_name(), .cores = cores};
}

std::vector<std::pair<std::string, std::string>> settings_that_matter(
    const std::vector<std::pair<std::string, std::string>>& options, std::string_view ucx_tls) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const auto& [name, value] : options) {
    if (std::find(kSettings.begin(), kSettings.end(), name) != kSettings.end()) {
      out.emplace_back(name, value);
    }
  }
  if (!ucx_tls.empty()) out.emplace_back("UCX_TLS", ucx_tls);
  std::sort(out.begin(), out.end());
  return out;
}

std::string text_of(const Identity& identity) {
  std::set<std::string> hosts;
  for (const NodeIdentity& node : identity.nodes) hosts.insert(node.host);
  std::string out =
      fmt::format("{} node{} on ", identity.nodes.size(), identity.nodes.size() == 1 ? "" : "s");
  if (hosts.size() == 1) {
    out += "'" + *hosts.begin() + "'";
  } else {
    out += fmt::format("{} hosts", hosts.size());
  }
  for (const auto& [name, value] : identity.settings) out += fmt::format(", {}={}", name, value);
  return out;
}

std::string encode(const NodeIdentity& node) {
  return fmt::format("{}\n{}\n{}", node.cores, node.host, node.cpu);
}

Result<NodeIdentity> decode_node(std::string_view text) {
  const Error malformed{"a node told of itself what is not understood", 0};
  const auto first = text.find('\n');
  if (first == std::string_view::npos) return malformed;
  const auto second = text.find('\n', first + 1);
  if (second == std::string_view::npos) return malformed;
  NodeIdentity node;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + first, node.cores);
  if (error != std::errc() || stop != text.data() + first || node.cores == 0) return malformed;
  node.host = text.substr(first + 1, second - first - 1);
  node.cpu = text.substr(second + 1);
  if (node.host != printable(node.host) || node.cpu != printable(node.cpu)) return malformed;
  return node;
}

}  // namespace amasia::machine
