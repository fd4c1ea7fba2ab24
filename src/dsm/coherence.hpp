// SPDX-License-Identifier: Apache-2.0
// The coherence of one node: turns faults, frames and time into events of the protocol, and its
// effects into system calls and frames. No thread and no lock of its own: the engine calls it, one
// thread at a time.
//
// Batches: the effects of a step are compared with those of the step before; where the pages are
// neighbours and the effects equal, they are carried out once for the whole run, effect by effect.
// A page is at most once in a batch, so its effects are done before its next step (rule A of
// protocol/single_writer.hpp).
//
// Messages of a node to itself (its home side and its cache side talk too) go through a queue that
// every entry point empties before it returns.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "dsm/address_space.hpp"
#include "dsm/deadlines.hpp"
#include "dsm/engine.hpp"
#include "dsm/fill_around.hpp"
#include "dsm/lent_pages.hpp"
#include "dsm/load_store.hpp"
#include "dsm/loss_watch.hpp"
#include "dsm/migratory.hpp"
#include "dsm/page_access.hpp"
#include "dsm/page_copies.hpp"
#include "dsm/page_message.hpp"
#include "dsm/page_uses.hpp"
#include "dsm/prefetch.hpp"
#include "dsm/protocol/hold_policy.hpp"
#include "dsm/protocol/single_writer.hpp"
#include "dsm/protocol/turns.hpp"
#include "dsm/recall.hpp"
#include "dsm/stretches.hpp"
#include "dsm/strided_walks.hpp"
#include "dsm/waiting_threads.hpp"

namespace amasia::dsm {

class Coherence {
 public:
  struct Settings {
    std::uint32_t read_ahead_pages = 256;
    Nanos watchdog_period = 5 * base::kSecond;
    PageCount memory_pages = 0;  // 0: no limit
    bool shares_cores = false;   // with other nodes
    const BlockBounds* blocks = nullptr;
    Engine::Observer* observer = nullptr;
  };

  // What is given by reference outlives it.
  static Result<std::unique_ptr<Coherence>> make(AddressSpace& space, PageAccess& access,
                                                 fabric::Fabric& fabric, LossWatch& losses,
                                                 const Settings& settings);

  // Threads of this node wait for these pages; it is at this place of the program (recall.hpp).
  void on_faults(std::span<const Fault> faults, std::uint64_t place, Nanos now);
  // The node comes to a place where it had faults before. False: need not be called for this place
  // before the next fault there.
  bool on_place(std::uint64_t place, Nanos now);
  // At the page's home: gives a read copy to each of `nodes` (a bit for each) that has none, if it
  // can be had at once. None where another node has written the page since the last call, or with
  // `if_asked` where none has asked for it.
  Engine::Offer on_offer(PageIndex page, std::uint64_t nodes, bool if_asked, Nanos now);
  // Drops the copies of `mask` (bit i: page first + i) that were offered and not used for more;
  // which of them. Their homes are to be told, by on_given_back().
  std::uint32_t on_give_back(PageIndex first, std::uint32_t mask, Nanos now);
  // At their home: the node `from` gave these back. What nobody else has may be written here again.
  void on_given_back(NodeId from, PageIndex first, std::uint32_t mask, Nanos now);
  // A frame of type kPageFrame from another node.
  void on_frame(NodeId from, std::span<const std::byte> body, Nanos now);
  // A hint from the program: ask for pages of the run that are not here.
  void on_prefetch(PageRun run, AccessKind access, Nanos now);
  // From now on, or no longer, pages whose home is here and that others own are asked back.
  void on_gather(bool on, Nanos now);
  // Time has passed: look again at held pages that are due, and at faults that wait for long.
  void on_time(Nanos now);
  // Threads have come to a wait for other nodes: gives up what was held for them alone.
  void on_pause(Nanos now);
  // Frames of types kTurnWish (to the origin) and kTurnStretch (from it).
  void on_turn_wish(NodeId from, std::span<const std::byte> body, Nanos now);
  void on_turn_stretch(NodeId from, std::span<const std::byte> body, Nanos now);
  // Frames of types kStretchQuestion (to the node whose heap the page is in) and kStretchAnswer.
  void on_stretch_question(NodeId from, std::span<const std::byte> body, Nanos now);
  void on_stretch_answer(NodeId from, std::span<const std::byte> body, Nanos now);
  bool is_holding() const { return deadlines_.size() > 0; }
  // When on_time() has something to do next; the largest time if never.
  Nanos next_time() const;

  WaitingThreads& waiting() { return waiting_; }
  const WaitingThreads& waiting() const { return waiting_; }
  Statistics statistics() const;

 private:
  using Contents = const std::byte*;  // of the first page of a run, or nullptr

  // A run of pages whose last step had the same effects, not carried out yet.
  template <typename Effects>
  struct Batch {
    PageRun run{};
    PageIndex segment_end{};
    Effects effects;
    Contents contents = nullptr;
  };

  Coherence(AddressSpace& space, PageAccess& access, fabric::Fabric& fabric, LossWatch& losses,
            const Settings& settings);
  Status reserve_tables();

  bool is_home(PageIndex page) const { return space_.home_of(page) == space_.self(); }
  Nanos job_time(Nanos now) const { return now + to_job_time_; }

  // Steps.
  void step_cache(PageIndex page, const protocol::CacheEvent& event, Contents contents);
  void step_home(PageIndex page, const protocol::HomeEvent& event);
  void own_again(PageIndex page);
  void note_fault(const Fault& fault, protocol::CacheState state);
  bool ask_early(PageIndex page, Recall::Want want);
  bool asks_as_writer(const Fault& fault, protocol::CacheState state, std::uint64_t place);
  bool may_ask_ahead() const;  // there is memory for it
  bool ask_for(PageIndex page, bool write);  // false: it is here, or asked for
  void gather();
  void on_record(NodeId from, const Record& record, Contents contents);
  void finish_events();  // carries out what is left, empties the local queue, sends

  // Batches.
  template <typename Effects>
  void append(Batch<Effects>& batch, PageIndex page, Contents contents);
  template <typename Effects>
  void carry_out(Batch<Effects>& batch);
  void execute(const protocol::Effect& effect, PageRun run, Contents contents);
  void copy_in(PageRun run, Contents contents);
  void install(PageRun run, Install access);
  void wake(PageRun run);
  void send(const protocol::Effect& effect, PageRun run);
  void send_contents(NodeId to, Record record, PageRun run);
  void require(int errno_value, std::string_view what, PageRun run);
  void fail(std::string_view sentence);
  void fail_for(NodeId from, std::string_view what);  // what a node did, after its name

  // Walks (coherence_walks.cpp).
  ReadAhead::Plan read_ahead(const Fault& fault, bool as_writer, bool on_its_way);
  void step_ahead(const Fault& fault, bool as_writer, bool on_its_way);
  bool is_trigger(const Fault& fault) const;
  bool find_trigger(PageRun run, PageIndex* trigger) const;
  void read_around(PageIndex page);
  PageIndex end_of_walk(PageIndex page) const;
  bool is_of_heap(PageIndex page) const;
  PageRun stretch_of(PageIndex page) const;
  void find_stretch(PageIndex page);

  // Holding and turns (coherence_hold.cpp).
  bool keep_for_now(PageIndex page, protocol::CacheEventKind revocation);
  void consider_pending(PageRun run);
  void measure_wait(const WaitingThread& thread, Nanos idle_before);
  void collect_around(PageIndex page);
  void tell_wish(std::optional<Nanos> wish);
  void wish_for_turns(NodeId from, Nanos length);
  void release_holds();
  void report_long_waits();

  // Memory (coherence_memory.cpp).
  bool limited() const { return settings_.memory_pages > 0; }
  PageCount margin() const;
  PageCount copies_allowed() const;
  bool short_of_memory() const;
  void count_memory();
  void tell_overrun();
  bool make_room();
  bool evict(PageCount wanted);
  void free_lost(PageRun run);
  void free_memory(PageRun run);

  AddressSpace& space_;
  PageAccess& access_;
  const Settings settings_;
  fabric::Fabric& fabric_;  // for messages about turns; those about pages go by outbox_
  LossWatch& losses_;
  const protocol::HoldSettings hold_settings_;
  protocol::TurnSchedule turns_;
  protocol::TurnMeter turn_meter_;
  protocol::TurnArbiter turn_arbiter_;  // at the origin
  const Nanos to_job_time_;  // the job's clock minus CLOCK_MONOTONIC

  os::ReservedArray<protocol::CachePage> pages_;
  os::ReservedArray<protocol::DirectoryEntry> directory_;  // entries of pages whose home is here
  Outbox outbox_;
  MigratoryPages migratory_;
  LoadStore load_store_;
  ReadAhead read_ahead_;
  StridedWalks strided_walks_;
  Stretches stretches_;
  FillAround fill_around_;
  LentPages lent_;
  PageRun gathering_{};  // what of a block is still to be asked back
  bool gathers_ = false;
  std::optional<PageIndex> gathered_last_;  // the last page that was asked back
  Nanos next_gather_ = std::numeric_limits<Nanos>::max();  // where it was cut short
  Recall recall_;
  Deadlines deadlines_;
  PageUses uses_;
  PageCopies copies_;
  WaitingThreads waiting_;

  Batch<protocol::CacheEffects> cache_batch_;
  Batch<protocol::HomeEffects> home_batch_;
  protocol::CacheEffects cache_effects_;
  protocol::HomeEffects home_effects_;
  bool install_woke_all_ = false;  // of the run at hand: no further wake-up is needed

  static constexpr std::size_t kLocalQueue = std::size_t{1} << 16;
  os::ReservedArray<Record> local_;  // a ring
  std::uint64_t local_head_ = 0;
  std::uint64_t local_tail_ = 0;
  os::ReservedArray<PageIndex> releases_;  // pages whose hold ends, to be stepped
  std::size_t release_count_ = 0;

  Nanos now_ = 0;  // of the entry point at work
  Nanos last_install_ = 0;
  Nanos next_watch_ = 0;

  PageCount home_pages_ = 0;       // with memory, when last counted
  PageCount copies_at_count_ = 0;  // how many copies there were then
  Nanos counted_at_ = 0;
  bool overrun_told_ = false;
  PageCount asked_ = 0;  // evictions that the homes were asked for lately, and have not made yet
  Nanos asked_at_ = 0;
  Nanos next_look_ = std::numeric_limits<Nanos>::max();  // at what is to be evicted

  bool failed_ = false;
  Statistics counts_;
};

}  // namespace amasia::dsm
