// SPDX-License-Identifier: Apache-2.0
#include "loops/pool.hpp"

#include <algorithm>
#include <utility>

namespace amasia::loops {

GlobalPool::GlobalPool(ScheduleRequest request, std::uint64_t count, std::span<const Power> powers)
    : request_(request), count_(count), nodes_(powers.size()) {
  const Schedule& schedule = schedule_of(request.kind);
  AMASIA_CHECK(schedule.pooled() && !schedule.probes(), "only pooled schedules have a pool");
  AMASIA_CHECK(is_valid(powers), "a loop is shared by at least one thread");
  std::copy(powers.begin(), powers.end(), powers_.begin());
}

Taker GlobalPool::taker(std::size_t rank) const {
  Taker taker{powers_[rank].threads, 0, powers_[rank].total(), 0};
  for (std::size_t r = 0; r < nodes_; ++r) {
    taker.all_threads += powers_[r].threads;
    taker.all_power += powers_[r].total();
  }
  return taker;
}

Refill GlobalPool::take(std::size_t rank) {
  AMASIA_CHECK(rank < nodes_, "a node that shares a loop has a rank");
  if (remaining() == 0 || powers_[rank].total() == 0) return {{count_, count_}, false};
  const std::uint64_t size =
      schedule_of(request_.kind).node_take(remaining(), request_.chunk, taker(rank), batch_);
  AMASIA_CHECK(size > 0 && size <= remaining(), "a take is between one and all that remain");
  const Iterations range{next_, next_ + size};
  next_ = range.end;
  given_[rank] += size;
  return {range, remaining() > 0};
}

void GlobalPool::note(std::size_t rank, const Report& report) {
  AMASIA_CHECK(rank < nodes_, "a node that shares a loop has a rank");
  if (!schedule_of(request_.kind).adapts || report.iterations == 0) return;
  // Older reports count half as much with each newer one.
  Report& recent = recent_[rank];
  recent.iterations /= 2;
  recent.compute_ns /= 2;
  recent.stall_ns /= 2;
  recent += report;
  weigh();
}

// Speeds by what was measured; a node that has not told anything keeps its place between the others
// by counting as fast as they are on average.
void GlobalPool::weigh() {
  double least = 0, sum = 0;
  std::size_t told = 0;
  const auto ns = [this](std::size_t rank) { return cost_of(recent_[rank]).total(); };
  for (std::size_t r = 0; r < nodes_; ++r) {
    if (ns(r) == 0) continue;
    least = told == 0 ? ns(r) : std::min(least, ns(r));
    sum += 1 / ns(r);
    ++told;
  }
  for (std::size_t r = 0; r < nodes_; ++r) {
    if (powers_[r].speed == 0) continue;
    const double own = ns(r) > 0 ? ns(r) : static_cast<double>(told) / sum;
    powers_[r].speed = speed_from(std::max(own, least), least);
  }
}

Refill first_deal(GlobalPool& pool, std::size_t nodes, std::size_t rank) {
  AMASIA_CHECK(rank < nodes, "a node that shares a loop has a rank");
  Refill deal;
  for (std::size_t r = 0; r < nodes; ++r) {
    const Refill refill = pool.take(r);
    if (r == rank) deal = refill;
  }
  deal.more = pool.remaining() > 0;
  return deal;
}

NodePool::NodePool(ScheduleRequest request, std::uint64_t count, std::uint32_t threads,
                   Refill first)
    : request_(request),
      count_(count),
      threads_(threads),
      stock_(first.range),
      piece_(first.piece),
      more_(first.more) {
  AMASIA_CHECK(schedule_of(request.kind).pooled(), "only pooled schedules have a pool");
  AMASIA_CHECK(threads > 0, "a node that shares a loop has threads");
  keep_last(stock_);
  refill_ = stock_.size();
}

void NodePool::keep_last(Iterations& range) {
  if (range.empty() || range.end != count_ || !schedule_of(request_.kind).probes()) return;
  AMASIA_CHECK(!keeps_last_, "there is one last iteration");
  keeps_last_ = true;
  --range.end;
}

void NodePool::restock() {
  stock_ = reserve_.range;
  refill_ = stock_.size();
  piece_ = reserve_.piece;
  reserve_ = {};
}

std::uint64_t NodePool::next_size() const {
  if (piece_ > 0) return std::min(piece_, stock_.size());
  return schedule_of(request_.kind).thread_take({stock_.size(), refill_, threads_}, request_.chunk);
}

bool NodePool::low() const {
  // The last chunks of the stock are being taken: with one more taker per thread it is gone.
  if (!schedule_of(request_.kind).probes()) {
    return stock_.size() / threads_ < std::max<std::uint64_t>(request_.chunk, 1);
  }
  // What is asked for depends on what there is to tell: half of it was executed or soon is.
  return has_news_ && stock_.size() <= refill_ / 2;
}

NodePool::Taken NodePool::take(bool returns) {
  has_news_ |= returns;
  if (stock_.empty()) restock();
  if (stock_.empty()) {
    if (!more_ && std::exchange(keeps_last_, false)) {
      return {Answer::kIterations, {count_ - 1, count_}};
    }
    if (!more_) return {Answer::kDone, {}};
    if (asking_) return {Answer::kWait, {}};
    asking_ = true;
    has_news_ = false;
    return {Answer::kAsk, {}};
  }
  const std::uint64_t size = next_size();
  AMASIA_CHECK(size > 0 && size <= stock_.size(), "a take is between one and all that remain");
  const Iterations range{stock_.begin, stock_.begin + size};
  stock_.begin = range.end;
  AMASIA_CHECK_DEBUG(is_valid(), "a take keeps the pool valid");
  if (more_ && !asking_ && reserve_.range.empty() && low()) {
    asking_ = true;
    has_news_ = false;
    return {Answer::kIterationsAndAsk, range};
  }
  return {Answer::kIterations, range};
}

void NodePool::deliver(Refill refill) {
  AMASIA_CHECK(asking_, "a refill answers a request");
  AMASIA_CHECK(reserve_.range.empty(), "one request is under way at a time");
  asking_ = false;
  AMASIA_CHECK(more_, "a pool asks while there may be more");
  AMASIA_CHECK(refill.range.empty() || schedule_of(request_.kind).probes() ||
                   refill.range.begin >= stock_.end,
               "refills have rising numbers");
  AMASIA_CHECK(!refill.range.empty() || !refill.more, "a pool that has more gives some");
  reserve_ = refill;
  keep_last(reserve_.range);
  more_ = refill.more;
  AMASIA_CHECK_DEBUG(is_valid(), "a refill keeps the pool valid");
}

void NodePool::end() {
  AMASIA_CHECK(!asking_, "a request has its answer first");
  more_ = false;
}

bool NodePool::is_valid() const {
  const Iterations& reserve = reserve_.range;
  const bool ordered = stock_.begin <= stock_.end && reserve.begin <= reserve.end;
  const bool rising = reserve.empty() || stock_.end <= reserve.begin;
  const bool may_fall = schedule_of(request_.kind).probes();
  return ordered && (rising || may_fall) && !(asking_ && !reserve.empty());
}

}  // namespace amasia::loops
