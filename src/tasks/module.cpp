// SPDX-License-Identifier: Apache-2.0
// The functions behind <amasia/module.h>.
#include "amasia/module.h"

#include <stdexcept>

#include "tasks/scheduler.hpp"

namespace amasia::tasks {
namespace {

// Libraries were not written for small stacks: below this a call is left to the loop, which is at
// the upper end of one.
constexpr std::size_t kRoomForCalls = 128 * 1024;

detail::Worker& worker_of_task(const detail::Scheduler& scheduler, const module& of) {
  detail::Worker* const worker = detail::this_worker();
  if (worker == nullptr || worker->current == nullptr || worker->scheduler != &scheduler) {
    throw std::logic_error(std::string("an operation of module '") + of.name() +
                           "' was started outside of run() of the runtime that it is attached to");
  }
  return *worker;
}

}  // namespace

module::~module() = default;

void hold::release() noexcept {
  detail::Scope* const scope = std::exchange(scope_, nullptr);
  if (scope == nullptr) return;
  detail::Scheduler* const scheduler = scope->scheduler;
  if (scope->count.add(-1)) end_scope(scope);
  // Last: until then all may sleep without being in a deadlock.
  if (is_operation_) scheduler->operation_ended();
}

void hold::fail(std::exception_ptr error) noexcept { detail::fail(scope_, std::move(error)); }

hold module_host::hold_scope() { return hold_scope(true); }
hold module_host::hold_scope_of_others() { return hold_scope(false); }

hold module_host::hold_scope(bool is_operation) {
  detail::Worker& worker = worker_of_task(scheduler_, module_);
  ++worker.current->net;
  if (is_operation) scheduler_.operation_began();
  counts_.operations.fetch_add(1, std::memory_order_relaxed);
  return hold(worker.current->scope, is_operation);
}

void module_host::poll_me() {
  AMASIA_CHECK(detail::this_worker() != nullptr && detail::this_worker()->errands != nullptr,
               "poll_me() is for the thread of run()");
  scheduler_.errands().poll(&module_, counts_);
}

void module_host::create(detail::Task* task, const hold& held) {
  AMASIA_CHECK(held.scope_ != nullptr, "a task is created within a hold that was released");
  task->scope = held.scope_;
  // Not the end of the scope: the hold counts in it.
  static_cast<void>(held.scope_->count.add(1));
  scheduler_.make_runnable(task);
}

void module_host::tell_me_of_idleness() { scheduler_.tell_of_idleness(&module_); }
bool module_host::some_worker_sleeps() const noexcept { return scheduler_.some_worker_sleeps(); }

void module_host::judge_deadlocks() { scheduler_.set_judge(&module_); }
bool module_host::detects_deadlock() const noexcept { return scheduler_.detects_deadlock(); }
bool module_host::is_stalled() const noexcept { return scheduler_.is_stalled(); }
std::vector<std::string> module_host::waits(const where& own) const {
  return scheduler_.lines_of_waits(own);
}
void module_host::report_deadlock(const std::string& report) { scheduler_.report(report); }

bool module_host::begin_here() {
  detail::Worker& worker = worker_of_task(scheduler_, module_);
  const bool here = worker.errands != nullptr && worker.strand->fiber.room() > kRoomForCalls &&
                    worker.errands->begin_call();
  if (here && scheduler_.errands().times_calls()) call_began_ns_ = os::monotonic_now();
  return here;
}
void module_host::end_here() noexcept {
  counts_.calls.add(1);
  detail::Errands& errands = scheduler_.errands();
  if (errands.times_calls()) counts_.calls_ns.add(os::monotonic_now() - call_began_ns_);
  errands.end_call();
}
void module_host::post(detail::Call* call) {
  call->counts = &counts_;
  scheduler_.post(call);
}

void runtime::attach(module& added) { scheduler_->attach(added); }
void runtime::detach(module& attached) noexcept { scheduler_->detach(attached); }

namespace detail {

void Scheduler::attach(module& added) {
  if (busy_.load()) {
    throw std::logic_error(std::string("module '") + added.name() + "' is attached during run()");
  }
  if (!attached_.empty()) check_thread();
  auto host = std::make_unique<module_host>(*this, added, counts_of(added));
  added.initialise(*host);
  attached_.push_back({&added, std::move(host)});
  home_thread_ = os::current_thread_id();
  workers_[0]->errands = &errands_;
  workers_[0]->watched = true;
}

void Scheduler::detach(module& attached) noexcept {
  AMASIA_CHECK(!busy_.load(), "a module is detached during run()");
  errands_.forget(&attached);  // run() has waited for its operations
  {
    const os::MutexLock lock(told_mutex_);  // no call of idle() is under way afterwards
    std::erase(told_of_idleness_, &attached);
  }
  if (judge_ == &attached) judge_ = nullptr;
  attached.finalise();
  std::erase_if(attached_, [&](const Attached& one) { return one.what == &attached; });
  if (!attached_.empty()) return;
  workers_[0]->errands = nullptr;
  workers_[0]->watched = workers_[0]->traces || workers_[0]->measures;
}

void Scheduler::tell_of_idleness(module* whom) {
  const os::MutexLock lock(told_mutex_);
  told_of_idleness_.push_back(whom);
}

void Scheduler::set_judge(module* judge) {
  if (judge_ != nullptr) {
    throw std::logic_error(std::string("module '") + judge_->name() + "' judges deadlocks already");
  }
  judge_ = judge;
}

void Scheduler::tell_that_idle() {
  const os::MutexLock lock(told_mutex_);
  for (module* const one : told_of_idleness_) one->idle();
}

void Scheduler::check_thread() const {
  if (attached_.empty() || os::current_thread_id() == home_thread_) return;
  throw std::logic_error(std::string("module '") + attached_.front().what->name() +
                         "' is attached to this runtime: only the thread that attached it may "
                         "attach others or call run()");
}

void Scheduler::post(Call* call) {
  errands_.post(call);
  if (!has_barrier_) strong_fence();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (idle_.is_idle(0)) idle_.wake(0);
}

}  // namespace detail
}  // namespace amasia::tasks
