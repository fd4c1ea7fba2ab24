// SPDX-License-Identifier: Apache-2.0
#include "fabric/bootstrap_space.hpp"

#include <cstring>

namespace amasia::fabric {

BootstrapMessage bootstrap_error(std::string_view sentence) {
  BootstrapMessage message{BootstrapWord::kError, {}, 0, {}, {}};
  const auto bytes = std::as_bytes(std::span(sentence));
  message.value.assign(bytes.begin(), bytes.end());
  return message;
}

BootstrapMessage bootstrap_welcome(NodeId node, std::uint32_t node_count, const JobSecret& secret) {
  return {
      BootstrapWord::kWelcome, node, node_count, {}, {secret.bytes.begin(), secret.bytes.end()}};
}

BootstrapMessage bootstrap_absent(const std::vector<NodeId>& nodes) {
  BootstrapMessage message{BootstrapWord::kAbsent, {}, 0, {}, {}};
  for (const NodeId node : nodes) {
    const auto bytes = std::as_bytes(std::span(&node.value, 1));
    message.value.insert(message.value.end(), bytes.begin(), bytes.end());
  }
  return message;
}

BootstrapSpace::BootstrapSpace(std::uint32_t node_count, const JobSecret& secret)
    : node_count_(node_count), secret_(secret) {
  AMASIA_CHECK(node_count >= 1 && node_count <= base::kMaxNodes, "a job has 1 to 64 nodes");
}

Result<std::vector<BootstrapAnswer>> BootstrapSpace::step(NodeId from, BootstrapMessage message) {
  AMASIA_CHECK(from.value < node_count_, "no such node");
  std::vector<BootstrapAnswer> answers;
  switch (message.word) {
    case BootstrapWord::kHello:
      answers.push_back({from, bootstrap_welcome(from, node_count_, secret_)});
      return answers;
    case BootstrapWord::kPut:
      if (!unfenced_.emplace(std::pair(from, message.key), std::move(message.value)).second ||
          values_.contains({from, message.key})) {
        return Error{fmt::format("node {} put the key '{}' twice", from.value, message.key), 0};
      }
      return answers;
    case BootstrapWord::kFence:
      if ((arrived_ >> from.value & 1) != 0) {
        return Error{fmt::format("node {} came to one fence twice", from.value), 0};
      }
      return arrive(from);
    case BootstrapWord::kGet:
      answers.push_back(look_up(from, message.node, message.key));
      return answers;
    case BootstrapWord::kMissing:
      answers.push_back({from, bootstrap_absent(missing_from_fence())});
      return answers;
    default:
      return Error{fmt::format("node {} said a word that only the launcher may say ({})",
                               from.value, static_cast<int>(message.word)),
                   0};
  }
}

std::vector<BootstrapAnswer> BootstrapSpace::arrive(NodeId from) {
  std::vector<BootstrapAnswer> answers;
  if (!failure_.empty()) {
    answers.push_back({from, bootstrap_error(failure_)});
    return answers;
  }
  arrived_ |= std::uint64_t{1} << from.value;
  if (!missing_from_fence().empty()) return answers;
  arrived_ = 0;
  values_.merge(unfenced_);
  unfenced_.clear();
  for (std::uint16_t node = 0; node < node_count_; ++node) {
    answers.push_back({NodeId(node), {BootstrapWord::kFenced, NodeId(node), 0, {}, {}}});
  }
  return answers;
}

BootstrapAnswer BootstrapSpace::look_up(NodeId from, NodeId node, const std::string& key) const {
  if (!failure_.empty()) return {from, bootstrap_error(failure_)};
  const auto found = values_.find({node, key});
  if (found == values_.end()) {
    return {from, bootstrap_error(fmt::format("node {} has not published '{}'", node.value, key))};
  }
  return {from, {BootstrapWord::kValue, node, 0, {}, found->second}};
}

std::vector<BootstrapAnswer> BootstrapSpace::fail(std::string_view sentence) {
  AMASIA_CHECK(!sentence.empty(), "a failure is told in a sentence");
  failure_ = sentence;
  std::vector<BootstrapAnswer> answers;
  for (std::uint16_t node = 0; node < node_count_; ++node) {
    if ((arrived_ >> node & 1) != 0) answers.push_back({NodeId(node), bootstrap_error(failure_)});
  }
  arrived_ = 0;
  return answers;
}

std::vector<NodeId> BootstrapSpace::missing_from_fence() const {
  std::vector<NodeId> missing;
  if (arrived_ == 0) return missing;
  for (std::uint16_t node = 0; node < node_count_; ++node) {
    if ((arrived_ >> node & 1) == 0) missing.push_back(NodeId(node));
  }
  return missing;
}

}  // namespace amasia::fabric
