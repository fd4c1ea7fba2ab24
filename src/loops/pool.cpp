// SPDX-License-Identifier: Apache-2.0
#include "loops/pool.hpp"

#include <algorithm>

namespace amasia::loops {

GlobalPool::GlobalPool(ScheduleRequest request, std::uint64_t count, std::uint64_t given,
                       std::uint32_t threads)
    : request_(request), count_(count), next_(given), threads_(threads) {
  AMASIA_CHECK(schedule_of(request.kind).pooled(), "only pooled schedules have a pool");
  AMASIA_CHECK(threads > 0, "a loop is shared by at least one thread");
  AMASIA_CHECK(given <= count, "no more is dealt out than there is");
}

Refill GlobalPool::take(std::uint32_t node_threads) {
  AMASIA_CHECK(node_threads > 0 && node_threads <= threads_,
               "a node has between one and all threads of the team");
  if (remaining() == 0) return {{count_, count_}, false};
  const std::uint64_t size = schedule_of(request_.kind)
                                 .node_take(remaining(), request_.chunk, {node_threads, threads_});
  AMASIA_CHECK(size > 0 && size <= remaining(), "a take is between one and all that remain");
  const Iterations range{next_, next_ + size};
  next_ = range.end;
  return {range, remaining() > 0};
}

FirstDeal first_deal(ScheduleRequest request, std::uint64_t count,
                     std::span<const std::uint32_t> node_threads, std::size_t rank) {
  AMASIA_CHECK(rank < node_threads.size(), "a node that shares a loop has a rank");
  std::uint32_t threads = 0;
  for (const std::uint32_t n : node_threads) threads += n;
  GlobalPool pool(request, count, 0, threads);
  FirstDeal deal;
  for (std::size_t r = 0; r < node_threads.size(); ++r) {
    const Refill refill = pool.take(node_threads[r]);
    if (r == rank) deal.refill.range = refill.range;
  }
  deal.refill.more = pool.remaining() > 0;
  deal.given = count - pool.remaining();
  return deal;
}

NodePool::NodePool(ScheduleRequest request, Sharers sharers, Refill first)
    : request_(request), sharers_(sharers), stock_(first.range), more_(first.more) {
  AMASIA_CHECK(schedule_of(request.kind).pooled(), "only pooled schedules have a pool");
  AMASIA_CHECK(sharers.node_threads > 0 && sharers.node_threads <= sharers.threads,
               "a node has between one and all threads of the team");
}

bool NodePool::low() const {
  // The last chunks of the stock are being taken: with one more taker per thread it is gone.
  return stock_.size() / sharers_.node_threads < std::max<std::uint64_t>(request_.chunk, 1);
}

NodePool::Taken NodePool::take() {
  if (stock_.empty()) {
    stock_ = reserve_;
    reserve_ = {};
  }
  if (stock_.empty()) {
    if (!more_) return {Answer::kDone, {}};
    if (asking_) return {Answer::kWait, {}};
    asking_ = true;
    return {Answer::kAsk, {}};
  }
  const std::uint64_t size =
      schedule_of(request_.kind).thread_take(stock_.size(), request_.chunk, sharers_);
  AMASIA_CHECK(size > 0 && size <= stock_.size(), "a take is between one and all that remain");
  const Iterations range{stock_.begin, stock_.begin + size};
  stock_.begin = range.end;
  AMASIA_CHECK_DEBUG(is_valid(), "a take keeps the pool valid");
  if (more_ && !asking_ && reserve_.empty() && low()) {
    asking_ = true;
    return {Answer::kIterationsAndAsk, range};
  }
  return {Answer::kIterations, range};
}

void NodePool::deliver(Refill refill) {
  AMASIA_CHECK(asking_, "a refill answers a request");
  AMASIA_CHECK(reserve_.empty(), "one request is under way at a time");
  asking_ = false;
  AMASIA_CHECK(more_, "a pool asks while there may be more");
  AMASIA_CHECK(refill.range.empty() || refill.range.begin >= stock_.end,
               "refills have rising numbers");
  AMASIA_CHECK(!refill.range.empty() || !refill.more, "a pool that has more gives some");
  reserve_ = refill.range;
  more_ = refill.more;
  AMASIA_CHECK_DEBUG(is_valid(), "a refill keeps the pool valid");
}

bool NodePool::is_valid() const {
  const bool ordered = stock_.begin <= stock_.end && reserve_.begin <= reserve_.end;
  const bool rising = reserve_.empty() || stock_.end <= reserve_.begin;
  return ordered && rising && !(asking_ && !reserve_.empty());
}

}  // namespace amasia::loops
