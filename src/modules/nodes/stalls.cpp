// SPDX-License-Identifier: Apache-2.0
// Deadlocks of the whole job: what deadlock.hpp decides, carried out. The origin asks and judges;
// nobody sends anything of this while anything runs there, nor twice while nothing changes.
#include <algorithm>
#include <cstring>
#include <source_location>

#include "modules/nodes/node.hpp"

namespace amasia::nodes::detail {
namespace {

// Where the other nodes' run() waits: none of the program's waits.
constexpr std::source_location kServes = std::source_location::current();

std::string lines_of(const std::vector<std::string>& waits) {
  std::string text;
  for (const std::string& line : waits) {
    if (text.size() + line.size() + 1 > kMostText) break;
    text += line + "\n";
  }
  return text;
}

}  // namespace

void Node::wait_for_end_of_job() { job_over_.get_future().wait(kServes); }

void Node::send_counted(NodeId to, fabric::MessageType type, std::span<const std::byte> head,
                        std::span<const std::byte> body) {
  counted_sent_.fetch_add(1);  // D1
  connection_->fabric().send(to, type, head, body);
}

std::optional<MessageCounts> Node::counts_if_stalled() const {
  const std::uint64_t received = counted_received_.load();  // what comes from now on wakes it
  if (!host_.is_stalled()) return std::nullopt;
  return MessageCounts{counted_sent_.load(), received};
}

void Node::stalled() {
  const WhileHere here(*this);
  if (!here.is_too_late()) look_whether_stalled(true);
}

// D3: by a worker that goes to sleep, and after each message.
void Node::look_whether_stalled(bool anew) {
  if (!host_.detects_deadlock() || !host_.is_stalled() || connection_->is_ending()) return;
  std::optional<StallNews> news;
  Judgement judgement = Judgement::kNone;
  std::uint64_t round = 0;
  {
    const os::MutexLock lock(stalls_mutex_);
    const auto here = counts_if_stalled();
    if (self_ == base::kOrigin) {
      judgement = judge_.on_stalled(here, anew);
      round = judge_.round();
    } else {
      news = teller_.look(here);
    }
  }
  if (news) {
    connection_->fabric().send(base::kOrigin, kStalledMessage,
                               fabric::bytes_of(nodes::head_of(*news, 0, 0)));
  }
  act(judgement, round);
}

void Node::take_stalled_message(NodeId from, std::span<const std::byte> body) {
  const auto arrived = read_stall(body);
  if (!arrived || self_ != base::kOrigin) malformed(from, "word that it is stalled");
  Judgement judgement = Judgement::kNone;
  std::uint64_t round = 0;
  {
    const os::MutexLock lock(stalls_mutex_);
    judgement = judge_.on_told(from, arrived->news, counts_if_stalled());
    round = judge_.round();
  }
  if (judgement == Judgement::kRefused) malformed(from, "word that it is stalled");
  act(judgement, round);
}

void Node::take_ask_message(NodeId from, std::span<const std::byte> body) {
  std::uint64_t round = 0;
  if (from != base::kOrigin || body.size() != sizeof round) {
    malformed(from, "a question that only the origin asks");
  }
  std::memcpy(&round, body.data(), sizeof round);
  StallNews news;
  {
    const os::MutexLock lock(stalls_mutex_);
    news = teller_.answer(counts_if_stalled());
  }
  const std::string text = news.counts ? lines_of(host_.waits(kServes)) : std::string();
  connection_->fabric().send(from, kStallAnswerMessage,
                             fabric::bytes_of(nodes::head_of(news, round, text.size())),
                             std::as_bytes(std::span(text)));
}

void Node::take_stall_answer_message(NodeId from, std::span<const std::byte> body) {
  const auto arrived = read_stall(body);
  if (!arrived || self_ != base::kOrigin) malformed(from, "an answer that nobody waits for");
  Judgement judgement = Judgement::kNone;
  std::uint64_t round = 0;
  {
    const os::MutexLock lock(stalls_mutex_);
    judgement = judge_.on_answer(from, arrived->round, arrived->news, counts_if_stalled());
    if (judgement != Judgement::kRefused) waits_[from.value] = arrived->text;
    round = judge_.round();
  }
  if (judgement == Judgement::kRefused) malformed(from, "an answer that nobody waits for");
  act(judgement, round);
}

void Node::act(Judgement judgement, std::uint64_t round) {
  if (judgement == Judgement::kDeadlock) return report_deadlock();
  if (judgement != Judgement::kAsk) return;
  for (std::uint16_t node = 1; node < count_; ++node) {
    connection_->fabric().send(NodeId(node), kAskMessage, fabric::bytes_of(round));
  }
}

// On the thread that receives, which knows the last answer.
void Node::report_deadlock() {
  std::string lines;
  std::size_t count = 0;
  const auto add = [&](std::size_t node, std::string_view text) {
    while (!text.empty()) {
      const auto end = text.find('\n');
      lines += fmt::format("\n  node {}: {}", node, text.substr(0, end));
      text.remove_prefix(std::min(text.size(), end == text.npos ? end : end + 1));
      ++count;
    }
  };
  add(0, lines_of(host_.waits({})));
  {
    const os::MutexLock lock(stalls_mutex_);
    for (std::size_t node = 1; node < count_; ++node) add(node, waits_[node]);
  }
  host_.report_deadlock(fmt::format("deadlock: no task on any of {} nodes can run, and {} {}{}",
                                    count_, count, count == 1 ? "task waits" : "tasks wait",
                                    lines));
}

}  // namespace amasia::nodes::detail
