// SPDX-License-Identifier: Apache-2.0
#include "dsm/coherence.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace amasia::dsm {
namespace {

using protocol::CacheEvent;
using protocol::CacheEventKind;
using protocol::CachePage;
using protocol::CacheState;

constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
// From so many pages on one system call is cheaper than the faults that it saves.
constexpr PageCount kPopulate = 4;
// A walk that goes further is not asked for when a place is entered: it would be in the way of all
// that is needed before, and asks for itself early enough.
constexpr PageCount kLongWalk = 16;

bool is_on_its_way(CacheState state) {
  return state != CacheState::kInvalid && state != CacheState::kShared &&
         state != CacheState::kExclusive;
}
// A hint larger than this is cut: it would keep the engine from its faults.
constexpr PageCount kMaxPagesInHint = 4096;
// Asked back at a time: a fault waits for what is on its way, 2 ms where a link has 200 MB/s.
constexpr PageCount kGatheredAtOnce = 128;
// Looks at what may have to be asked back before faults and messages have their turn again.
constexpr PageCount kGatherLooks = 8192;
// A step seldom finds more pages whose hold ends; the bound is checked.
constexpr std::size_t kMaxReleases = std::size_t{1} << 20;

PageIndex page_at(PageRun run, PageCount i) { return PageIndex{run.first.value + i}; }

bool is_revocation(CacheEventKind kind) {
  return kind >= CacheEventKind::kFetchRead && kind <= CacheEventKind::kInvalidate;
}

}  // namespace

Coherence::Coherence(AddressSpace& space, PageAccess& access, fabric::Fabric& fabric,
                     LossWatch& losses, const Settings& settings)
    : space_(space),
      access_(access),
      settings_(settings),
      fabric_(fabric),
      losses_(losses),
      turns_(space.node_count()),
      turn_arbiter_(space.node_count()),
      to_job_time_(os::realtime_now() - os::monotonic_now()),
      outbox_(fabric, space),
      read_ahead_(settings.read_ahead_pages),
      strided_walks_(settings.read_ahead_pages > 0) {}

Result<std::unique_ptr<Coherence>> Coherence::make(AddressSpace& space, PageAccess& access,
                                                   fabric::Fabric& fabric, LossWatch& losses,
                                                   const Settings& settings) {
  std::unique_ptr<Coherence> made(new Coherence(space, access, fabric, losses, settings));
  const Status reserved = made->reserve_tables();
  if (!reserved.ok()) return reserved.error();
  return made;
}

Status Coherence::reserve_tables() {
  const auto take = [](auto& table, auto made) -> Status {
    if (!made.ok()) return made.error();
    table = std::move(made).value();
    return base::ok();
  };
  const PageCount pages = space_.page_limit();
  Status status = take(pages_, decltype(pages_)::make(pages));
  if (status.ok()) status = take(directory_, decltype(directory_)::make(pages));
  if (status.ok()) status = losses_.reserve(pages);
  if (status.ok()) status = take(deadlines_, Deadlines::make());
  if (status.ok()) status = take(uses_, PageUses::make());
  if (status.ok()) status = take(copies_, PageCopies::make(pages));
  if (status.ok()) status = take(lent_, LentPages::make(pages));
  if (status.ok()) status = take(local_, decltype(local_)::make(kLocalQueue));
  if (status.ok()) status = take(releases_, decltype(releases_)::make(kMaxReleases));
  return status;
}

// ---- what comes in -------------------------------------------------------------------------

void Coherence::on_faults(std::span<const Fault> faults, std::uint64_t place, Nanos now) {
  now_ = now;
  for (const Fault& fault : faults) {
    const CacheState state = pages_[fault.page.value].state(is_home(fault.page));
    note_fault(fault, state);
    const bool as_writer = asks_as_writer(fault, state, place);
    if (state == CacheState::kInvalid && !as_writer) {
      recall_.on_fault(place, fault.page, Recall::Want::kRead);
    } else if (state == CacheState::kShared && fault.write) {
      recall_.on_fault(place, fault.page, Recall::Want::kOwn);
    }
    const bool owns = fault.write || (as_writer && state == CacheState::kInvalid);
    step_cache(fault.page, {owns ? CacheEventKind::kWriteFault : CacheEventKind::kReadFault},
               nullptr);
    // Exclusive: the page is here, and its neighbours are none of this fault's business, unless it
    // was left out of the view to tell how far a walk has come.
    if (may_ask_ahead() && (state != CacheState::kExclusive || is_trigger(fault))) {
      const ReadAhead::Plan plan = read_ahead(fault, as_writer, is_on_its_way(state));
      const bool walks = plan.run.count > 0;
      if (!plan.is_followed || strided_walks_.is_trigger(fault.page)) {
        step_ahead(fault, as_writer, is_on_its_way(state));
      }
      if (!walks && as_writer) collect_around(fault.page);
      if (!walks && !as_writer && state != CacheState::kShared) read_around(fault.page);
    }
  }
  finish_events();
}

// Also to read, if a store is likely to follow.
bool Coherence::asks_as_writer(const Fault& fault, CacheState state, std::uint64_t place) {
  if (fault.write) {
    if (state != CacheState::kShared) return true;
    migratory_.on_upgrade(fault.page, now_);
    const PageUse* const use = uses_.find(fault.page);
    const Nanos used = use == nullptr ? kNever : cpu_used_since_install(*use);
    load_store_.on_store(place, fault.thread_id, fault.page, used);
    return true;
  }
  if (state != CacheState::kInvalid) {  // the walk goes on with pages that are not here
    return load_store_.expects_store(place, fault.thread_id, fault.page);
  }
  // Both are to hear of it.
  const bool migrates = migratory_.on_read_fault(fault.page, now_);
  return load_store_.on_load(place, fault.thread_id, fault.page) || migrates;
}

bool Coherence::on_place(std::uint64_t place, Nanos now) {
  now_ = now;
  if (!may_ask_ahead()) return true;
  const bool expects = recall_.enter(
      place, [this](PageIndex page, Recall::Want want) { return ask_early(page, want); });
  finish_events();
  return expects;
}

bool Coherence::ask_early(PageIndex page, Recall::Want want) {
  const bool write = want == Recall::Want::kOwn;
  const CacheState state = pages_[page.value].state(is_home(page));
  if (state != (write ? CacheState::kShared : CacheState::kInvalid)) return false;
  if (read_ahead_.reach_from(page, write) > kLongWalk) return false;
  ++counts_.pages_prefetched;
  if (write) migratory_.on_upgrade(page, now_);  // which it will not hear of by a fault
  step_cache(page, {write ? CacheEventKind::kWriteFault : CacheEventKind::kPrefetchRead}, nullptr);
  read_ahead({page, 0, write}, write, false);
  return true;
}

void Coherence::note_fault(const Fault& fault, CacheState state) {
  const bool has_copy = state == CacheState::kShared || state == CacheState::kUpgradePending;
  const FaultKind kind = !fault.write ? FaultKind::kRead
                         : has_copy   ? FaultKind::kUpgrade
                                      : FaultKind::kWrite;
  if (waiting_.count() == 0) next_watch_ = now_ + settings_.watchdog_period;
  const std::uint32_t index = waiting_.slot_of(fault.thread_id);
  const PageUse* const last = uses_.find_last(fault.page);
  const bool fought_for = last != nullptr && is_in_use_by(*last, waiting_.slot(index));
  const WaitingThread thread{
      .page = fault.page,
      .since = now_,
      .thread_id = fault.thread_id,
      .slot = index,
      .kind = kind,
      .had_at = fought_for ? last->installed_at : 0,
      .was_lost = losses_.was_lost(fault.page)};
  if (!waiting_.add(thread)) return;
  if (state == CacheState::kExclusive || (has_copy && !fault.write)) {
    ++counts_.stale_events;
    PageUse* const use = uses_.find(fault.page);
    if (use != nullptr && use->held && fault.write) protocol::note_probe_hit(use->hold);
    return;
  }
  ThreadSlot& slot = waiting_.slot(index);
  std::atomic<std::uint64_t>& counter = kind == FaultKind::kRead    ? slot.faults_read
                                        : kind == FaultKind::kWrite ? slot.faults_write
                                                                    : slot.faults_upgrade;
  // Relaxed, one writer: see ThreadSlot.
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  ++(kind == FaultKind::kRead    ? counts_.faults_read
     : kind == FaultKind::kWrite ? counts_.faults_write
                                 : counts_.faults_upgrade);
}

bool Coherence::may_ask_ahead() const {
  return !limited() || copies_.count() < copies_allowed();
}

// Who writes what has been read would upgrade page by page.
bool Coherence::ask_for(PageIndex page, bool write) {
  const CacheState state = pages_[page.value].state(is_home(page));
  if (state == CacheState::kInvalid) {
    step_cache(page, {write ? CacheEventKind::kPrefetchWrite : CacheEventKind::kPrefetchRead},
               nullptr);
  } else if (write && state == CacheState::kShared) {
    step_cache(page, {CacheEventKind::kWriteFault}, nullptr);
  } else {
    return false;
  }
  ++counts_.pages_prefetched;
  return true;
}

void Coherence::on_gather(bool on, Nanos now) {
  now_ = now;
  gathers_ = on;
  next_gather_ = kNever;
  if (on) gather();
  finish_events();
}

// Asks for more once the last page that was asked for is here. What is shared stays: it can be read
// here, and perhaps nobody writes it.
void Coherence::gather() {
  next_gather_ = kNever;
  if (gathered_last_.has_value()) {
    const CacheState state = pages_[gathered_last_->value].state(true);
    if (state == CacheState::kWritePending || state == CacheState::kWritePendingData ||
        state == CacheState::kWritePendingGrant) {
      return;
    }
    gathered_last_.reset();
  }
  PageCount looks = 0;
  for (PageCount asked = 0; gathers_ && asked < kGatheredAtOnce; ++looks) {
    if (looks == kGatherLooks) {
      next_gather_ = now_;
      return;
    }
    if (gathering_.count == 0) {
      const std::optional<PageRun> block = lent_.take();
      if (!block.has_value()) {
        gathers_ = false;
        return;
      }
      gathering_ = *block;
    }
    const PageIndex page = gathering_.first;
    gathering_ = {page_at(gathering_, 1), gathering_.count - 1};
    if (!space_.is_valid(page) || !is_home(page)) continue;  // in a block with some that are
    if (pages_[page.value].state(true) != CacheState::kInvalid) continue;
    ask_for(page, true);
    gathered_last_ = page;
    ++asked;
  }
}

void Coherence::on_prefetch(PageRun run, AccessKind access, Nanos now) {
  now_ = now;
  run = space_.within_segment({run.first, std::min(run.count, kMaxPagesInHint)});
  const CacheEventKind kind =
      access == AccessKind::kRead ? CacheEventKind::kPrefetchRead : CacheEventKind::kPrefetchWrite;
  for (PageCount i = 0; i < run.count; ++i) {
    const PageIndex page = page_at(run, i);
    if (pages_[page.value].state(is_home(page)) != CacheState::kInvalid) continue;
    ++counts_.pages_prefetched;
    step_cache(page, {kind}, nullptr);
  }
  finish_events();
}

Engine::Offer Coherence::on_offer(PageIndex page, std::uint64_t nodes, bool if_asked, Nanos now) {
  now_ = now;
  AMASIA_CHECK(is_home(page), "a page is offered by its home");
  protocol::DirectoryEntry& entry = directory_[page.value];
  const bool owned = std::exchange(entry.owned_elsewhere, 0) != 0;
  const bool asked = std::exchange(entry.asked_elsewhere, 0) != 0;
  if (owned || (if_asked && !asked)) return {0, asked && !owned};
  std::uint64_t sent = 0;
  for (std::uint64_t rest = nodes; rest != 0; rest &= rest - 1) {
    const NodeId to{static_cast<NodeId::representation>(std::countr_zero(rest))};
    cache_effects_.clear();
    if (!protocol::offer(entry, pages_[page.value], space_.self(), to, cache_effects_)) continue;
    append(cache_batch_, page, nullptr);
    carry_out(cache_batch_);
    sent |= std::uint64_t{1} << to.value;
    ++counts_.pages_offered;
  }
  finish_events();
  return {sent, asked};
}

std::uint32_t Coherence::on_give_back(PageIndex first, std::uint32_t mask, Nanos now) {
  now_ = now;
  std::uint32_t given = 0;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const PageIndex page{first.value + static_cast<std::uint64_t>(std::countr_zero(rest))};
    if (pages_[page.value].offered == 0) continue;
    step_cache(page, {CacheEventKind::kGiveBack}, nullptr);
    given |= rest & -rest;
  }
  finish_events();
  return given;
}

void Coherence::on_given_back(NodeId from, PageIndex first, std::uint32_t mask, Nanos now) {
  now_ = now;
  for (std::uint32_t rest = mask; rest != 0; rest &= rest - 1) {
    const PageIndex page{first.value + static_cast<std::uint64_t>(std::countr_zero(rest))};
    step_home(page, {protocol::MessageKind::kGivenBack, from});
    own_again(page);
  }
  finish_events();
}

// Without a fault of the thread that writes it next.
void Coherence::own_again(PageIndex page) {
  const protocol::DirectoryEntry& entry = directory_[page.value];
  const bool alone = entry.idle() && entry.sharers == std::uint64_t{1} << space_.self().value;
  if (!alone || pages_[page.value].state(true) != CacheState::kShared) return;
  step_cache(page, {CacheEventKind::kWriteFault}, nullptr);
}

void Coherence::on_frame(NodeId from, std::span<const std::byte> body, Nanos now) {
  now_ = now;
  ++counts_.messages_in;
  const std::optional<Frame> frame = decode_frame(body, space_);
  if (!frame.has_value()) {
    return fail_for(from, "sent a malformed page message");
  }
  counts_.bytes_in += frame->contents.size();
  for (const Record& record : frame->records) on_record(from, record, frame->contents.data());
  if (gathers_) gather();
  finish_events();
}

void Coherence::on_record(NodeId from, const Record& record, Contents contents) {
  const PageRun run = record.run();
  if (protocol::is_for_home(record.message())) {
    for (PageCount i = 0; i < run.count; ++i) {
      step_home(page_at(run, i), {record.message(), from});
    }
    lent_.note(run);
    return carry_out(home_batch_);
  }
  const bool with_contents = protocol::carries_page(record.message());
  if (with_contents) counts_.pages_in += run.count;
  CacheEvent event =
      protocol::cache_event(record.message(), NodeId{record.requester}, /*hold=*/false);
  for (PageCount i = 0; i < run.count; ++i) {
    const PageIndex page = page_at(run, i);
    if (is_revocation(event.kind)) event.hold = keep_for_now(page, event.kind);
    const bool none = !with_contents || record.all_zero != 0;
    step_cache(page, event, none ? nullptr : contents + i * base::kPageSize);
  }
  // The two sides share the lanes to other nodes, so what one has to say must not wait here while
  // the other speaks.
  carry_out(cache_batch_);
}

void Coherence::on_time(Nanos now) {
  now_ = now;
  PageIndex page;
  while (deadlines_.pop(now, &page)) {
    const CachePage& state = pages_[page.value];
    if (!state.has_pending() || keep_for_now(page, state.pending())) continue;
    releases_[release_count_++] = page;
  }
  if (settings_.watchdog_period > 0 && waiting_.count() > 0 && now >= next_watch_) {
    report_long_waits();
    next_watch_ = now + settings_.watchdog_period;
  }
  if (next_gather_ <= now) gather();
  finish_events();
}

Nanos Coherence::next_time() const {
  const bool watching = settings_.watchdog_period > 0 && waiting_.count() > 0;
  return std::min({deadlines_.next(), watching ? next_watch_ : kNever, next_look_, next_gather_});
}

// ---- steps and batches ---------------------------------------------------------------------

void Coherence::step_cache(PageIndex page, const CacheEvent& event, Contents contents) {
  CachePage& entry = pages_[page.value];
  const bool was_pending = entry.has_pending();
  cache_effects_.clear();
  protocol::step_cache(entry, {space_.self(), space_.home_of(page)}, event, cache_effects_);
  if (was_pending && !entry.has_pending()) {
    deadlines_.remove(page);
    uses_.note_loss(page);
  }
  append(cache_batch_, page, contents);
}

void Coherence::step_home(PageIndex page, const protocol::HomeEvent& event) {
  home_effects_.clear();
  protocol::step_home(directory_[page.value], space_.self(), event, home_effects_);
  append(home_batch_, page, nullptr);
}

template <typename Effects>
void Coherence::append(Batch<Effects>& batch, PageIndex page, Contents contents) {
  const Effects& effects = [this]() -> const Effects& {
    if constexpr (std::is_same_v<Effects, protocol::CacheEffects>) {
      return cache_effects_;
    } else {
      return home_effects_;
    }
  }();
  const bool neighbour =
      batch.run.count > 0 && page.value == batch.run.first.value + batch.run.count &&
      page < batch.segment_end && (contents == nullptr) == (batch.contents == nullptr);
  if (neighbour &&
      std::equal(effects.begin(), effects.end(), batch.effects.begin(), batch.effects.end())) {
    ++batch.run.count;
    return;
  }
  carry_out(batch);
  if (effects.empty()) return;
  const PageRun segment = space_.within_segment({page, space_.page_limit()});
  batch.run = {page, 1};
  batch.segment_end = page_at(segment, segment.count);
  batch.effects = effects;
  batch.contents = contents;
}

template <typename Effects>
void Coherence::carry_out(Batch<Effects>& batch) {
  if (batch.run.count == 0) return;
  // Emptied first: executing an effect may step other pages.
  const PageRun run = batch.run;
  batch.run.count = 0;
  const Effects effects = batch.effects;
  install_woke_all_ = false;
  bool unmapped = false;
  for (const protocol::Effect& effect : effects) {
    unmapped = unmapped || effect.kind == protocol::EffectKind::kUnmap;
    execute(effect, run, batch.contents);
  }
  if (unmapped) free_lost(run);
}

void Coherence::finish_events() {
  for (;;) {
    carry_out(cache_batch_);
    carry_out(home_batch_);
    if (release_count_ > 0) {
      release_holds();
    } else if (local_head_ != local_tail_) {
      const Record record = local_[local_head_++ % kLocalQueue];
      on_record(space_.self(), record, nullptr);
    } else if (!make_room()) {
      break;
    }
  }
  outbox_.flush();
}

void Coherence::release_holds() {
  for (std::size_t i = 0; i < release_count_; ++i) {  // more may come meanwhile
    step_cache(releases_[i], {CacheEventKind::kReleaseHold}, nullptr);
  }
  release_count_ = 0;
}

// ---- effects -------------------------------------------------------------------------------

void Coherence::execute(const protocol::Effect& effect, PageRun run, Contents contents) {
  switch (effect.kind) {
    case protocol::EffectKind::kProtect:
      losses_.note_loss(run);
      return require(access_.protect(run), "protect", run);
    case protocol::EffectKind::kUnmap:
      losses_.note_loss(run);
      counts_.pages_invalidated += run.count;
      return require(access_.unmap(run), "unmap", run);
    case protocol::EffectKind::kCopyOut:
      return;  // sent from the alias: nothing can change there before the kSend that follows
    case protocol::EffectKind::kSend:
      return send(effect, run);
    case protocol::EffectKind::kCopyIn:
      return copy_in(run, contents);
    case protocol::EffectKind::kInstallRead:
      return install(run, Install::kReadOnly);
    case protocol::EffectKind::kInstallWrite:
      return install(run, Install::kWritable);
    case protocol::EffectKind::kWake:
      return wake(run);
    case protocol::EffectKind::kRevokePending:
      return consider_pending(run);
  }
  AMASIA_CHECK(false, "an effect that the engine does not know");
}

void Coherence::copy_in(PageRun run, Contents contents) {
  std::byte* const to = space_.alias_of(run.first);
  const Bytes size = run.count * base::kPageSize;
  // Where the run was never written on this node, each page would cost a fault of this thread.
  if (run.count >= kPopulate) os::populate_pages(to, size);
  if (contents == nullptr) {
    std::fill_n(to, size, std::byte{0});
  } else {
    std::copy_n(contents, size, to);
  }
  if (limited() && !is_home(run.first)) copies_.note(run);
}

void Coherence::install(PageRun run, Install access) {
  bool all_woken = true;
  while (run.count > 0) {
    PageRun part = run;
    PageCount left_out = 0;
    PageIndex trigger;
    // A page that read-ahead wants to hear of stays out of the view, unless a thread wants it now.
    if (find_trigger(run, &trigger) && !waiting_.any({trigger, 1})) {
      part.count = trigger.value - run.first.value;
      left_out = 1;
    }
    if (part.count > 0) {
      bool woke = false;
      require(access_.install(part, access, &woke), "install", part);
      all_woken = all_woken && woke;
    }
    run.first = page_at(part, part.count + left_out);
    run.count -= part.count + left_out;
  }
  install_woke_all_ = all_woken;
}

void Coherence::wake(PageRun run) {
  if (!install_woke_all_) require(access_.wake(run), "wake", run);
  std::array<WaitingThread, 8> done;
  std::size_t count = 0;
  do {
    count = waiting_.finish(run, os::monotonic_now(), done);
    for (std::size_t i = 0; i < count; ++i) {
      last_install_ = now_;
      if (done[i].was_lost) losses_.add_wait(now_ - done[i].since);
      const Nanos cpu = std::max<Nanos>(os::thread_cpu_time(done[i].thread_id), 0);
      const Nanos idle_before = waiting_.note_served(done[i], now_, cpu);
      if (done[i].had_at != 0) measure_wait(done[i], settings_.shares_cores ? idle_before : 0);
      PageUse* use = uses_.find(done[i].page);
      if (use != nullptr && use->held) continue;  // a stale fault, or the answer to a probe
      if (use == nullptr || use->installed_at != job_time(now_)) {
        use = uses_.renew(done[i].page, job_time(now_));
      }
      if (use == nullptr) continue;
      const auto free = std::find(use->thread_ids.begin(), use->thread_ids.end(), 0);
      if (free == use->thread_ids.end()) {
        use->unwatched = true;
        continue;
      }
      const auto at = static_cast<std::size_t>(free - use->thread_ids.begin());
      const ThreadSlot& slot = waiting_.slot(done[i].slot);
      use->thread_ids[at] = done[i].thread_id;
      use->cpu_at_install[at] = cpu;
      use->slots[at] = &slot;
      use->pauses_at_install[at] = slot.pauses.load(std::memory_order_relaxed);
    }
  } while (count == done.size());
}

void Coherence::send(const protocol::Effect& effect, PageRun run) {
  const NodeId to{effect.to};
  if (effect.message == protocol::MessageKind::kGivenBack) return;  // the caller tells the home
  Record record{.first_page = run.first.value,
                .page_count = static_cast<std::uint32_t>(run.count),
                .kind = static_cast<std::uint8_t>(effect.message),
                .requester = effect.requester};
  const bool with_contents = protocol::carries_page(effect.message);
  if (to == space_.self()) {
    AMASIA_CHECK(!with_contents, "a node sends a page to itself");
    AMASIA_CHECK(local_tail_ - local_head_ < kLocalQueue, "the local queue is full");
    local_[local_tail_++ % kLocalQueue] = record;
  } else if (with_contents) {
    send_contents(to, record, run);
  } else {
    outbox_.add(to, record);
  }
}

void Coherence::send_contents(NodeId to, Record record, PageRun run) {
  const auto is_zero = [this](PageIndex page) {
    const auto* const words = reinterpret_cast<const std::uint64_t*>(space_.alias_of(page));
    return std::all_of(words, words + base::kPageSize / sizeof *words,
                       [](std::uint64_t word) { return word == 0; });
  };
  for (PageCount begin = 0; begin < run.count;) {
    const bool zero = is_zero(page_at(run, begin));
    PageCount end = begin + 1;
    while (end < run.count && end - begin < kMaxPagesWithContents &&
           is_zero(page_at(run, end)) == zero) {
      ++end;
    }
    record.first_page = run.first.value + begin;
    record.page_count = static_cast<std::uint32_t>(end - begin);
    record.all_zero = zero ? 1 : 0;
    const Bytes size = zero ? 0 : (end - begin) * base::kPageSize;
    outbox_.add_with_contents(to, record, {space_.alias_of(page_at(run, begin)), size});
    counts_.pages_out += end - begin;
    counts_.bytes_out += size;
    begin = end;
  }
}

void Coherence::require(int errno_value, std::string_view what, PageRun run) {
  if (errno_value == 0) return;
  char sentence[160];
  const auto end = fmt::format_to_n(sentence, sizeof sentence,
                                    "cannot {} {} pages of managed memory at {}: errno {}", what,
                                    run.count, fmt::ptr(space_.address_of(run.first)), errno_value);
  fail({sentence, std::min(end.size, sizeof sentence)});
}

void Coherence::fail_for(NodeId from, std::string_view what) {
  char sentence[96];
  const auto end = fmt::format_to_n(sentence, sizeof sentence, "node {} {}", from.value, what);
  fail({sentence, std::min(end.size, sizeof sentence)});
}

void Coherence::fail(std::string_view sentence) {
  if (failed_) return;
  failed_ = true;
  base::log_line(base::LogLevel::kError, "{}", sentence);
  AMASIA_CHECK(settings_.observer != nullptr, "the engine failed and nobody is told");
  settings_.observer->engine_failed(sentence);
}

Statistics Coherence::statistics() const {
  Statistics result = counts_;
  result.stall_ns = waiting_.stall_ns();
  result.messages_out = outbox_.frames_sent();
  return result;
}

}  // namespace amasia::dsm
