// SPDX-License-Identifier: Apache-2.0
#include "dsm/engine.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "dsm/service.hpp"
#include "dsm/userfaultfd_access.hpp"

namespace amasia::dsm {
namespace {

constexpr std::size_t kFaultsAtOnce = 32;
constexpr std::uint32_t kMessagesAtOnce = 64;
constexpr Nanos kNever = std::numeric_limits<Nanos>::max();
// Each wake-up of UCX that is still queued refuses once; more refusals in a row mean that the
// fabric has something that this thread cannot take: then it pauses before each further try.
constexpr std::uint32_t kRefusals = 32;
constexpr Nanos kRefusedPause = 50 * base::kMicrosecond;

}  // namespace

Result<std::unique_ptr<Engine::Service>> Engine::Service::make(AddressSpace& space,
                                                               fabric::Fabric& fabric,
                                                               const Settings& settings) {
  AMASIA_CHECK(space.self() == fabric.self() && space.node_count() == fabric.node_count(),
               "address space and fabric are of different nodes");
  std::unique_ptr<Service> service(new Service(space, fabric, settings));
  auto access = UserfaultfdAccess::make(space);
  if (!access.ok()) return access.error();
  service->access_ = std::move(access).value();
  auto wakeup = os::Wakeup::make();
  if (!wakeup.ok()) return wakeup.error();
  service->wakeup_ = std::move(wakeup).value();
  auto coherence = Coherence::make(space, *service->access_, fabric, service->losses_,
                                   {.read_ahead_pages = settings.read_ahead_pages,
                                    .watchdog_period = settings.watchdog_period,
                                    .memory_pages = settings.memory / base::kPageSize,
                                    .shares_cores = settings.shares_cores,
                                    .blocks = settings.blocks,
                                    .observer = settings.observer});
  if (!coherence.ok()) return coherence.error();
  {
    const os::MutexLock lock(service->mutex_);
    service->coherence_ = std::move(coherence).value();
  }
  fabric.set_handler(kFirstDsmType, kLastDsmType, service.get());
  return service;
}

Status Engine::Service::start() {
  AMASIA_CHECK(!thread_.joinable(), "an engine is started twice");
  auto started = os::Thread::start(&Service::run, this);
  if (!started.ok()) return started.error();
  thread_ = std::move(started).value();
  return base::ok();
}

void Engine::Service::stop() {
  stopping_.store(true, std::memory_order_release);
  wakeup_.raise();
  thread_.join();
}

void Engine::Service::serve() {
  os::declare_runtime_thread();
  os::set_thread_name("amasia-engine");
  if (settings_.service_core >= 0) {
    const Status pinned = os::pin_to_core(settings_.service_core);
    if (!pinned.ok()) base::log_line(base::LogLevel::kWarning, "{}", pinned.error().message);
  }
  // Served by an ordinary thread, a page can wait for a whole time slice of the program.
  static_cast<void>(os::raise_priority());
  os::use_precise_timers();
  Nanos busy_until = os::monotonic_now();
  while (!stopping_.load(std::memory_order_acquire)) {
    if (round() > 0) {
      refusals_ = 0;
      busy_until = os::monotonic_now();
    } else if (may_spin(os::monotonic_now() - busy_until)) {
      os::yield_core();  // to service threads of other nodes on this core
    } else {
      sleep();
      busy_until = os::monotonic_now();
    }
  }
}

int Engine::Service::round() {
  const int handled = handle_faults_and_time();
  if (left_to_helpers()) return handled;
  return handled + static_cast<int>(fabric_.poll(kMessagesAtOnce));
}

// S4. A thread that waits for a page may be the helper itself, which then helps nobody: so while
// any waits, the service thread polls too.
bool Engine::Service::left_to_helpers() const {
  return helpers_.load(std::memory_order_acquire) > 0 &&
         waiting_threads_.load(std::memory_order_relaxed) == 0;
}

int Engine::Service::handle_faults_and_time() {
  const os::MutexLock lock(mutex_);
  wakes_at_ = 0;
  std::array<Fault, kFaultsAtOnce> faults;
  const std::size_t count = access_->next_faults(faults);
  const Nanos now = os::monotonic_now();
  if (count > 0) {
    const std::uint64_t place = place_.load(std::memory_order_relaxed);
    coherence_->on_faults({faults.data(), count}, place, now);
    remembered_[Recall::slot_of(place)].store(true, std::memory_order_relaxed);
  }
  int handled = static_cast<int>(count);
  // Acquire, partner: note_pause.
  if (paused_.load(std::memory_order_relaxed) &&
      paused_.exchange(false, std::memory_order_acquire)) {
    coherence_->on_pause(now);
    ++handled;
  }
  if (coherence_->next_time() <= now) {
    coherence_->on_time(now);
    ++handled;
  }
  note_state();
  return handled;
}

void Engine::Service::note_state() {
  waiting_threads_.store(coherence_->waiting().count(), std::memory_order_relaxed);
  holding_.store(coherence_->is_holding(), std::memory_order_relaxed);
}

bool Engine::Service::may_spin(Nanos idle) const {
  if (idle >= settings_.spin_limit || settings_.shares_cores) return false;
  if (settings_.spare_core) return true;
  const auto waiting = waiting_threads_.load(std::memory_order_relaxed);
  const auto computing =
      static_cast<std::size_t>(computing_threads_.load(std::memory_order_relaxed));
  return waiting > 0 && waiting >= computing;
}

void Engine::Service::sleep() {
  bool poll_fabric = !left_to_helpers();
  Nanos timeout = -1;
  if (poll_fabric) {
    refusals_ = fabric_.arm() ? 0 : refusals_ + 1;
    if (refusals_ > 0 && refusals_ < kRefusals) return;  // something has come since the last poll
    if (refusals_ > 0) timeout = kRefusedPause;          // S5
    poll_fabric = refusals_ == 0;
  }
  {
    const os::MutexLock lock(mutex_);
    const Nanos next = coherence_->next_time();
    const Nanos now = os::monotonic_now();
    wakes_at_ = next;
    if (next != kNever) {
      const Nanos until_next = std::max<Nanos>(next - now, 0);
      timeout = timeout < 0 ? until_next : std::min(timeout, until_next);
    }
    ++sleeps_;
  }
  const std::array<int, 3> descriptors{access_->event_descriptor(), wakeup_.descriptor(),
                                       poll_fabric ? fabric_.wait_descriptor() : -1};
  const unsigned ready = os::wait_readable(descriptors.data(), descriptors.size(), timeout);
  if ((ready & 2U) != 0) wakeup_.clear();
}

void Engine::Service::on_message(const fabric::Incoming& message) {
  const os::MutexLock lock(mutex_);
  const Nanos now = os::monotonic_now();
  if (message.type == kTurnWish) {
    coherence_->on_turn_wish(message.from, message.body, now);
  } else if (message.type == kTurnStretch) {
    coherence_->on_turn_stretch(message.from, message.body, now);
  } else if (message.type == kStretchQuestion) {
    coherence_->on_stretch_question(message.from, message.body, now);
  } else if (message.type == kStretchAnswer) {
    coherence_->on_stretch_answer(message.from, message.body, now);
  } else {
    coherence_->on_frame(message.from, message.body, now);
  }
  note_state();
  wake_in_time();
}

void Engine::Service::wake_in_time() {  // S3
  if (wakes_at_ == 0 || coherence_->next_time() >= wakes_at_) return;
  wakes_at_ = coherence_->next_time();
  wakeup_.raise();
}

ThreadSlot* Engine::Service::register_thread() {
  const os::MutexLock lock(mutex_);
  WaitingThreads& waiting = coherence_->waiting();
  computing_threads_.fetch_add(1, std::memory_order_relaxed);
  return &waiting.slot(waiting.slot_of(os::current_thread_id()));
}

void Engine::Service::unregister_thread(ThreadSlot* slot) {
  const os::MutexLock lock(mutex_);
  computing_threads_.fetch_sub(1, std::memory_order_relaxed);
  coherence_->waiting().free_slot(slot);
}

void Engine::Service::note_pause(ThreadSlot* slot) {
  // Release, partner: all_paused_since_install. One writer.
  slot->pauses.store(slot->pauses.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  if (!holding_.load(std::memory_order_relaxed)) return;
  paused_.store(true, std::memory_order_release);
  wakeup_.raise();
}

// Whether recall() has anything to do.
bool Engine::Service::enter_place(std::uint64_t place) {
  place_.store(place, std::memory_order_relaxed);
  return place != 0 && remembered_[Recall::slot_of(place)].load(std::memory_order_relaxed);
}

void Engine::Service::recall(std::uint64_t place) {
  const os::MutexLock lock(mutex_);
  if (coherence_->on_place(place, os::monotonic_now())) return;
  remembered_[Recall::slot_of(place)].store(false, std::memory_order_relaxed);
}

void Engine::Service::gather(bool on) {
  const os::MutexLock lock(mutex_);
  coherence_->on_gather(on, os::monotonic_now());
  wake_in_time();
}

void Engine::Service::prefetch(AddressRange range, AccessKind access) {
  const auto first = space_.page_of(range.begin);
  if (!first.has_value() || range.begin >= range.end) return;
  const PageCount count = (range.end - 1) / base::kPageSize - range.begin / base::kPageSize + 1;
  const os::MutexLock lock(mutex_);
  coherence_->on_prefetch({*first, count}, access, os::monotonic_now());
}

Engine::Offer Engine::Service::offer(std::uintptr_t address, std::uint64_t nodes, bool if_asked) {
  const auto page = space_.page_of(address);
  if (!page.has_value() || space_.home_of(*page) != space_.self()) return {};
  const os::MutexLock lock(mutex_);
  return coherence_->on_offer(*page, nodes, if_asked, os::monotonic_now());
}

// Whether all pages of the mask are managed and of one home.
bool Engine::Service::is_window(PageIndex first, std::uint32_t mask) const {
  const auto count = static_cast<PageCount>(std::bit_width(mask));
  return mask != 0 && space_.is_valid(PageRun{first, count});
}

std::uint32_t Engine::Service::give_back(std::uintptr_t address, std::uint32_t mask) {
  const auto page = space_.page_of(address);
  if (!page.has_value() || !is_window(*page, mask)) return 0;
  const os::MutexLock lock(mutex_);
  return coherence_->on_give_back(*page, mask, os::monotonic_now());
}

void Engine::Service::take_back(NodeId from, std::uintptr_t address, std::uint32_t mask) {
  const auto page = space_.page_of(address);
  if (!page.has_value() || !is_window(*page, mask) || space_.home_of(*page) != space_.self()) {
    return;
  }
  const os::MutexLock lock(mutex_);
  coherence_->on_given_back(from, *page, mask, os::monotonic_now());
}

Statistics Engine::Service::statistics() const {
  const os::MutexLock lock(mutex_);
  Statistics result = coherence_->statistics();
  result.sleeps = sleeps_;
  return result;
}

void Engine::Service::begin_helping() { helpers_.fetch_add(1, std::memory_order_acq_rel); }

int Engine::Service::help() { return static_cast<int>(fabric_.poll(kMessagesAtOnce)); }

void Engine::Service::end_helping() {
  if (helpers_.fetch_sub(1, std::memory_order_acq_rel) == 1) wakeup_.raise();
}

Engine::Engine(std::unique_ptr<Service> service) : service_(std::move(service)) {}
Engine::~Engine() = default;

Result<std::unique_ptr<Engine>> Engine::make(AddressSpace& space, fabric::Fabric& fabric,
                                             const Settings& settings) {
  auto service = Service::make(space, fabric, settings);
  if (!service.ok()) return service.error();
  return std::unique_ptr<Engine>(new Engine(std::move(service).value()));
}

Status Engine::start() { return service_->start(); }
void Engine::shutdown() { service_->stop(); }

// Callers may stand on a managed stack, which must not be touched under the lock (S1): what the
// closures refer to is read before the inner call, and written after it.

ThreadSlot* Engine::register_thread() {
  ThreadSlot* slot = nullptr;
  os::in_runtime_section([this, &slot] { slot = service_->register_thread(); });
  return slot;
}

void Engine::unregister_thread(ThreadSlot* slot) {
  os::in_runtime_section([this, slot] { service_->unregister_thread(slot); });
}

void Engine::note_pause(ThreadSlot* slot) { service_->note_pause(slot); }

void Engine::watch_losses() { service_->losses().begin(); }
Nanos Engine::stall_for_lost() const { return service_->losses().stall(); }

void Engine::enter_place(std::uint64_t place) {
  if (!service_->enter_place(place)) return;
  os::in_runtime_section([this, place] { service_->recall(place); });
}

Statistics Engine::statistics() const {
  Statistics result;
  os::in_runtime_section([this, &result] { result = service_->statistics(); });
  return result;
}

void Engine::gather(bool on) {
  os::in_runtime_section([=, this] { service_->gather(on); });
}

void Engine::prefetch(const void* begin, Bytes length, AccessKind access) {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  os::in_runtime_section([=, this] { service_->prefetch({address, address + length}, access); });
}

Engine::Offer Engine::offer(const void* address, std::uint64_t nodes, bool if_asked) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  Offer offer;
  os::in_runtime_section(
      [=, this, &offer] { offer = service_->offer(at, nodes, if_asked); });
  return offer;
}

std::uint32_t Engine::give_back(const void* first, std::uint32_t mask) {
  const auto at = reinterpret_cast<std::uintptr_t>(first);
  std::uint32_t given = 0;
  os::in_runtime_section([=, this, &given] { given = service_->give_back(at, mask); });
  return given;
}

void Engine::take_back(NodeId from, const void* first, std::uint32_t mask) {
  const auto at = reinterpret_cast<std::uintptr_t>(first);
  os::in_runtime_section([=, this] { service_->take_back(from, at, mask); });
}

void Engine::poll() {
  os::in_runtime_section([this] { service_->help(); });
}

Engine::Helping::Helping(Engine& engine) : service_(*engine.service_) { service_.begin_helping(); }
Engine::Helping::~Helping() { service_.end_helping(); }
int Engine::Helping::poll() { return service_.help(); }

}  // namespace amasia::dsm
