// SPDX-License-Identifier: Apache-2.0
#include "loops/probe_dealer.hpp"

#include <algorithm>
#include <array>

#include "loops/takes.hpp"

namespace amasia::loops {
namespace {

// The first piece of a probe is this part of a thread's share of it: where sharing costs a hundred
// times what is computed, a thread that has begun a piece must still be ready soon.
constexpr std::uint64_t kFirstPiece = 4;
// Two pieces a thread at first: the second is worked on while the first is told of.
constexpr std::uint32_t kFirstPieces = 2;
// Where the nodes' ends lie no further apart than this, their territories stay as they are. What
// they have in hand is known to a batch, costs to the noise of a tenth of the loop; and where
// iterations suit some nodes better, each that moves costs more than was measured.
constexpr double kTolerated = 0.3;
// Of a loop that is known, in per cent, for a node that has nothing left. By its region it is known
// badly, and what is not moved is waited for.
constexpr std::uint64_t kLeastWorthMoving = 10, kLeastWorthOfRegion = 2;
// Of a loop that is known by its region a node is given this part at first, to have something to
// tell soon. Then, as what it has in hand cannot be taken from it, so much as takes this long, and
// no less than the least part of its share.
constexpr std::uint64_t kFirstOfRegion = 16, kLeastOfRegion = 64, kMostOfRegion = 8;
constexpr double kBatchTime = 2e6;  // ns
// No batch of HetProbe-I is less than this part of what the node would have of the whole loop.
constexpr std::uint64_t kLeastBatch = 128, kLeastKept = 16;

std::uint64_t probe_piece(const LoopTerms& loop, std::span<const Power> powers) {
  std::uint64_t threads = 0;
  for (const Power& power : powers) threads += power.threads;
  const std::uint64_t share = part_of(loop.count, loop.rules.probe_percent, 100) / threads;
  return std::max({share, loop.schedule.chunk, std::uint64_t{1}});
}

std::uint64_t first_piece(const LoopTerms& loop, std::span<const Power> powers) {
  return std::max({probe_piece(loop, powers) / kFirstPiece, loop.schedule.chunk, std::uint64_t{1}});
}

// Where speeds are known blocks are the nodes' from run to run, and should have no page in common.
void first_blocks(const LoopTerms& loop, std::span<const Power> powers,
                  std::span<Iterations> blocks) {
  if (loop.known) return seamed_node_blocks({loop.first, 1, loop.count}, powers, blocks);
  weighted_node_blocks(loop.count, powers, blocks);
}

// How much of its block a node is given before it asks.
std::uint64_t first_size(const LoopTerms& loop, const Power& power, std::uint64_t block,
                         std::uint64_t piece) {
  if (!loop.known) return chunk_per_thread(block, piece, kFirstPieces * power.threads);
  if (loop.by_region) return chunk_per_thread(block, block / kFirstOfRegion, 1);
  return loop.reprobes() ? block / 2 : block;
}

// Two for each thread: the next batch is asked for when the first of them are done.
std::uint64_t piece_of_batch(std::uint64_t size, std::uint32_t threads) {
  return std::max<std::uint64_t>(size / threads / 2, 1);
}

}  // namespace

Refill first_probe(const LoopTerms& loop, std::span<const Power> powers, std::size_t rank) {
  AMASIA_CHECK(rank < powers.size(), "a node that shares a loop has a rank");
  std::array<Iterations, base::kMaxNodes> blocks;
  first_blocks(loop, powers, {blocks.data(), powers.size()});
  const std::uint64_t piece = first_piece(loop, powers);
  Refill refill;
  // With known speeds all ask once, to tell how it went and to hear what is known by then.
  refill.more = loop.known;
  for (std::size_t r = 0; r < powers.size(); ++r) {
    const std::uint64_t size = first_size(loop, powers[r], blocks[r].size(), piece);
    if (size < blocks[r].size()) refill.more = true;
    if (r == rank) refill.range = {blocks[r].begin, blocks[r].begin + size};
  }
  if (!loop.known) refill.piece = piece;
  if (loop.by_region) refill.piece = piece_of_batch(refill.range.size(), powers[rank].threads);
  return refill;
}

ProbeDealer::ProbeDealer(const LoopTerms& loop, std::span<const Power> powers)
    : loop_(loop),
      nodes_(powers.size()),
      most_piece_(probe_piece(loop, powers)),
      decided_(loop.known) {
  std::array<Iterations, base::kMaxNodes> blocks;
  first_blocks(loop, powers, {blocks.data(), powers.size()});
  const std::uint64_t piece = first_piece(loop, powers);
  for (std::size_t r = 0; r < powers.size(); ++r) {
    Node& node = nodes_[r];
    node.power = powers[r];
    node.piece = piece;
    node.given = first_size(loop, powers[r], blocks[r].size(), piece);
    node.size = blocks[r].size() - node.given;
    if (node.size > 0) node.territory.push_back({blocks[r].begin + node.given, blocks[r].end});
    left_ += node.size;
  }
  if (!loop.by_region) return;
  sketch_ = CostSketch(loop.count, powers.size());
  for (std::size_t r = 0; r < powers.size(); ++r) {
    sketch_.give(r, {blocks[r].begin, blocks[r].begin + nodes_[r].given});
  }
}

void ProbeDealer::ask(std::size_t rank, const Report& report, std::vector<Grant>& grants) {
  AMASIA_CHECK(rank < nodes_.size(), "a node that shares a loop has a rank");
  Node& node = nodes_[rank];
  AMASIA_CHECK(!node.told && !node.parked, "a node asks until it hears that there is no more");
  asking_ = &node;
  node.window += report;
  node.done += report.iterations;
  done_ += report.iterations;
  AMASIA_CHECK(node.done <= node.given, "a node executes what it was given");
  if (loop_.by_region) sketch_.tell(rank, report);
  if (may_decide() && !keeps_territories()) decide();
  answer(rank, grants);
  // Until nothing changes: what one of them takes may be the last that another one waits for.
  for (bool answered = true; answered;) {
    answered = false;
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      if (!nodes_[r].parked || (nodes_[r].size == 0 && left_ > 0)) continue;
      nodes_[r].parked = false;
      answered = true;
      answer(r, grants);
    }
  }
  asking_ = nullptr;
  AMASIA_CHECK_DEBUG(is_valid(), "territories stay disjoint");
}

void ProbeDealer::take_over(std::size_t rank, std::vector<Grant>& grants) {
  AMASIA_CHECK(rank < nodes_.size(), "a node that shares a loop has a rank");
  Node& node = nodes_[rank];
  if (!node.parked) return;
  node.parked = false;
  for (Node& other : nodes_) {
    if (&other == &node) continue;
    node.territory.insert(node.territory.end(), other.territory.begin(), other.territory.end());
    other.territory.clear();
    other.size = 0;
  }
  std::sort(node.territory.begin(), node.territory.end(),
            [](auto a, auto b) { return a.begin < b.begin; });
  node.size = left_;
  answer(rank, grants);
  AMASIA_CHECK_DEBUG(is_valid(), "territories stay disjoint");
}

bool ProbeDealer::may_decide() const {
  if (left_ == 0 || (decided_ && !loop_.reprobes())) return false;
  const std::uint32_t percent =
      decided_ ? loop_.rules.reprobe_percent : loop_.rules.probe_percent;
  if (done_ - done_at_decision_ < std::max<std::uint64_t>(part_of(loop_.count, percent, 100), 1)) {
    return false;
  }
  return (decided_ && !loop_.by_region) || all_told();
}

bool ProbeDealer::all_told() const {
  const auto silent = [](const Node& node) { return node.given > 0 && node.done == 0; };
  return std::none_of(nodes_.begin(), nodes_.end(), silent);
}

// With speeds known from earlier runs each node has the part that it had then, and its data. What
// is measured so far of a loop whose iterations are unlike says little about the rest, and the next
// run will know better: only what would keep a node without work for long is worth moving.
bool ProbeDealer::keeps_territories() const {
  if (!loop_.known || decisions_ > 0) return false;
  const auto unused = [](const Node& node) { return node.power.total() == 0; };
  if (std::any_of(nodes_.begin(), nodes_.end(), unused)) return false;
  const auto idle = [this](const Node& node) {
    const bool waits = loop_.by_region && (node.parked || &node == asking_);
    return node.size == 0 && (waits || node.done == node.given);
  };
  const std::uint64_t least = loop_.by_region ? kLeastWorthOfRegion : kLeastWorthMoving;
  return std::none_of(nodes_.begin(), nodes_.end(), idle) ||
         left_ <= part_of(loop_.count, least, 100);
}

void ProbeDealer::decide() {
  std::array<NodeSample, base::kMaxNodes> samples;
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    Node& node = nodes_[r];
    if (node.window.iterations > 0) node.cost = cost_of(node.window);
    node.window = {};
    samples[r] = {node.power.threads, node.cost};
  }
  decision_ = decide_shares({samples.data(), nodes_.size()}, left_, 0);
  const auto not_done = static_cast<double>(loop_.count - done_);
  expected_ns_ = decision_.best_ns() * not_done / static_cast<double>(left_);
  for (std::size_t r = 0; r < nodes_.size(); ++r) nodes_[r].power.speed = decision_.speeds[r];
  const bool first = !decided_;
  decided_ = true;
  ++decisions_;
  done_at_decision_ = done_;
  // Where speeds are known it has come to this because a node is unused or out of work.
  if (first || loop_.known || is_out_of_balance()) regroup();
  if (loop_.reprobes()) try_idle_nodes();
}

// Whether some node would end much later than if all ended at once, or one that is used has
// nothing.
bool ProbeDealer::is_out_of_balance() const {
  double power = 0, work = static_cast<double>(left_), latest = 0;
  for (const Node& node : nodes_) {
    if (node.power.total() == 0 && node.size > 0) return true;
    if (node.power.total() == 0 || node.told) continue;
    if (node.parked) return true;
    const auto in_hand = static_cast<double>(node.given - node.done);
    const auto own = static_cast<double>(node.power.total());
    power += own;
    work += in_hand;
    if (node.size == 0) continue;  // nothing can be taken from it
    latest = std::max(latest, (in_hand + static_cast<double>(node.size)) / own);
  }
  return power > 0 && latest > (1 + kTolerated) * work / power;
}

void ProbeDealer::try_idle_nodes() {
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    Node& node = nodes_[r];
    if (node.power.speed > 0) {
      node.idle_waits = 0;
      node.idle_times = 0;
      continue;
    }
    if (node.idle_waits > 0) {
      --node.idle_waits;
      continue;
    }
    // It was measured just now, or tried in vain before: twice as long each time.
    if (node.idle_times > 0 && node.done == node.given) {
      steal(r, chunk_per_thread(left_, node.piece, node.power.threads));
    }
    node.idle_waits = 1u << std::min(node.idle_times, 16u);
    ++node.idle_times;
  }
}

// How much each node gets of what is left, so that with what they have in hand all finish at once.
void ProbeDealer::set_targets(std::vector<std::uint64_t>& targets) const {
  const auto in_hand = [](const Node& node) { return static_cast<double>(node.given - node.done); };
  std::vector<bool> takes(nodes_.size());
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    takes[r] = nodes_[r].power.total() > 0 && !nodes_[r].told;
  }
  double level = 0;  // iterations per power when all finish
  for (bool changed = true; changed;) {
    double power = 0, work = static_cast<double>(left_);
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      if (!takes[r]) continue;
      power += static_cast<double>(nodes_[r].power.total());
      work += in_hand(nodes_[r]);
    }
    AMASIA_CHECK(power > 0, "somebody takes what is left");
    level = work / power;
    changed = false;
    for (std::size_t r = 0; r < nodes_.size(); ++r) {
      const double part = level * static_cast<double>(nodes_[r].power.total());
      if (!takes[r] || part >= in_hand(nodes_[r]) * (1 - 1e-9)) continue;
      takes[r] = false;  // it has more in hand than that
      changed = true;
    }
  }
  std::uint64_t left = left_;
  std::size_t most = nodes_.size();
  for (std::size_t r = 0; r < nodes_.size(); ++r) {
    if (!takes[r]) continue;
    const Node& node = nodes_[r];
    const double part = level * static_cast<double>(node.power.total()) - in_hand(node);
    targets[r] = part >= static_cast<double>(left)
                     ? left
                     : static_cast<std::uint64_t>(std::max(part, 0.0));
    left -= targets[r];
    if (most == nodes_.size() || node.power.total() > nodes_[most].power.total()) most = r;
  }
  targets[most] += left;  // what rounding left
}

void ProbeDealer::regroup() {
  std::vector<std::uint64_t> targets(nodes_.size());
  set_targets(targets);
  std::vector<Iterations> all;
  for (Node& node : nodes_) {
    all.insert(all.end(), node.territory.begin(), node.territory.end());
    node.territory.clear();
    node.size = 0;
  }
  std::sort(all.begin(), all.end(), [](auto a, auto b) { return a.begin < b.begin; });
  std::size_t rank = 0;
  for (Iterations range : all) {
    while (!range.empty()) {
      while (nodes_[rank].size == targets[rank]) ++rank;
      Node& node = nodes_[rank];
      const std::uint64_t size = std::min(range.size(), targets[rank] - node.size);
      if (!node.territory.empty() && node.territory.back().end == range.begin) {
        node.territory.back().end += size;
      } else {
        node.territory.push_back({range.begin, range.begin + size});
      }
      node.size += size;
      range.begin += size;
    }
  }
}

ProbeDealer::Node& ProbeDealer::largest() {
  return *std::max_element(nodes_.begin(), nodes_.end(),
                           [](const Node& a, const Node& b) { return a.size < b.size; });
}

// From the tail of the largest territory.
void ProbeDealer::steal(std::size_t rank, std::uint64_t size) {
  Node& from = largest();
  Node& to = nodes_[rank];
  if (&from == &to || from.size == 0) return;
  size = std::min(size, from.size);
  std::vector<Iterations> taken;
  std::uint64_t left = size;
  while (left > 0) {
    Iterations& tail = from.territory.back();
    const std::uint64_t part = std::min(left, tail.size());
    taken.push_back({tail.end - part, tail.end});
    tail.end -= part;
    if (tail.empty()) from.territory.pop_back();
    left -= part;
  }
  from.size -= size;
  to.size += size;
  to.territory.insert(to.territory.end(), taken.begin(), taken.end());
  std::sort(to.territory.begin(), to.territory.end(),
            [](auto a, auto b) { return a.begin < b.begin; });
}

void ProbeDealer::answer(std::size_t rank, std::vector<Grant>& grants) {
  Node& node = nodes_[rank];
  if (node.size == 0 && left_ > 0) {
    const bool in_the_dark = !decided_ || (loop_.by_region && !keeps_territories() && !all_told());
    if (in_the_dark && node.power.total() > 0) {
      const std::uint64_t most = largest().size;
      steal(rank, most - most / 2);
    } else if (decided_ && loop_.reprobes() && node.power.total() > 0 && !keeps_territories()) {
      regroup();
    }
  }
  if (node.size == 0) {
    if (left_ > 0 && loop_.reprobes()) {
      node.parked = true;
      return;
    }
    node.told = true;
    grants.push_back({rank, {{loop_.count, loop_.count}, false}});
    return;
  }
  if (!decided_ || node.power.total() == 0) return grants.push_back({rank, probe_more(node)});
  Refill refill;
  refill.range = take_front(node, loop_.by_region ? timed_batch(node) : batch(node));
  if (loop_.by_region) refill.piece = piece_of_batch(refill.range.size(), node.power.threads);
  refill.more = node.size > 0 || (loop_.reprobes() && left_ > 0);
  node.told = !refill.more;
  grants.push_back({rank, refill});
}

Refill ProbeDealer::probe_more(Node& node) {
  Refill refill;
  refill.piece = node.piece;
  refill.range = take_front(node, chunk_per_thread(node.size, node.piece, node.power.threads));
  refill.more = left_ > 0;
  node.told = !refill.more;
  node.piece = std::min(node.piece > most_piece_ / 2 ? most_piece_ : 2 * node.piece, most_piece_);
  return refill;
}

std::uint64_t ProbeDealer::batch(const Node& node) const {
  if (!loop_.reprobes()) return node.size;
  std::uint64_t all = 0;
  for (const Node& other : nodes_) all += other.power.total();
  const std::uint64_t share = part_of(loop_.count, node.power.total(), all);
  const std::uint64_t chunks =
      chunk_per_thread(node.size, loop_.schedule.chunk, node.power.threads);
  // Who keeps its territory has little to tell.
  const bool keeps = keeps_territories();
  const std::uint64_t least = std::max(share / (keeps ? kLeastKept : kLeastBatch), chunks);
  const std::uint64_t part = keeps ? share : part_of(share, loop_.rules.reprobe_percent, 100);
  const std::uint64_t most = std::max(part, least);
  return std::clamp(node.size / 2, least, most);
}

std::uint64_t ProbeDealer::timed_batch(const Node& node) const {
  std::uint64_t all = 0;
  for (const Node& other : nodes_) all += other.power.total();
  const std::uint64_t share = part_of(loop_.count, node.power.total(), all);
  const double ns = node.window.iterations > 0 ? cost_of(node.window).total() : node.cost.total();
  const double timed = ns > 0 ? kBatchTime / ns * node.power.threads : 0;
  const std::uint64_t least = std::max<std::uint64_t>(share / kLeastOfRegion, 1);
  const std::uint64_t most = std::max(share / kMostOfRegion, least);
  if (timed >= static_cast<double>(most)) return most;
  return std::max(static_cast<std::uint64_t>(timed), least);
}

Iterations ProbeDealer::take_front(Node& node, std::uint64_t size) {
  Iterations& front = node.territory.front();
  const Iterations range{front.begin, front.begin + std::min(size, front.size())};
  front.begin = range.end;
  if (front.empty()) node.territory.erase(node.territory.begin());
  node.size -= range.size();
  node.given += range.size();
  left_ -= range.size();
  if (loop_.by_region) sketch_.give(static_cast<std::size_t>(&node - nodes_.data()), range);
  return range;
}

bool ProbeDealer::is_valid() const {
  std::vector<Iterations> all;
  std::uint64_t given = 0;
  for (const Node& node : nodes_) {
    std::uint64_t size = 0;
    for (const Iterations range : node.territory) size += range.size();
    if (size != node.size || (node.parked && size > 0) || node.done > node.given) return false;
    all.insert(all.end(), node.territory.begin(), node.territory.end());
    given += node.given;
  }
  std::sort(all.begin(), all.end(), [](auto a, auto b) { return a.begin < b.begin; });
  std::uint64_t left = 0, end = 0;
  for (const Iterations range : all) {
    if (range.empty() || range.begin < end || range.end > loop_.count) return false;
    end = range.end;
    left += range.size();
  }
  return left == left_ && left + given == loop_.count;
}

}  // namespace amasia::loops
