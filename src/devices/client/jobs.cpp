// SPDX-License-Identifier: Apache-2.0
// What was granted, until it is handed to its device: which thread does that.
#include <algorithm>
#include <array>
#include <span>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

// More jobs that run whole kernels, or that are better submitted by many, than the one thread that
// reads the ring should have before it.
constexpr std::size_t kJobsForOne = 4;
// How many workers at a time submit to a device what is better submitted by many: more of them hold
// each other up in its driver.
constexpr std::uint32_t kHands = 2;
// How many others one thread takes at a time.
constexpr std::size_t kJobsAtOnce = 64;

}  // namespace

void Client::work(void* argument) {
  Client& client = *static_cast<Client*>(argument);
  os::set_thread_name("amasia-worker");
  if (client.settings_.pin_workers) {
    static std::atomic<unsigned> next{0};
    const auto cores = os::allowed_cores();
    if (!cores.empty()) static_cast<void>(os::pin_to_core(cores[next.fetch_add(1) % cores.size()]));
  }
  client.work_loop();
}

void Client::work_loop() {
  while (!stopping_.load()) {
    const std::uint32_t seen = job_posts_.load(std::memory_order_seq_cst);
    Job job;
    bool found = false, hand = false;
    {
      Locked lock(*this);
      found = take_job(&job, &hand);
    }
    if (found) {
      const OwnDevice device = job.device;
      run(job);
      if (!hand) continue;
      Locked lock(*this);
      --hands_[device].busy;
      continue;
    }
    if (stopping_.load()) return;
    idle_workers_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wait(job_posts_, seen, -1);
    idle_workers_.fetch_sub(1, std::memory_order_seq_cst);
  }
}

// Invariant: where somebody counts as called, a worker will look for jobs after that; one that
// finds none says so here, under the lock.
bool Client::take_job(Job* job, bool* hand) {
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    Hands& hands = hands_[at->device];
    // To load a kernel takes long, and holds up nobody.
    *hand = is_for_many(*at) && programs_.is_known(at->device, at->task->kernel);
    if (*hand && hands.busy >= kHands) continue;  // these look for more when they are done
    if (*hand) {
      ++hands.busy;
      if (hands.called != 0) --hands.called;
    }
    *job = std::move(*at);
    jobs_.erase(at);
    return true;
  }
  for (Hands& hands : hands_) hands.called = 0;
  return false;
}

void Client::enqueue(Job job, bool stays) {
  const DevicePlace& place = places_[job.device];
  Hands& hands = hands_[job.device];
  const bool quick = stays && is_quick(job);
  const bool is_many = is_for_many(job);
  const bool takes_long = place.backend->runs_in_caller(place.local) || is_many;
  jobs_.push_back(std::move(job));
  if (quick && (!takes_long || jobs_.size() <= kJobsForOne)) return;
  if (is_many && quick) {
    if (hands.busy + hands.called >= kHands) return;
    ++hands.called;
  }
  call_worker();
}

bool Client::is_for_many(const Job& job) {
  if (job.evict != nullptr) return false;
  const DevicePlace& place = places_[job.device];
  const auto& arguments = job.task->arguments;
  return place.backend->takes_copies_from_many(place.local) &&
         std::any_of(arguments.begin(), arguments.end(), [](const Argument& one) {
           return one.is_buffer() && one.resident == nullptr;
         });
}

void Client::call_worker() {
  job_posts_.fetch_add(1, std::memory_order_seq_cst);
  if (idle_workers_.load(std::memory_order_seq_cst) != 0) os::futex_wake(job_posts_, 1);
}

bool Client::is_quick(const Job& job) {
  if (job.evict != nullptr) return false;
  const Task& task = *job.task;
  // Who runs a whole kernel reads no ring meanwhile; the next grants are for somebody else then.
  if (in_flight_[job.device].runs_long && idle_workers_.load(std::memory_order_relaxed) != 0) {
    return false;
  }
  const bool found = task.run != nullptr && task.run->is_loaded;
  if (!found && !task.kernel.empty() && !programs_.is_known(job.device, task.kernel)) return false;
  if (task.run != nullptr) task.run->is_loaded = true;
  return std::all_of(task.arguments.begin(), task.arguments.end(), [&](const Argument& argument) {
    if (argument.resident == nullptr) return true;
    // What has to come from another device, or back, is waited for.
    const Residency& where = argument.resident->where;
    return !task.kernel.empty() && (where.is_valid(job.device, argument.range()) ||
                                    where.is_valid(kHost, argument.range()));
  });
}

bool Client::run_quick_jobs(const Task* mine, Nanos deadline) {
  std::array<Job, kJobsAtOnce> taken;
  std::size_t count = 0;
  {
    Locked lock(*this);
    std::size_t passed_over = 0;
    for (auto at = jobs_.begin(); at != jobs_.end() && count < taken.size();) {
      if (!is_quick(*at)) {
        if (++passed_over == 2 * kJobsForOne) break;
        ++at;
        continue;
      }
      const DevicePlace& place = places_[at->device];
      const bool takes_long = place.backend->runs_in_caller(place.local);
      if (takes_long && count != 0) break;
      const bool leaves_others = is_for_many(*at);
      taken[count++] = std::move(*at);
      at = jobs_.erase(at);
      if (takes_long || (leaves_others && count == kJobsForOne)) break;
    }
    // One that was quick when it was queued, so that no worker was called for it, may not be now.
    if (passed_over != 0) call_worker();
  }
  if (count == 0) return false;
  // What the caller waits for comes last: with that it may stay.
  const auto jobs = std::span(taken).first(count);
  const auto own = std::find_if(jobs.begin(), jobs.end(), [&](const Job& job) {
    return mine != nullptr && job.task.get() == mine;
  });
  if (own != jobs.end()) std::iter_swap(own, std::prev(jobs.end()));
  submit_all(jobs, mine, deadline);
  return true;
}

void Client::submit_all(std::span<const Job> jobs, const Task* mine, Nanos deadline) {
  std::array<Submission, kJobsAtOnce> works;
  std::array<Backend*, kJobsAtOnce> backends;
  std::size_t count = 0;
  forget_begun();
  for (const Job& job : jobs) {
    Submission& one = works[count];
    one = {};
    if (!begin(job.task, &one.work)) continue;
    if (job.task.get() == mine) one.work.caller_waits = CallerWaits::kAtOnce;
    one.completion = job.task.get();
    backends[count++] = places_[job.device].backend;
  }
  for (std::size_t i = 0; i < count;) {
    std::size_t end = i + 1;
    while (end < count && backends[end] == backends[i]) ++end;
    backends[i]->submit_all(std::span(works).subspan(i, end - i));
    i = end;
  }
  if (count == 0 || works[count - 1].work.caller_waits != CallerWaits::kAtOnce) return;
  if (mine->ended.load(std::memory_order_acquire) != 0) return;
  backends[count - 1]->wait_for(*works[count - 1].completion, deadline);
}

void Client::run(Job& job) {
  if (job.task != nullptr) {
    execute(job.task);
  } else {
    evict(job.evict, job.device);
  }
}

void Client::execute(const std::shared_ptr<Task>& task, CallerWaits caller_waits) {
  Work work;
  if (!begin(task, &work)) return;
  work.caller_waits = caller_waits;
  places_[static_cast<std::size_t>(task->device)].backend->submit(work, *task);
}

}  // namespace amasia::devices
