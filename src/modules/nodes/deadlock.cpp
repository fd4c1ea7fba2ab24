// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/deadlock.hpp"

#include <algorithm>

namespace amasia::nodes {

Judgement StallJudge::judge(const std::optional<MessageCounts>& here) {
  if (!here || is_asking() || is_reported_) return Judgement::kNone;
  MessageCounts all = *here;
  for (std::size_t node = 1; node < told_.size(); ++node) {
    const auto& counts = told_[node].counts;
    if (!counts) return Judgement::kNone;
    all.sent += counts->sent;
    all.received += counts->received;
  }
  // Something is under way, or was when one of them told: who receives it will tell anew.
  if (all.sent != all.received) return Judgement::kNone;
  ++round_;
  std::fill(answered_.begin(), answered_.end(), false);
  missing_ = static_cast<std::uint32_t>(told_.size() - 1);
  received_before_ = all.received;
  sent_since_ = 0;
  all_stalled_ = true;
  return Judgement::kAsk;
}

void StallJudge::note(NodeId from, const StallNews& news) {
  if (news.serial > told_[from.value].serial) told_[from.value] = news;  // D5
}

Judgement StallJudge::on_told(NodeId from, const StallNews& news,
                              const std::optional<MessageCounts>& here) {
  if (!is_peer(from) || !news.counts) return Judgement::kRefused;
  note(from, news);
  is_reported_ = false;
  return judge(here);
}

Judgement StallJudge::on_answer(NodeId from, std::uint64_t round, const StallNews& news,
                                const std::optional<MessageCounts>& here) {
  if (!is_peer(from) || !is_asking() || round != round_ || answered_[from.value]) {
    return Judgement::kRefused;
  }
  answered_[from.value] = true;
  note(from, news);
  if (news.counts) sent_since_ += news.counts->sent;
  all_stalled_ = all_stalled_ && news.counts.has_value();
  if (--missing_ != 0) return Judgement::kNone;
  if (all_stalled_ && here && sent_since_ + here->sent == received_before_) {
    is_reported_ = true;
    return Judgement::kDeadlock;
  }
  return judge(here);
}

std::vector<std::uint64_t> StallJudge::fingerprint() const {
  std::vector<std::uint64_t> all{missing_, is_asking() ? received_before_ : 0,
                                 is_asking() ? sent_since_ : 0, is_asking() && all_stalled_,
                                 is_reported_};
  for (std::size_t node = 1; node < told_.size(); ++node) {
    const auto& [serial, counts] = told_[node];
    all.insert(all.end(), {serial, counts ? counts->sent + 1 : 0, counts ? counts->received : 0});
    all.push_back(is_asking() && answered_[node]);
  }
  return all;
}

}  // namespace amasia::nodes
