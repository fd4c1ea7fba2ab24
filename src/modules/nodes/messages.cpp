// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/messages.hpp"

#include <cstring>

namespace amasia::nodes {
namespace {

constexpr std::size_t kAlignment = 8;
static_assert(sizeof(TaskHead) % kAlignment == 0);

template <typename Head>
bool take_head(std::span<const std::byte>& bytes, Head& head) {
  if (bytes.size() < sizeof head) return false;
  std::memcpy(&head, bytes.data(), sizeof head);
  bytes = bytes.subspan(sizeof head);
  return true;
}

}  // namespace

void append_task(std::vector<std::byte>& out, const TaskHead& head, const void* body) {
  const std::size_t at = out.size();
  out.resize(at + sizeof head + base::round_up(head.bytes, kAlignment));
  std::memcpy(out.data() + at, &head, sizeof head);
  std::memcpy(out.data() + at + sizeof head, body, head.bytes);
}

std::optional<ArrivedTask> take_task(std::span<const std::byte>& bytes) {
  ArrivedTask task;
  if (!take_head(bytes, task.head)) return std::nullopt;
  const TaskHead& head = task.head;
  const std::size_t length = base::round_up(head.bytes, kAlignment);
  if (head.bytes == 0 || head.bytes > kMostBytes || head.result_bytes > kMostBytes ||
      head.wants_value > 1 || head.reserved != 0 || bytes.size() < length) {
    return std::nullopt;
  }
  task.body = bytes.first(head.bytes);
  bytes = bytes.subspan(length);
  return task;
}

std::optional<ArrivedTasks> read_tasks(std::span<const std::byte> bytes) {
  ArrivedTasks all;
  if (!take_head(bytes, all.head)) return std::nullopt;
  if (all.head.count == 0 || all.head.count > kMostTasks || all.head.for_lifeline > 1) {
    return std::nullopt;
  }
  for (std::uint32_t n = 0; n < all.head.count; ++n) {
    const auto task = take_task(bytes);
    if (!task) return std::nullopt;
    all.tasks.push_back(*task);
  }
  if (!bytes.empty()) return std::nullopt;
  return all;
}

std::optional<Answer> read_answer(std::span<const std::byte> bytes) {
  Answer answer;
  AnswerHead& head = answer.head;
  if (!take_head(bytes, head)) return std::nullopt;
  if ((head.flags & (kHasValue | kHasEnd)) == 0 || head.flags > 7) return std::nullopt;
  if (head.value_bytes > kMostBytes || head.text_bytes > kMostText ||
      bytes.size() != std::size_t{head.value_bytes} + head.text_bytes ||
      head.failed_on >= base::kMaxNodes) {
    return std::nullopt;
  }
  answer.value = bytes.first(head.value_bytes);
  const auto text = bytes.subspan(head.value_bytes);
  answer.text = {reinterpret_cast<const char*>(text.data()), text.size()};
  // A value or its error, not both; an error of the end needs the end.
  if (head.value_bytes != 0 && (!answer.has_value() || answer.value_failed())) return std::nullopt;
  if (answer.value_failed() && !answer.has_value()) return std::nullopt;
  if (answer.end_failed() && !answer.has_end()) return std::nullopt;
  return answer;
}

StallHead head_of(const StallNews& news, std::uint64_t round, std::size_t text_bytes) {
  StallHead head{.round = round,
                 .serial = news.serial,
                 .is_stalled = news.counts.has_value(),
                 .text_bytes = static_cast<std::uint32_t>(text_bytes)};
  if (news.counts) {
    head.sent = news.counts->sent;
    head.received = news.counts->received;
  }
  return head;
}

std::optional<ArrivedStall> read_stall(std::span<const std::byte> bytes) {
  StallHead head;
  if (!take_head(bytes, head)) return std::nullopt;
  if (head.is_stalled > 1 || head.text_bytes > kMostText || bytes.size() != head.text_bytes) {
    return std::nullopt;
  }
  if (head.is_stalled == 0 && (head.sent != 0 || head.received != 0 || head.text_bytes != 0)) {
    return std::nullopt;
  }
  ArrivedStall arrived{.round = head.round, .news = {.serial = head.serial, .counts = {}}};
  if (head.is_stalled == 1) arrived.news.counts = MessageCounts{head.sent, head.received};
  arrived.text = {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
  return arrived;
}

}  // namespace amasia::nodes
