// SPDX-License-Identifier: Apache-2.0
// What leaders say to each other inside a region: on the board where they share one, else by
// message.
#include <algorithm>
#include <cstring>

#include "omp/node.hpp"
#include "omp/work_sharing/turns.hpp"
#include "omp/work_sharing/work_sharing.hpp"

namespace amasia::omp {

bool Node::all_on_board(std::span<const NodeShare> shares) const {
  return std::ranges::all_of(shares,
                             [this](const NodeShare& share) { return is_on_board(share.node); });
}

std::optional<Word> Node::meet(const Team& team, std::uint32_t generation, Word word) {
  const std::optional<Word> brought = team.meets_on_board()
                                          ? meet_on_board(team, generation, word)
                                          : meet_by_messages(team, generation, word);
  services_.show_progress();
  return brought;
}

std::optional<Word> Node::meet_on_board(const Team& team, std::uint32_t generation, Word word) {
  using Action = BoardMeeting::Action;
  const std::span<const NodeShare> shares = team.shares();
  // Rises from meeting to meeting; its lowest bit alternates within a region. Two regions' meetings
  // have the join between them, which all participants leave first (A2).
  const std::uint64_t number = key_of(team.region(), generation);
  BoardMeeting meeting(team.rank(), static_cast<std::uint32_t>(shares.size()), word);
  const auto other = [&] { return shares[meeting.other()].node; };
  for (;;) {
    switch (meeting.action()) {
      case Action::kGive:
        board_->give(number, word.value);
        break;
      case Action::kArrive:
        board_->arrive(number);
        break;
      case Action::kLookForSleeper:
        meeting.done(board_->sleeps(other()));
        continue;
      case Action::kRing:
        board_->ring(other());
        break;
      case Action::kAwait:
        if (!await_or_take_home([&] { return board_->has_arrived(other(), number); },
                                "the arrival at a barrier", other().value)) {
          return std::nullopt;
        }
        break;
      case Action::kTake:
        meeting.take(board_->word_of(other(), number));
        continue;
      case Action::kLeave:
        return meeting.word();
    }
    meeting.done();
  }
}

std::optional<Word> Node::meet_by_messages(const Team& team, std::uint32_t generation, Word word) {
  const std::span<const NodeShare> shares = team.shares();
  Meeting meeting(team.rank(), static_cast<std::uint32_t>(shares.size()));
  Meeting::Step step = meeting.arrive(word);
  while (!step.complete) {
    const SignalBody signal{team.region(), generation, step.round, step.word.present,
                            step.word.value};
    send(shares[step.to].node, kSignalMessage, fabric::bytes_of(signal));
    const std::uint32_t round = meeting.awaited_round();
    const NodeId awaited = shares[meeting.awaited_rank()].node;
    if (!await_or_take_home(
            [&] { return mailbox_.has_signal(team.region(), generation, round); },
            "the arrival at a barrier", awaited.value)) {
      return std::nullopt;
    }
    meeting.hear(round, mailbox_.signal(generation, round));
    step = meeting.advance();
  }
  return step.word;
}

std::optional<double> Node::work_of_others(const Team& team) const {
  const std::span<const NodeShare> shares = team.shares();
  if (mailbox_.nodes_that_told_work() != shares.size() - 1) return std::nullopt;
  const auto cores = [this](const NodeShare& share) {
    return share.threads * settings_.core_speeds[share.node.value];
  };
  double all = 0;
  for (const NodeShare& share : shares.subspan(1)) {
    all += static_cast<double>(mailbox_.work_of(share.node)) * cores(share);
  }
  return all / cores(shares.front());
}

std::vector<Traveller> Node::await_travellers(const Team& team,
                                               std::span<const NodeShare> from) {
  wait_until([&] { return mailbox_.nodes_come_home() == from.size(); },
             settings_.spin_in_region, "threads that come home from other nodes");
  std::vector<Traveller> travellers;
  for (const NodeShare& share : from) {
    const std::span<const Traveller> own = mailbox_.travellers_of(share.node);
    AMASIA_CHECK(own.size() == share.threads, "all threads of a node come home together");
    const LoopRest& rest = mailbox_.rest_of(share.node);
    void* const slot = rest.threads > 0 ? work_sharing_->adopt(team.region(), rest) : nullptr;
    for (const Traveller& traveller : own) {
      ThreadLoop& loop = travellers.emplace_back(traveller).thread.loop;
      if (Turns::is_in_one(loop)) {
        loop.slot = turns_->join(team.region(), loop.number, traveller.turn);
      } else if (loop.slot != nullptr) {
        loop.slot = slot;
      }
      loop.in_hand = 0;  // its clock is the other node's
    }
  }
  return travellers;
}

void Node::give_reduction(const ReductionHead& head, std::span<const std::byte> tail) {
  const std::size_t size = sizeof head + tail.size();
  if (!is_on_board(base::kOrigin) || size > MeetingBoard::kPayloadSize) {
    return send(base::kOrigin, kReductionMessage, fabric::bytes_of(head), tail);
  }
  // P2: the origin has let this node go after the last one.
  std::byte* const payload = board_->own_payload().data();
  std::memcpy(payload, &head, sizeof head);
  std::memcpy(payload + sizeof head, tail.data(), tail.size());
  board_->post_reduction(key_of(head.region, head.number), static_cast<std::uint32_t>(size));
  board_->ring_if_sleeping(base::kOrigin);
}

std::span<const std::byte> Node::await_reduction(const Team& team, std::uint32_t rank,
                                                 std::uint32_t number) {
  const NodeId from = team.shares()[rank].node;
  const std::uint64_t key = key_of(team.region(), number);
  // A large one comes by message from a node on the board, too.
  const auto posted = [&] { return is_on_board(from) && board_->has_reduction(from, key); };
  if (!await_or_take_home(
          [&] { return posted() || mailbox_.has_reduction(rank, team.region(), number); },
          "the reduction's share", from.value)) {
    return {};
  }
  if (!posted()) return mailbox_.reduction(rank);
  const std::span<const std::byte> body = board_->reduction(from);
  AMASIA_CHECK(Mailbox::is_well_formed_reduction(body), "a posted reduction is as it was written");
  return body;
}

void Node::await_consumed(std::uint32_t region, std::uint32_t number) {
  const bool on_board = is_on_board(base::kOrigin);
  wait_until(
      [&] {
        return on_board ? board_->has_consumed(key_of(region, number))
                        : mailbox_.has_consumed(region, number);
      },
      settings_.spin_in_region, "the reduction's end", 0);
}

void Node::tell_consumed(NodeId to, std::uint32_t region, std::uint32_t number) {
  if (!is_on_board(to)) {
    const ConsumedBody consumed{region, number};
    return send(to, kConsumedMessage, fabric::bytes_of(consumed));
  }
  board_->post_consumed(to, key_of(region, number));
  board_->ring_if_sleeping(to);
}

}  // namespace amasia::omp
