// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/node_process.hpp"

#include <malloc.h>
#include <strings.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <thread>

#include "omp/abi/runtimes.hpp"
#include "omp/launch/image.hpp"
#include "omp/launch/main_stack.hpp"
#include "omp/launch/mapping_calls.hpp"
#include "omp/launch/movable_threads.hpp"
#include "omp/launch/program_thread_locals.hpp"
#include "omp/launch/stack_bounds.hpp"
#include "omp/real.hpp"
#include "omp/region/region_statistics.hpp"
#include "omp/region/thread_number.hpp"

namespace amasia::omp {
namespace {

// More than the threads of a node, their stacks and the runtime's mappings take; 63 times it fits
// between managed memory and the libraries.
constexpr Bytes kAddressGap = 4 * base::kGiB;
constexpr int kMostArenas = 64;
// How long the origin waits at the end for what other nodes still have to say.
constexpr Nanos kLastWordsTimeout = 2 * base::kSecond;

// The engine's helper object of a thread, which lives from begin_help to end_help.
struct alignas(dsm::Engine::Helping) HelpingMemory {
  std::byte bytes[sizeof(dsm::Engine::Helping)];
};
thread_local HelpingMemory helping_memory;
thread_local dsm::Engine::Helping* helping = nullptr;
thread_local dsm::ThreadSlot* thread_slot = nullptr;
thread_local bool ending_for_another_node = false;

std::byte* pointer(std::uintptr_t address) { return reinterpret_cast<std::byte*>(address); }

// With slowed links nodes meet by message too: what they post in memory would come at once.
bool nodes_share_memory(const base::Options& options) {
  return fabric::may_share_memory(options) && options.link.empty();
}

std::span<const std::byte> bytes_of_text(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::string_view text_of_bytes(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The user has said how many threads there are to be.
bool environment_fixes_teams() {
  const bool libomp = find_real("__kmpc_fork_call") != nullptr;
  if (environment_sets_threads(libomp ? Abi::kKmpc : Abi::kGomp)) return true;
  const char* const dynamic = std::getenv("OMP_DYNAMIC");
  return dynamic != nullptr && ::strcasecmp(dynamic, "false") == 0;
}

// Of a node that --emulate gives a part of a core.
loops::CpuLimit limit_of(double share) {
  if (share >= 1) return {};
  return {.cores = share, .period = os::quota_of(share).period_us * base::kMicrosecond};
}

}  // namespace

NodeProcess::NodeProcess(Process& owner)
    : process_(owner),
      origin_(owner.space.self() == base::kOrigin),
      thread_locals_(thread_locals_of(owner.objects)),
      movable_threads_(movable_threads(owner.objects)),
      team_stacks_(pointer(plan_stacks(owner.space.stacks(owner.space.self())).teams.begin),
                   plan_stacks(owner.space.stacks(owner.space.self())).teams.size(),
                   managed_stack_size(true)) {
  lead_mapping_calls_here(owner.objects);
}

NodeProcess::~NodeProcess() = default;

Result<std::unique_ptr<NodeProcess>> NodeProcess::start(Process& owner) {
  AMASIA_CHECK(owner.membership != nullptr, "a node has joined its launcher");
  std::unique_ptr<NodeProcess> node(new NodeProcess(owner));
  if (const Status connected = node->connect(); !connected.ok()) return connected.error();
  node->make_node();
  if (const Status shared = node->share_globals(); !shared.ok()) return shared.error();
  if (const Status running = node->run_engine(); !running.ok()) return running.error();
  if (const Status slowed = node->slow_program(); !slowed.ok()) return slowed.error();
  node->brief_calibration_->begin_to_answer();
  if (node->origin_) node->find_calibration();
  if (node->origin_) node->find_profile();
  owner.objects.settle();
  std::array<int, 2 * kStreams> outputs{};
  if (node->source_ != nullptr) outputs = node->source_->last_words();
  owner.membership->ready(node->source_ != nullptr ? std::span<const int>(outputs)
                                                   : std::span<const int>());
  return node;
}

Status NodeProcess::connect() {
  if (nodes_share_memory(options())) {
    board_ =
        std::make_unique<MeetingBoard>(process_.membership->common_memory(), process_.space.self());
    board_->attend(os::allowed_cores());
  }
  auto bootstrap = fabric::connect_bootstrap(process_.membership->take_bootstrap());
  if (!bootstrap.ok()) return bootstrap.error();
  bootstrap_ = std::move(bootstrap).value();
  if (const Status same = agree_on_image(*bootstrap_); !same.ok()) return same.error();
  auto fabric = fabric::connect_job(*bootstrap_, options());
  if (!fabric.ok()) return fabric.error();
  fabric_ = std::move(fabric).value();
  fabric_->set_peer_lost_handler(this);
  fabric_->set_handler(kProcessFirst, kProcessLast, this);
  brief_calibration_ =
      std::make_unique<BriefCalibration>(*fabric_, *this, process_.membership->cpu_group());
  delegation_ = delegate::make_delegation(*fabric_, options().watchdog_s * base::kSecond);
  foreign_blocks_ = std::make_unique<dsm::ForeignBlocks>(process_.space, process_.heap, *fabric_);
  if (origin_) {
    sink_ = std::make_unique<OutputSink>(*fabric_);
  } else {
    auto source = OutputSource::redirect(*fabric_);
    if (!source.ok()) return source.error();
    source_ = std::move(source).value();
    delegation_->set_abort_note([this] { note_own_signal(SIGABRT); });
  }
  return base::ok();
}

Status NodeProcess::agree_on_image(fabric::Bootstrap& bootstrap) {
  const std::string mine = describe_image(process_.objects);
  if (const Status put = bootstrap.put("image", bytes_of_text(mine)); !put.ok()) {
    return put.error();
  }
  const auto chosen = static_cast<std::uint32_t>(options().threads);
  const std::uint32_t cores = chosen != 0 ? chosen : os::allowed_core_count();
  const std::string about = machine::encode(machine::identify_node(cores));
  if (const Status put = bootstrap.put("node", bytes_of_text(about)); !put.ok()) {
    return put.error();
  }
  if (const Status met = bootstrap.fence(start_timeout()); !met.ok()) return met.error();
  if (origin_) return base::ok();
  auto theirs = bootstrap.get(base::kOrigin, "image");
  if (!theirs.ok()) return theirs.error();
  return compare_images(mine, text_of_bytes(theirs.value()), base::kOrigin);
}

std::vector<double> NodeProcess::core_speeds() const {
  const bool fixed = !options().core_speeds.empty();
  if (!fixed && options().emulate.empty()) return std::vector<double>(fabric_->node_count(), 1.0);
  const auto told =
      fixed ? base::parse_numbers(options().core_speeds, 0, std::numeric_limits<double>::max())
            : base::parse_shares(options().emulate);
  AMASIA_CHECK(told && told->size() == fabric_->node_count(),
               "the launcher has seen that there is a number for each node");
  return *told;
}

void NodeProcess::make_node() {
  NodeSettings settings;
  settings.spin_between_regions = options().spin_us * base::kMicrosecond;
  if (!process_.membership->cpu_group().empty()) {
    // On a slower core a wait would take as long. Here it would use up what is meant for work.
    settings.spin_in_region = settings.spin_between_regions = 0;
  }
  settings.watchdog = options().watchdog_s * base::kSecond;
  for (std::uint16_t i = 0; i < fabric_->node_count(); ++i) {
    machine::NodeIdentity about;
    if (const auto told = bootstrap_->get(NodeId{i}, "node"); told.ok()) {
      auto decoded = machine::decode_node(text_of_bytes(told.value()));
      if (decoded.ok()) about = std::move(decoded).value();
    }
    settings.capacity.push_back(about.cores);
    if (origin_) identity_.nodes.push_back(std::move(about));
  }
  settings.share = options().share;
  settings.display_affinity = process_.displays_affinity;
  settings.counters.least_descriptor = first_own_descriptor(origin_);
  settings.fixed_speeds = !options().core_speeds.empty();
  settings.core_speeds = core_speeds();
  settings.told_speeds = settings.fixed_speeds || !options().emulate.empty();
  if (const auto slowed = base::parse_shares(options().emulate); slowed) {
    settings.stretch = 1 / (*slowed)[process_.space.self().value];
    for (const double share : *slowed) settings.cpu_limits.push_back(limit_of(share));
  }
  if (board_ != nullptr) board_->look_around(fabric_->node_count());
  node_ = std::make_unique<Node>(*fabric_, *this, std::move(settings), board_.get());
  sharing_ = std::make_unique<WorkSharing>(*node_, loop_settings(options()));
  turns_ = std::make_unique<Turns>(*node_);
  doacross_ = std::make_unique<Doacross>(*node_);
  locks_ = std::make_unique<LockService>(*fabric_, *this, kLocksFirst, LockService::origin_is_home,
                                         node_->settings().watchdog);
  set_runtimes(*node_);
  if (environment_fixes_teams() || thread_locals_.kind == ThreadLocals::Kind::kBound) {
    node_->fix_team_size();
  }
  if (std::getenv("OMP_SCHEDULE") != nullptr) node_->note_schedule_set();
  node_->set_work_sharing(sharing_.get());
  node_->set_turns(turns_.get());
  node_->set_doacross(doacross_.get());
  node_->set_locks(locks_.get());
}

Status NodeProcess::share_globals() {
  auto ranges = global_ranges(process_.objects);
  if (!ranges.ok()) return ranges.error();
  // What constructors printed here is the origin's to print.
  if (!origin_) std::fflush(nullptr);
  for (const dsm::AddressRange& range : ranges.value()) {
    if (const auto added = process_.space.add_globals(range); !added.ok()) {
      return base::errno_error(
          added.errno_value,
          fmt::format("cannot {} at 0x{:x}-0x{:x}", added.failed_step, range.begin, range.end));
    }
  }
  return base::ok();
}

Status NodeProcess::run_engine() {
  dsm::Engine::Settings settings;
  settings.observer = this;
  settings.spin_limit = options().spin_us * base::kMicrosecond;
  settings.shares_cores = board_ != nullptr && board_->cores_are_shared();
  settings.read_ahead_pages = static_cast<std::uint32_t>(options().read_ahead_pages);
  settings.blocks = &process_.heap.bounds();
  settings.watchdog_period = options().watchdog_s * base::kSecond;
  settings.memory = static_cast<Bytes>(options().memory);
  auto engine = dsm::Engine::make(process_.space, *fabric_, settings);
  if (!engine.ok()) return engine.error();
  engine_ = std::move(engine).value();
  return engine_->start();
}

// The runtime's own threads are there by now, and stay at full speed as a network card would; those
// of the program are this one and what it starts.
Status NodeProcess::slow_program() {
  const std::string& group = process_.membership->cpu_group();
  if (group.empty()) return base::ok();
  const int error = os::enter_cpu_group(group.c_str());
  if (error == 0) return base::ok();
  return base::errno_error(error, "cannot slow the program (--emulate) through " + group);
}

Status NodeProcess::delegate_calls() {
  std::vector<os::AddressRange> managed{{process_.arenas.begin, process_.arenas.end}};
  auto globals = global_ranges(process_.objects);
  if (!globals.ok()) return globals.error();
  for (const dsm::AddressRange& range : globals.value()) {
    managed.push_back({range.begin, range.end});
  }
  const Status caught = delegate::delegate_all_threads(*delegation_, origin_, managed);
  process_.catches_calls = caught.ok();
  return caught;
}

// Whatever goes wrong here, the program can run: it is told of where the user would want to know.
void NodeProcess::find_calibration() {
  const char* const ucx_tls = std::getenv("UCX_TLS");
  identity_.settings = machine::settings_that_matter(base::to_environment(options()),
                                                     ucx_tls == nullptr ? "" : ucx_tls);
  if (options().calibration == "off" || fabric_->node_count() == 1) return;
  const auto tell = [&](bool matters, const std::string& sentence) {
    base::log_line(matters ? base::LogLevel::kWarning : base::LogLevel::kInfo, "{}", sentence);
  };
  const std::string path = machine::calibration_path(options().calibration);
  Result<std::vector<machine::Calibration>> stored = std::vector<machine::Calibration>();
  if (!path.empty()) stored = machine::load_calibrations(path);
  if (stored.ok()) {
    const std::int64_t now = os::realtime_now() / base::kSecond;
    const auto* const found = machine::find_calibration(stored.value(), identity_, now);
    if (found != nullptr) return node_->set_calibration(*found);
    // Brief ones come and go by themselves; who calibrated with care wants to know.
    const bool others =
        std::any_of(stored.value().begin(), stored.value().end(),
                    [](const auto& one) { return one.method != machine::Method::kBrief; });
    tell(others, fmt::format("'{}' has no calibration of this job ({}), which is measured briefly; "
                             "'amasia calibrate' with the same options does it with care",
                             path, machine::text_of(identity_)));
  } else {
    tell(true, stored.error().message + " (this job is measured briefly instead)");
  }
  auto measured = brief_calibration_->measure(identity_);
  if (!measured.ok()) return tell(true, measured.error().message);
  if (stored.ok() && !path.empty()) {
    const Status kept = machine::store_calibration(path, measured.value());
    if (!kept.ok()) tell(!options().calibration.empty(), kept.error().message);
  }
  node_->set_calibration(std::move(measured).value());
}

// The launcher has looked at it, too: what is wrong by now, or started in another way, ends no run.
void NodeProcess::find_profile() {
  if (options().profile.empty() || fabric_->node_count() == 1) return;
  const auto earlier = launch::load_profile(options());
  if (!earlier.ok()) return base::log_line(base::LogLevel::kWarning, "{}", earlier.error().message);
  if (!earlier.value().has_value()) return;
  auto profile = RegionProfile::make(*earlier.value(), fabric_->node_count());
  if (profile.ok()) return node_->set_profile(std::move(profile).value());
  base::log_line(base::LogLevel::kWarning, "--profile: '{}' {}; regions begin as without",
                 options().profile, profile.error().message);
}

void NodeProcess::serve() {
  // A stream's lock knows its owner by the address of the thread's control block. Images are alike,
  // so the main threads of all nodes would be one owner; what is mapped after this gap lies at
  // another address on each node, the control blocks of this thread and of its teams among it.
  const Status apart = os::keep_addresses_apart(process_.space.self().value * kAddressGap);
  if (!apart.ok()) abort_job(apart.error().message);
  const Status served = run_on_program_thread(
      [](void* self) { static_cast<NodeProcess*>(self)->serve_regions(); }, this);
  if (!served.ok()) abort_job(served.error().message);
  ending_.store(true, std::memory_order_relaxed);
  source_.reset();
  if (wants_statistics()) {
    fabric_->send(base::kOrigin, kNodeStatistics, fabric::bytes_of(own_statistics()));
  }
  engine_->shutdown();
  fabric_.reset();
}

void NodeProcess::serve_regions() {
  // The OpenMP runtime reads what it wants to know of this node's cores before calls are caught.
  static constinit Real<int()> real_max_threads{"omp_get_max_threads"};
  if (const auto max_threads = real_max_threads.find(); max_threads != nullptr) max_threads();
  // So does the C library's allocator, when it decides how many arenas to have: its answer must not
  // need memory. A limit of our own spares it the question.
  mallopt(M_ARENA_MAX, kMostArenas);
  if (const Status caught = delegate_calls(); !caught.ok()) abort_job(caught.error().message);
  node_->serve();
}

void NodeProcess::end_in_order() {
  ending_.store(true, std::memory_order_relaxed);
  process_.membership->finishing();
  node_->shutdown();
  if (wants_statistics()) report_statistics();
  // exit() in a region: its other threads still use the rest, which goes with the process.
  if (node_->in_region()) return;
  engine_->shutdown();
  fabric_.reset();
}

void NodeProcess::end_job_from_here(int status, EndKind kind) {
  if (kind == EndKind::kInOrder) source_->flush();
  const EndJob end{status, kind};
  os::in_runtime_section([&] {
    // The origin ends this process with the job.
    if (fabric_->send(base::kOrigin, kEndJob, fabric::bytes_of(end))) node_->await_end();
  });
}

void NodeProcess::note_own_signal(int signal) {
  slot().raised.store(signal, std::memory_order_relaxed);
  // Not the streams' buffers: who is killed does not flush them.
  source_->send_written();
  source_->wait_written();
}

bool NodeProcess::ends_for_another_node() {
  const ThreadFrame* const frame = outer_frame();
  return ending_for_another_node || (frame != nullptr && frame->is_guest);
}

void NodeProcess::leave_job() {
  if (leaving_.exchange(true, std::memory_order_relaxed)) {
    for (;;) pause();
  }
  if (wants_statistics()) {
    fabric_->send(base::kOrigin, kNodeStatistics, fabric::bytes_of(own_statistics()));
  }
  real_exit_now(0);
}

void NodeProcess::leave_job_soon() {
  std::thread([this] {
    os::declare_runtime_thread();
    leave_job();
  }).detach();
}

void NodeProcess::finish_output() {
  if (sink_ == nullptr) return;
  if (node_->in_region()) os::in_runtime_section([this] { sink_->collect(kLastWordsTimeout); });
  sink_->finish();
}

base::NodeStatistics NodeProcess::own_statistics() const {
  const dsm::Statistics memory = engine_->statistics();
  const fabric::Statistics messages = fabric_->statistics();
  base::NodeStatistics own;
  own.id = process_.space.self().value;
  own.pid = static_cast<std::uint32_t>(process_.id);
  own.faults_read = memory.faults_read;
  own.faults_write = memory.faults_write;
  own.faults_upgrade = memory.faults_upgrade;
  own.pages_in = memory.pages_in;
  own.pages_out = memory.pages_out;
  own.bytes_in = messages.bytes_in;
  own.bytes_out = messages.bytes_out;
  own.messages = messages.messages_out;
  own.stall_ns = memory.stall_ns;
  own.pages_offered = memory.pages_offered;
  own.pages_evicted = memory.pages_evicted;
  own.memory_max = memory.memory_max;
  return own;
}

void NodeProcess::report_statistics() {
  base::JobStatistics job;
  job.nodes.resize(fabric_->node_count());
  job.nodes[0] = own_statistics();
  const std::uint32_t others = fabric_->node_count() - 1;
  const Nanos deadline = os::monotonic_now() + kLastWordsTimeout;
  for (;;) {
    const std::uint32_t told = told_.load(std::memory_order_acquire);
    const Nanos left = deadline - os::monotonic_now();
    if (told >= others || left <= 0) break;
    os::futex_wait(told_, told, left);
  }
  for (std::uint16_t i = 1; i <= others; ++i) {
    job.nodes[i] = statistics_[i];
    job.nodes[i].id = i;
  }
  job.regions = node_->region_statistics();
  if (const Status written = launch::write_statistics(options().stats, job); !written.ok()) {
    base::log_line(base::LogLevel::kError, "{}", written.error().message);
  }
}

void* NodeProcess::allocate_shared(Bytes size) {
  const AllocationScope managed(AllocationMode::kManaged);
  return Services::allocate_shared(size);
}

void NodeProcess::free_shared(void* block) {
  const AllocationScope managed(AllocationMode::kManaged);
  Services::free_shared(block);
}

bool NodeProcess::is_private(const void* address) const {
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  constexpr std::uintptr_t kEnd = std::uintptr_t{1} << 47;
  // Below the executable nothing is mapped: most words that are no addresses are there.
  if (value < process_.objects[0].begin || value >= kEnd) return false;
  return !is_managed(address) && !process_.objects.is_from_start(address) &&
         os::is_mapped(address);
}

bool NodeProcess::is_heap(std::uintptr_t address) const {
  const dsm::AddressSpace& space = process_.space;
  if (!space.arenas().contains(address)) return false;
  const auto page = space.page_of(address);
  return page && space.heap(space.arena_of(*page)).contains(address);
}

const std::byte* NodeProcess::readable_end(const void* address) const {
  const dsm::AddressRange main = main_stack();
  const auto value = reinterpret_cast<std::uintptr_t>(address);
  return main.contains(value) ? pointer(main.end) : Services::readable_end(address);
}

bool NodeProcess::has_thread_locals() const {
  return kind_of_thread_locals() != ThreadLocals::Kind::kNone;
}

ThreadLocals::Kind NodeProcess::kind_of_thread_locals() const {
  return process_.objects.late_library() != nullptr ? ThreadLocals::Kind::kBound
                                                    : thread_locals_.kind;
}

bool NodeProcess::may_take_thread_local_addresses() {
  std::call_once(looked_for_addresses_,
                 [this] { takes_addresses_ = may_take_addresses(process_.objects); });
  return takes_addresses_;
}

bool NodeProcess::code_is_everywhere(const void* code) const {
  return process_.objects.is_from_start(code) && process_.objects.late_library() == nullptr;
}

bool NodeProcess::flush_output() {
  foreign_blocks_->flush();
  if (sink_ != nullptr) sink_->wait_written();
  if (source_ == nullptr) return false;
  // All that the program writes here is counted, so mostly the pipes need not be looked at. What
  // flush() itself writes is counted after this, and looked for the next time.
  const std::uint64_t written = delegation_->outputs_written();
  if (written == outputs_flushed_ && !source_->has_buffered()) return false;
  outputs_flushed_ = written;
  return source_->flush();
}

void NodeProcess::publish_output() {
  if (source_ == nullptr) return;
  if (source_->has_buffered()) source_->flush();  // writes, which is noticed
  const std::uint64_t written = delegation_->outputs_written();
  if (written == outputs_published_.load(std::memory_order_relaxed) ||
      written == outputs_published_.exchange(written, std::memory_order_relaxed)) {
    return;
  }
  source_->flush();
  source_->wait_written();
}

ThreadCounters NodeProcess::thread_counters() {
  if (thread_slot == nullptr) thread_slot = engine_->register_thread();
  const auto load = [](const auto& counter) {
    return static_cast<std::uint64_t>(counter.load(std::memory_order_relaxed));
  };
  const delegate::CallTimes calls = delegation_->own_call_times();
  return {.faults = load(thread_slot->faults_read) + load(thread_slot->faults_write) +
                    load(thread_slot->faults_upgrade),
          .stall_ns = static_cast<Nanos>(load(thread_slot->stall_ns)) + calls.carriage,
          .calls_ns = calls.at_origin};
}

void NodeProcess::note_pause() {
  // Set in every region; outside of them a thread waits for nobody whom its pages could keep.
  if (thread_slot != nullptr) engine_->note_pause(thread_slot);
}

void NodeProcess::enter_place(std::uint64_t place) { engine_->enter_place(place); }

void NodeProcess::gather_data(bool on) { engine_->gather(on); }

PageOffer NodeProcess::offer(std::uint64_t page, std::uint64_t nodes, bool if_asked) {
  const auto offer = engine_->offer(reinterpret_cast<const void*>(page), nodes, if_asked);
  return {static_cast<std::uint32_t>(std::popcount(offer.sent)), offer.asked};
}

std::uint32_t NodeProcess::give_back(const PageWindow& window) {
  return engine_->give_back(reinterpret_cast<const void*>(window.first), window.mask);
}

void NodeProcess::take_back(NodeId from, const PageWindow& window) {
  engine_->take_back(from, reinterpret_cast<const void*>(window.first), window.mask);
}

void NodeProcess::begin_help() {
  AMASIA_CHECK(helping == nullptr, "a thread helps once at a time");
  helping = new (helping_memory.bytes) dsm::Engine::Helping(*engine_);
}

int NodeProcess::help() { return helping->poll(); }

void NodeProcess::end_help() {
  helping->~Helping();
  helping = nullptr;
}

void NodeProcess::enter_region(std::string_view site) { slot().enter_region(site); }
void NodeProcess::leave_region() { slot().leave_region(); }
void NodeProcess::show_wait(std::string_view what) { slot().waits_for.set(what); }
void NodeProcess::show_progress() { slot().advance(); }

void NodeProcess::abort_job(std::string_view why) {
  base::log_line(base::LogLevel::kError, "{}", why);
  real_exit_now(1);
}

void NodeProcess::on_peer_lost(NodeId peer, std::string_view why) {
  if (ending_.load(std::memory_order_relaxed)) return;
  // After exit() in a region: no loss, and the launcher ends those who wait for the origin.
  if (node_->told_to_end()) return;
  node_->peer_lost(peer, why);
}

void NodeProcess::on_message(const fabric::Incoming& message) {
  base::NodeStatistics told;
  if (message.type == kNodeStatistics && message.body.size() == sizeof told && origin_) {
    std::memcpy(&told, message.body.data(), sizeof told);
    statistics_[message.from.value] = told;
    told_.fetch_add(1, std::memory_order_release);
    os::futex_wake(told_, 1);
    return;
  }
  if (message.type == kTouchedRunsWanted) return tell_touched_runs(message.from);
  if (message.type == kTouchedRuns) {
    if (!origin_ || !note_touched_runs(message.from, message.body)) {
      abort_job(fmt::format("node {} sent a malformed list of its memory", message.from.value));
    }
    return;
  }
  EndJob end;
  if (message.type != kEndJob || message.body.size() != sizeof end || !origin_) return;
  std::memcpy(&end, message.body.data(), sizeof end);
  // Handlers of the program run on a thread that may block; this one must not.
  std::thread([end] {
    ending_for_another_node = true;
    switch (end.kind) {
      case EndKind::kInOrder:
        std::exit(end.status);
      case EndKind::kQuick:
        std::quick_exit(end.status);
      case EndKind::kImmediate:
        real_exit_now(end.status);
    }
  }).detach();
}

}  // namespace amasia::omp
