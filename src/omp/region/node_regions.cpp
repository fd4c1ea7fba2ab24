// SPDX-License-Identifier: Apache-2.0
// How regions are sent, served and joined.
#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "omp/native.hpp"
#include "omp/node.hpp"
#include "omp/region/copied_in.hpp"
#include "omp/region/region_statistics.hpp"
#include "omp/work_sharing/work_sharing.hpp"
#include "os/os.hpp"

namespace amasia::omp {
namespace {

template <typename T>
void append(std::vector<std::byte>& bytes, std::span<const T> items) {
  const auto view = std::as_bytes(items);
  bytes.insert(bytes.end(), view.begin(), view.end());
}

// Reads a message from front to back; its size was checked on arrival.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  template <typename T>
  T take() {
    AMASIA_CHECK(rest_.size() >= sizeof(T), "the message's size was checked on arrival");
    T value;
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::string take_text(std::size_t size) {
    AMASIA_CHECK(rest_.size() >= size, "the message's size was checked on arrival");
    const std::string text(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return text;
  }
  std::span<const std::byte> rest() const { return rest_; }

 private:
  std::span<const std::byte> rest_;
};

// Where this library is, by one of its addresses: threads that move return into it.
std::uint64_t own_code() { return reinterpret_cast<std::uint64_t>(&amasia_switch); }

// What follows a region on the origin.
std::uint64_t place_after(const void* function) {
  return reinterpret_cast<std::uint64_t>(function) << 1;
}

}  // namespace

void Node::run_region(const RegionRequest& request, const RegionPlan& plan) {
  AMASIA_CHECK(plan.global() && self() == base::kOrigin, "regions begin on the origin");
  {
    const PlaceScope place;
    std::optional<CopiedIn> copied;
    if (!request.copied_in.empty()) copied.emplace(services_, request.copied_in);
    on_native_stack([&] {
      start_region(request, plan);
      team_.run();
      join_region(plan);
      services_.enter_place(place_after(request.outlined.function));
      // What a node printed is on its way before it says that it has joined, so all of it has come.
      services_.flush_output();
    });
  }
  unshow_region();
  region_busy_.store(false, std::memory_order_release);  // partner: plan_region
}

void Node::run_here(const RegionRequest& request, const RegionPlan& plan) {
  AMASIA_CHECK(plan.stands_in() && self() == base::kOrigin, "its threads are the origin's");
  {
    const PlaceScope place;
    on_native_stack([&] {
      LocalRuntime& local = runtime(request.abi);
      const bool adjusts = local.icvs().dynamic != 0;
      if (adjusts) local.set_dynamic(false);
      const NodeShare here{self(), settings_.capacity[0], 0};
      team_.begin({.region = ++last_region_,
                   .rank = 0,
                   .abi = request.abi,
                   .runtime = &local,
                   .shares = {&here, 1},
                   .outlined = request.outlined,
                   .location = request.location,
                   .proc_bind = request.proc_bind,
                   .mend_dynamic = adjusts,
                   .is_measured = false,
                   .reentry = Reentry::kNumbered,
                   .numbered = plan.numbered});
      team_.run();
      if (adjusts) local.set_dynamic(true);
    });
  }
  region_busy_.store(false, std::memory_order_release);  // partner: plan_region
  finish_single(plan);
}

void Node::start_region(const RegionRequest& request, const RegionPlan& plan) {
  LocalRuntime& local = runtime(request.abi);
  Icvs icvs = local.icvs();
  const std::uint32_t region = ++last_region_;
  RegionHead head{};
  head.region = region;
  head.share_count = static_cast<std::uint32_t>(plan.shares.size());
  head.word_count = static_cast<std::uint32_t>(request.outlined.words.size());
  head.extra_size = static_cast<std::uint32_t>(request.extra.size());
  head.abi = static_cast<std::uint8_t>(request.abi);
  head.function = reinterpret_cast<std::uint64_t>(request.outlined.function);
  head.location = reinterpret_cast<std::uint64_t>(request.location);
  head.proc_bind = request.proc_bind;
  head.counts = plan.counts ? 1 : 0;
  head.shows_affinity = request.shows_affinity ? 1 : 0;
  head.values = plan.values;
  head.reentry = static_cast<std::uint8_t>(plan.reentry);
  head.numbered_threads = plan.numbered.threads;
  head.numbered_extent = plan.numbered.extent;
  head.numbers_stay = plan.numbered.stay ? 1 : 0;
  head.goes_on_at = plan.may_come_home ? own_code() : 0;
  head.floating_point = os::floating_point_control();
  if (plan.keeps_values()) bring_values(plan.shares);
  const PageWindow arguments = offer_arguments(request, plan);
  head.arguments = arguments.first;
  head.to_give_back = arguments.mask;
  head.icvs = icvs;
  const std::string format = affinity_format_.get();
  head.format_size = static_cast<std::uint16_t>(format.size());
  std::vector<std::byte>& tail = message_;
  tail.clear();
  for (const NodeShare& share : plan.shares) {
    const WireShare wire{share.node.value, static_cast<std::uint16_t>(share.seam), share.threads,
                         share.speed, plan.keeps_values() ? values_sent_[share.node.value] : 0};
    append(tail, std::span<const WireShare>(&wire, 1));
  }
  append(tail, request.words_elsewhere.empty() ? request.outlined.words : request.words_elsewhere);
  append(tail, std::span<const char>(format));
  append(tail, request.extra);
  if (icvs.dynamic != 0) local.set_dynamic(false);
  team_.begin({.region = region,
               .rank = 0,
               .abi = request.abi,
               .runtime = &local,
               .shares = plan.shares,
               .outlined = request.outlined,
               .location = request.location,
               .proc_bind = request.proc_bind,
               .mend_dynamic = icvs.dynamic != 0,
               .shows_affinity = request.shows_affinity,
               .values = plan.values,
               .extra = request.extra,
               .book = plan.record->book.get(),
               .counts = plan.counts,
               .arguments = arguments,
               .may_come_home = plan.may_come_home,
               .allowance = plan.may_lose,
               .reentry = plan.reentry,
               .numbered = plan.numbered});
  // The team is there before its first message: other nodes' threads may ask for something before
  // this node has forked.
  mailbox_.expect_joins(region);
  // Its arguments, which other nodes read first, were kept for the thread that has written them.
  services_.note_pause();
  if (plan.may_come_home) services_.watch_losses();
  tell_region(plan, head, tail);
  if (plan.may_come_home) home_call_->begin(plan.may_lose);
  services_.enter_place(team_.place());
}

// So that nodes need not ask for what the region reads first. Which of these pages are to be given
// back.
PageWindow Node::offer_arguments(const RegionRequest& request, const RegionPlan& plan) {
  const std::span<void* const> words = request.outlined.words;
  if (words.empty()) return {};
  PageWindow window = ArgumentPages::window_of(words, words.data());
  std::uint64_t others = 0;
  for (const NodeShare& share : plan.shares) others |= std::uint64_t{1} << share.node.value;
  others &= ~(std::uint64_t{1} << self().value);
  for (std::uint32_t rest = window.mask; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint64_t>(std::countr_zero(rest));
    const std::uint64_t page = window.first + index * base::kPageSize;
    bool sent = false;
    const ArgumentPages::Way way = argument_pages_.next(page);
    if (way != ArgumentPages::Way::kNone) {
      const bool looks = way == ArgumentPages::Way::kLook;
      const PageOffer offer =
          services_.offer(page, looks ? 0 : others, way == ArgumentPages::Way::kIfAsked);
      if (!looks) sent = argument_pages_.note(page, offer);
    }
    if (!sent) window.mask &= ~(rest & -rest);
  }
  return window;
}

void Node::take_arguments_back(NodeId from, const PageWindow& window) {
  if (window.mask == 0) return;
  services_.take_back(from, window);
  for (std::uint32_t rest = window.mask; rest != 0; rest &= rest - 1) {
    const auto index = static_cast<std::uint64_t>(std::countr_zero(rest));
    argument_pages_.note_given_back(window.first + index * base::kPageSize);
  }
}

void Node::tell_region(const RegionPlan& plan, const RegionHead& head,
                       std::span<const std::byte> tail) {
  const std::span others(plan.shares.begin() + 1, plan.shares.end());
  const auto on_board = [this](const NodeShare& share) { return is_on_board(share.node); };
  const std::size_t size = sizeof head + tail.size();
  static_assert(sizeof head + base::kMaxNodes * sizeof(WireShare) +
                    kMaxRegionWords * sizeof(void*) + kMaxAffinityFormat + kMaxRegionExtra <=
                MeetingBoard::kPayloadSize);
  if (std::ranges::any_of(others, on_board)) {
    // P2: all have joined the last region.
    std::byte* const payload = board_->own_payload().data();
    std::memcpy(payload, &head, sizeof head);
    std::memcpy(payload + sizeof head, tail.data(), tail.size());
  }
  for (const NodeShare& share : others) {
    if (on_board(share)) {
      board_->post_region(share.node, head.region, static_cast<std::uint32_t>(size));
    } else {
      send(share.node, kRegionMessage, fabric::bytes_of(head), tail);
    }
  }
  for (const NodeShare& share : others) {
    if (on_board(share)) board_->ring_if_sleeping(share.node);
  }
}

bool Node::has_joined_on_board(NodeId node) const {
  return is_on_board(node) && board_->has_joined(node, last_region_);
}

bool Node::has_joined(NodeId node) const {
  return has_joined_on_board(node) || mailbox_.has_joined(node);
}

void Node::join_region(const RegionPlan& plan) {
  const std::span others(plan.shares.begin() + 1, plan.shares.end());
  const auto posted = [this](const NodeShare& share) { return has_joined_on_board(share.node); };
  const auto all_have_joined = [&] {
    const std::size_t on_board = std::ranges::count_if(others, posted);
    return on_board + mailbox_.joined() == others.size();
  };
  const Nanos begin = os::monotonic_now();
  if (!await_or_take_home(all_have_joined, "the end of the region on other nodes")) {
    team_.await_guests_end();
    wait_until(all_have_joined, settings_.spin_in_region, "the end of the region on other nodes");
  }
  if (plan.may_come_home) home_call_->end();
  const Nanos joining = os::monotonic_now() - begin;
  if (team_.mends_dynamic()) team_.runtime().set_dynamic(true);
  std::array<NodeTotals, base::kMaxNodes> totals;
  totals[0] = team_.totals();
  for (const NodeShare& share : others) {
    const JoinedBody told = has_joined_on_board(share.node) ? board_->joined_of(share.node)
                                                            : mailbox_.joined_of(share.node);
    totals[share.node.value] = told.totals;
    take_arguments_back(share.node, team_.arguments_among(told.given_back));
  }
  note_shared(plan, {totals.data(), node_count()}, joining);
}

void Node::serve() {
  AMASIA_CHECK(self() != base::kOrigin, "the origin runs main instead");
  thread_context.node = this;
  for (;;) {
    wait_until(
        [&] {
          return mailbox_.has_region() || region_is_posted() || mailbox_.has_ask() ||
                 mailbox_.has_serve_end();
        },
        settings_.spin_between_regions, nullptr);
    if (mailbox_.has_ask()) {
      answer_ask();
      continue;
    }
    if (region_is_posted() && !mailbox_.put_region(board_->region_message())) {
      services_.abort_job(
          fmt::format("the origin has posted a malformed region to node {}", self().value));
    }
    if (!mailbox_.has_region()) return;
    serve_region();
  }
}

bool Node::region_is_posted() const {
  return is_on_board(base::kOrigin) && board_->posted_region() != last_region_;
}

// As in a plain run: libomp gives its threads the forking one's in each region, libgomp's have that
// of the time when they were made.
void Node::adopt_floating_point(const RegionHead& head) {
  const bool is_first = !std::exchange(has_floating_point_control_, true);
  if (is_first || static_cast<Abi>(head.abi) == Abi::kKmpc) {
    os::set_floating_point_control(head.floating_point);
  }
}

void Node::serve_region() {
  Reader reader(mailbox_.region());
  const auto head = reader.take<RegionHead>();
  last_region_ = head.region;
  std::vector<NodeShare>& shares = told_shares_;
  shares.resize(head.share_count);
  std::uint32_t offset = 0;
  std::uint32_t values = 0;
  for (NodeShare& share : shares) {
    const auto wire = reader.take<WireShare>();
    if (wire.node == self().value) values = wire.values;
    share = {NodeId{wire.node}, wire.threads, offset, wire.speed,
             static_cast<loops::Seam>(wire.seam)};
    offset += wire.threads;
  }
  const auto own = std::ranges::find(shares, self(), &NodeShare::node);
  AMASIA_CHECK(own != shares.end(), "the origin tells participants of a region");
  std::vector<void*>& words = told_words_;
  words.resize(head.word_count);
  for (void*& word : words) word = reader.take<void*>();
  if (thread_values_.any()) take_values(*own, values);
  LocalRuntime& local = runtime(static_cast<Abi>(head.abi));
  Icvs icvs = head.icvs;
  icvs.dynamic = 0;
  local.set_icvs(icvs);
  const std::string format = reader.take_text(head.format_size);
  if (format != affinity_format_.get()) {
    local.set_affinity_format(format);
    affinity_format_.set(format);
  }
  team_.begin({.region = head.region,
               .rank = static_cast<std::uint32_t>(own - shares.begin()),
               .abi = static_cast<Abi>(head.abi),
               .runtime = &local,
               .shares = shares,
               .outlined = {reinterpret_cast<void*>(head.function), words},
               .location = reinterpret_cast<const void*>(head.location),
               .proc_bind = head.proc_bind,
               .mend_dynamic = head.icvs.dynamic != 0,
               .shows_affinity = head.shows_affinity != 0,
               .values = head.values,
               .extra = reader.rest(),
               .counts = head.counts != 0,
               .arguments = {head.arguments, head.to_give_back},
               .may_come_home = head.goes_on_at != 0,
               .can_leave = head.goes_on_at == own_code() && services_.can_move_threads(),
               .reentry = static_cast<Reentry>(head.reentry),
               .numbered = {.threads = head.numbered_threads,
                            .extent = head.numbered_extent,
                            .stay = head.numbers_stay != 0}});
  if (head.goes_on_at != 0) services_.watch_losses();
  if (head.to_give_back != 0) services_.handle_messages();  // these pages go ahead of the region
  services_.enter_place(team_.place());
  mailbox_.drop_region();
  services_.enter_region();
  const auto* const function = reinterpret_cast<const void*>(head.function);
  const auto* const location = reinterpret_cast<const void*>(head.location);
  show_region(*record_of(function, static_cast<Abi>(head.abi), location));
  adopt_floating_point(head);
  {
    const PlaceScope place;
    team_.run();
  }
  const bool has_printed = services_.flush_output();
  tell_joined({head.region, team_.give_arguments_back(), team_.totals()}, has_printed);
  // The origin goes on meanwhile.
  services_.enter_place(0);
  unshow_region();
}

// `by_message`: behind the messages that this node has sent to the origin before.
void Node::tell_joined(const JoinedBody& joined, bool by_message) {
  if (by_message || !is_on_board(base::kOrigin)) {
    return send(base::kOrigin, kJoinedMessage, fabric::bytes_of(joined));
  }
  board_->post_joined(joined);
  board_->ring_if_sleeping(base::kOrigin);
}

void Node::await_end() {
  wait_until([this] { return mailbox_.has_serve_end(); }, 0, nullptr);
  services_.leave_job();
}

void Node::shutdown() {
  const ServeEndBody body{};
  on_native_stack([&] {
    for (std::uint32_t node = 1; node < node_count(); ++node) {
      send(NodeId{static_cast<NodeId::representation>(node)}, kServeEndMessage,
           fabric::bytes_of(body));
    }
  });
}

std::vector<RegionRecord> Node::region_records() const {
  std::vector<RegionRecord> records;
  {
    const std::lock_guard lock(records_mutex_);
    for (const auto& [function, record] : records_) records.push_back(*record);
  }
  std::sort(records.begin(), records.end(),
            [](const auto& one, const auto& other) { return one.elapsed_ns > other.elapsed_ns; });
  return records;
}

std::vector<base::RegionStatistics> Node::region_statistics() const {
  std::vector<base::RegionStatistics> regions;
  for (const RegionRecord& record : region_records()) {
    base::RegionStatistics& region = regions.emplace_back(statistics_of(record));
    if (record.book == nullptr) continue;
    region.loops_left_out = record.book->left_out();
    for (const LoopBook::Entry& met : record.book->entries()) {
      std::optional<LoopOutcome> outcome;
      if (work_sharing_ != nullptr) outcome = work_sharing_->outcome_of(record.function, met.code);
      base::LoopStatistics loop = statistics_of(record, met, outcome ? &*outcome : nullptr);
      loop.site = site_of(met.code, runtime(record.abi).source_of(met.place));
      region.loops.push_back(std::move(loop));
    }
  }
  return regions;
}

}  // namespace amasia::omp
