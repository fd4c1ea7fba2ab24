// SPDX-License-Identifier: Apache-2.0
// Start and end, submitting, waiting, ends of tasks.
#include "devices/client/client.hpp"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "devices/backends/same_device.hpp"
#include "devices/patience.hpp"

namespace amasia::devices {
namespace {

int code_of(const Error& error) {
  switch (error.code) {
    case ENAMETOOLONG:
    case ENOTSOCK:
    case EPERM:
    case EACCES:
      return MCL_ERR_SOCKET;
    case EPROTONOSUPPORT:
      return MCL_ERR_VERSION;
    case ENOMEM:
    case ENOSPC:
    case EMFILE:
      return MCL_ERR_SHMEM;
    default:
      return MCL_ERR_SRVCOMM;
  }
}

ArgumentShape shape_of(const Argument& argument) {
  if (argument.is_buffer()) return {ArgumentKind::kBuffer, 0};
  const bool local = (argument.flags & MCL_ARG_LOCAL) != 0;
  return {local ? ArgumentKind::kLocal : ArgumentKind::kValue, argument.size};
}

// On a device; several parts of one buffer need one copy of it.
Bytes needed_by(const Task& task) {
  static thread_local std::vector<const ResidentBuffer*> buffers;  // keeps its memory
  buffers.clear();
  Bytes needed = 0;
  for (const Argument& argument : task.arguments) {
    if (argument.resident != nullptr) {
      buffers.push_back(argument.resident.get());
    } else if (argument.is_buffer()) {
      needed += argument.size;
    }
  }
  std::sort(buffers.begin(), buffers.end());
  const auto end = std::unique(buffers.begin(), buffers.end());
  std::for_each(buffers.begin(), end, [&](const auto* one) { needed += one->where.size(); });
  return needed;
}

// Whether the user's thread is disturbed has nothing to do with which client it waits for.
thread_local Patience own_patience;

void yield(Patience& patience) {
  const Nanos before = os::monotonic_now();
  os::yield_core();
  patience.note(before, os::monotonic_now());
}

}  // namespace

Result<std::unique_ptr<Client>> Client::start(const ClientSettings& settings,
                                              Backends backends) {
  std::unique_ptr<Client> client(new Client(settings));
  if (auto done = client->begin(std::move(backends)); !done.ok()) return done.error();
  return client;
}

Status Client::begin(Backends backends) {
  backends_ = std::move(backends);
  programs_.note_absent(backends_.absent);
  for (const auto& backend : backends_.all) {
    for (const DeviceDescription& description : backend->devices()) {
      if (places_.size() == kMaxDevices) break;
      const auto local = static_cast<LocalDevice>(&description - backend->devices().data());
      places_.push_back({backend.get(), local, &description});
      descriptions_.push_back(description);
    }
  }
  same_ = same_devices(descriptions_);
  for (std::size_t i = 0; i < same_.size(); ++i) {
    const auto first = static_cast<std::size_t>(std::countr_zero(same_[i]));
    if (first == i) shown_.push_back(static_cast<OwnDevice>(i));
  }
  auto wakeup = os::Wakeup::make();
  if (!wakeup.ok()) return Error{wakeup.error().message, MCL_ERR_MEMALLOC};
  interrupt_ = std::move(wakeup).value();
  auto link = Link::open(settings_.link, descriptions_);
  if (!link.ok()) return Error{link.error().message, code_of(link.error())};
  {
    Locked lock(*this);
    hands_.resize(places_.size());
    adopt(std::move(link).value());
  }
  auto service = os::Thread::start(&Client::serve, this);
  if (!service.ok()) return Error{service.error().message, MCL_ERR_MEMALLOC};
  service_ = std::move(service).value();
  // Devices that run kernels in who submits them would hold each other up.
  const auto callers = std::ranges::count_if(places_, [](const DevicePlace& place) {
    return place.backend->runs_in_caller(place.local);
  });
  const std::size_t workers = std::max<std::size_t>(settings_.workers, callers);
  while (workers_.size() < workers) {
    auto worker = os::Thread::start(&Client::work, this);
    if (!worker.ok()) return Error{worker.error().message, MCL_ERR_MEMALLOC};
    workers_.push_back(std::move(worker).value());
  }
  return base::ok();
}

void Client::adopt(std::unique_ptr<Link> link) {
  link_ = std::move(link);
  ++link_number_;
  wants_times_.store(link_->welcome().traces != 0, std::memory_order_relaxed);
  draining_ = false;
  link_wanted_ = false;
  outstanding_ = granted_ = 0;
  runs_queued_.clear();
  looks_for_room_ = false;
  in_flight_.assign(places_.size(), InFlight{});
  leased_ = 0;
  unsent_.clear();
  unsent_urgency_ = Urgency::kNone;
  named_.clear();
}

Client::~Client() {
  if (service_.joinable()) wait_all();
  // The last task may have been taken in by another thread than that which told of it.
  while (telling_.load(std::memory_order_acquire) != 0) os::yield_core();
  stopping_.store(true);
  if (interrupt_.descriptor() >= 0) interrupt_.raise();
  job_posts_.fetch_add(1);
  os::futex_wake(job_posts_, 1 << 20);
  service_.join();
  for (os::Thread& worker : workers_) worker.join();
  // Tasks are ended; what is left of buffers goes before the back ends.
  Locked lock(*this);
  for (auto& [address, memory] : shared_) {
    os::unmap(reinterpret_cast<std::uintptr_t>(address), memory.size);
  }
  link_.reset();
  buffers_.clear();
  buffers_by_number_.clear();
  graveyard_.clear();
}

DeviceSet Client::classes_of(std::uint64_t flags) const {
  DeviceSet set = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const std::uint64_t wanted = places_[i].description->device_class == DeviceClass::kCpu
                                     ? MCL_TASK_CPU
                                 : places_[i].description->device_class == DeviceClass::kGpu
                                     ? MCL_TASK_GPU
                                     : MCL_TASK_FPGA | MCL_TASK_DF;
    if ((flags & wanted) != 0) set |= DeviceSet{1} << i;
  }
  return set;
}

Fault Client::check(Task& task) {
  for (std::size_t i = 0; i < task.arguments.size(); ++i) {
    if (!task.arguments[i].set) {
      return fault(MCL_ERR_ARGCOUNT, "argument {} of {} of kernel '{}' is not set", i,
                   task.arguments.size(), task.kernel);
    }
  }
  const std::uint64_t classes = (task.flags & MCL_TASK_TYPE_MASK) != 0
                                    ? task.flags & MCL_TASK_TYPE_MASK
                                    : std::uint64_t{MCL_TASK_ANY};
  DeviceSet able = ~DeviceSet{0};
  if (!task.kernel.empty()) {
    static thread_local std::vector<ArgumentShape> shapes;  // keeps its memory
    shapes.clear();
    for (const Argument& argument : task.arguments) shapes.push_back(shape_of(argument));
    if (Fault wrong = programs_.check(task.kernel, shapes)) return wrong;
    Fault why;
    able = programs_.devices_for(task.kernel, &why);
    if (why) return why;
    task.identity = programs_.identity_of(task.kernel);
  }
  task.allowed = classes_of(classes) & able;
  if (task.allowed == 0) {
    return fault(MCL_ERR_INVDEV,
                 "no device of the classes asked for ({:#x}) can run kernel '{}'; this node has {} "
                 "devices",
                 classes, task.kernel, shown_.size());
  }
  task.preferred = classes_of((task.flags & MCL_FAV_MASK) >> 16) & task.allowed;
  // Classes of the original can be named together with a favourite.
  const Bytes needed = needed_by(task);
  DeviceSet large = 0;
  for (std::size_t i = 0; i < places_.size(); ++i) {
    const Bytes memory = places_[i].description->memory;
    if (memory == 0 || needed <= memory) large |= DeviceSet{1} << i;
  }
  if ((task.allowed & large) == 0) {
    return fault(MCL_ERR_DEVMEM, "the task needs {} bytes, more than any device that it may run on",
                 needed);
  }
  task.allowed &= large;
  task.preferred &= large;
  return no_fault();
}

Fault Client::submit(const std::shared_ptr<Task>& task,
                     const std::vector<std::shared_ptr<Task>>& dependencies) {
  if (Fault wrong = check(*task)) return wrong;
  task->kernel_arguments.reserve(task->arguments.size());
  task->held.reserve(task->arguments.size());
  bool begins = false;
  {
    Locked lock(*this);
    if (Fault wrong = enter(task, dependencies, &begins)) return wrong;
  }
  if (begins) run_leased(task);
  return no_fault();
}

Fault Client::enter(const std::shared_ptr<Task>& task,
                    const std::vector<std::shared_ptr<Task>>& dependencies, bool* begins) {
  task->number = ++last_number_;
  std::vector<std::uint64_t> numbers;
  const Task* failed = nullptr;
  for (const auto& dependency : dependencies) {
    if (dependency->state == TaskState::kCreated) {
      return fault(MCL_ERR_INVREQ, "a dependency of the task has not been submitted");
    }
    if (dependency->state != TaskState::kEnded) {
      numbers.push_back(dependency->number);
    } else if (dependency->failure) {
      failed = dependency.get();
    }
  }
  unfinished_.fetch_add(1, std::memory_order_relaxed);
  for (Argument& argument : task->arguments) {
    if (argument.resident != nullptr) ++argument.resident->tasks;
  }
  tasks_.emplace(task->number, task);
  set_status(*task, TaskState::kWaiting, MCL_REQ_PENDING);
  if (failed != nullptr) {
    // Of a long chain the first one's reason, not that of each.
    end_one(*task, failed->failure.code == MCL_ERR_DEPEND
                       ? failed->failure
                       : fault(MCL_ERR_DEPEND, "task {}, which it depends on, failed: {}",
                               failed->number, failed->failure.reason));
    return no_fault();
  }
  if (graph_.add(task->number, numbers)) {
    if (ready_.empty() && may_put()) {
      *begins = may_begin(*task);
      if (*begins) {
        begin_leased(*task);
      } else {
        offer(task);
      }
    } else {
      ready_.emplace(std::pair(-std::int64_t{task->priority}, task->number), task);
      pump();
    }
    flush();
  }
  return no_fault();
}

bool Client::may_put() const {
  return link_ != nullptr && !draining_ && outstanding_ + gathered_tasks_ < kWindow;
}

void Client::pump() {
  if (link_ == nullptr) {
    if (!ready_.empty() && !link_wanted_) {
      link_wanted_ = true;
      interrupt_.raise();
    }
    return;
  }
  put_some_gathered();
  while (may_put() && !ready_.empty()) {
    const std::shared_ptr<Task> task = ready_.begin()->second;
    ready_.erase(ready_.begin());
    offer(task);
  }
}

void Client::put(std::span<const std::shared_ptr<Task>> tasks, const std::shared_ptr<Run>& run) {
  const Task& task = *tasks.front();
  PutRecord record;
  record.task = task.number;
  record.more = tasks.size() - 1;
  record.priority = task.priority;
  record.kernel = task.identity;
  if (record.kernel != 0) tell_name(record.kernel, task.kernel);
  record.work_items = task.items();
  record.allowed = task.allowed;
  record.preferred = task.preferred;
  const bool tells = (task.flags & MCL_FLAG_NO_RES) == 0;
  for (const Argument& argument : task.arguments) {
    if (!argument.is_buffer()) continue;
    if (argument.resident == nullptr) {
      record.temporary += argument.size;
    } else if (tells && record.arguments < kMaxResidentArguments) {
      ++record.arguments;
    }
  }
  for (const auto& one : tasks) {
    one->link = link_number_;
    one->state = TaskState::kPut;
    one->run = run;
  }
  if (run != nullptr) {
    run->left = static_cast<std::uint32_t>(tasks.size());
    run->ended.task = task.number;
  }
  outstanding_ += tasks.size();
  // Where the daemon has a run of ours already it need not look at once: flush() sees to it that it
  // does where a device would be idle meanwhile.
  const Urgency urgency =
      run == nullptr || runs_queued_.empty() ? Urgency::kOwn : Urgency::kNone;
  if (run != nullptr) {
    runs_queued_.push_back({task.number, devices_of(task.allowed), false});
    looks_for_room_ = true;
  }
  post(Record::of(record), urgency);
  if (record.arguments != 0) post_arguments(task, record.arguments, urgency);
}

// Once for each kernel and daemon.
void Client::tell_name(std::uint64_t identity, const std::string& name) {
  if (named_.size() >= kMaxKernelNames || !named_.insert(identity).second) return;
  NameKernelRecord record;
  record.kernel = identity;
  set_text(record.name, name);
  post(Record::of(record), Urgency::kNone);
}

// The first `left` of its resident ones.
void Client::post_arguments(const Task& task, std::size_t left, Urgency urgency) {
  ArgumentsRecord last;
  for (const Argument& argument : task.arguments) {
    if (argument.resident == nullptr || left == 0) continue;
    const auto access = (argument.kernel_reads() || !argument.kernel_writes() ? 1U : 0U) |
                        (argument.kernel_writes() ? 2U : 0U);
    last.access[last.count] = static_cast<std::uint8_t>(access);
    last.entries[last.count++] = {argument.resident->number, argument.resident->where.size()};
    if (--left != 0 && last.count < ArgumentsRecord::kMost) continue;
    post(Record::of(last), urgency);
    last = {};
  }
}

void Client::post(const Record& record, Urgency urgency) {
  if (link_ == nullptr) return;
  unsent_.push_back(record);
  unsent_urgency_ = std::max(unsent_urgency_, urgency);
}

Urgency Client::urgency_of_end(OwnDevice device) {
  if (in_flight_[device].now > in_flight_[device].half) return Urgency::kNone;
  return outstanding_ > granted_ ? Urgency::kOwn : Urgency::kOthers;
}

void Client::flush() {
  constexpr std::size_t kAtOnce = 64;
  if (std::exchange(looks_for_room_, false) && must_be_heard()) unsent_urgency_ = Urgency::kOwn;
  const bool is_own = unsent_urgency_ == Urgency::kOwn;
  // What it may sleep over has been sent before: a grant has told since that a device has room.
  if (link_ != nullptr && is_own && unsent_.empty()) static_cast<void>(link_->send({}));
  std::size_t sent = 0;
  while (link_ != nullptr && sent < unsent_.size()) {
    auto batch = std::span(std::as_const(unsent_)).subspan(sent);
    batch = batch.first(std::min(batch.size(), kAtOnce));
    if (!link_->send(batch, unsent_urgency_)) {
      batch = batch.first(1);
      if (!link_->send(batch, unsent_urgency_)) {
        // The daemon empties its ring all the time; the service thread tries again soon.
        interrupt_.raise();
        unsent_.erase(unsent_.begin(), unsent_.begin() + static_cast<std::ptrdiff_t>(sent));
        return;
      }
    }
    sent += batch.size();
  }
  unsent_.clear();  // keeps its memory
  unsent_urgency_ = Urgency::kNone;
  if (is_own) note_heard();
}

void Client::set_status(Task& task, TaskState state, std::uint64_t status) {
  task.state = state;
  if (task.handle != nullptr) __atomic_store_n(&task.handle->status, status, __ATOMIC_RELEASE);
}

// Ends the task and, if it failed, all that depend on it; makes others ready.
void Client::end(const std::shared_ptr<Task>& task, Fault failure) {
  const bool succeeded = !failure;
  const std::string reason = failure.reason;
  end_one(*task, std::move(failure));
  TaskGraph::Consequences consequences = graph_.end(task->number, succeeded);
  for (const auto& [number, because] : consequences.failed) {
    const std::shared_ptr<Task> dependent = tasks_.at(number);
    end_one(*dependent,
            fault(MCL_ERR_DEPEND, "task {}, which it depends on, failed: {}", because, reason));
  }
  for (const std::uint64_t number : consequences.ready) {
    const std::shared_ptr<Task>& next = tasks_.at(number);
    ready_.emplace(std::pair(-std::int64_t{next->priority}, number), next);
  }
}

void Client::end_one(Task& task, Fault failure) {
  AMASIA_CHECK(task.state != TaskState::kEnded, "a task ends twice");
  for (Argument& argument : task.arguments) {
    if (argument.resident != nullptr) --argument.resident->tasks;
  }
  task.failure = std::move(failure);
  if (task.sharing >= 0 && link_ != nullptr) {
    TaskPacket packet;
    packet.head.kind = PacketKind::kTaskEnded;
    packet.task = static_cast<std::uint64_t>(task.sharing);
    packet.error = static_cast<std::uint32_t>(task.failure.code);
    static_cast<void>(link_->send_packet(packet));
  }
  if (task.handle != nullptr) {
    task.handle->ret = task.failure ? MCL_RET_ERROR : MCL_RET_SUCCESS;
  }
  // Before it is seen to have ended: who frees the handle may end what the function works on.
  if (task.on_end != nullptr) {
    task.on_end(task.on_end_context, -task.failure.code, task.failure.reason.c_str());
  }
  set_status(task, TaskState::kEnded, MCL_REQ_COMPLETED);
  task.ended.store(1, std::memory_order_seq_cst);  // partner: wait(), which counts itself first
  if (task.sleepers.load(std::memory_order_seq_cst) != 0) os::futex_wake(task.ended, 1 << 20);
  const bool last = unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  tasks_.erase(task.number);  // the caller holds a reference
  if (last) {
    all_ended_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(all_ended_, 1 << 20);
  }
}

bool Client::wait(Task& task, Nanos deadline) {
  const auto ended = [&] { return task.ended.load(std::memory_order_acquire) != 0; };
  if (ended()) return true;
  wait_for_begun(task, deadline);
  if (ended()) return true;
  Nanos now = os::monotonic_now();
  Patience& patience = own_patience;
  attend();
  for (Nanos until = now + settings_.spin;
       !ended() && patience.lasts(now, std::min(until, deadline)); now = os::monotonic_now()) {
    bool any = drain(false);
    any |= run_quick_jobs(&task, deadline);
    if (any) {
      until = os::monotonic_now() + settings_.spin;
    } else {
      yield(patience);
    }
  }
  leave();
  task.sleepers.fetch_add(1, std::memory_order_seq_cst);
  while (!ended()) {
    const Nanos left = deadline - os::monotonic_now();
    if (left <= 0) break;
    os::futex_wait(task.ended, 0, deadline == INT64_MAX ? -1 : left);
  }
  task.sleepers.fetch_sub(1, std::memory_order_seq_cst);
  empty_graveyard();
  return ended();
}

void Client::wait_all() {
  Patience& patience = own_patience;
  attend();
  Nanos until = os::monotonic_now() + settings_.spin;
  while (unfinished() != 0 && patience.lasts(os::monotonic_now(), until)) {
    bool any = drain(false);
    any |= run_quick_jobs(nullptr, 0);
    if (any) {
      until = os::monotonic_now() + settings_.spin;
    } else {
      yield(patience);
    }
  }
  leave();
  for (;;) {
    const std::uint32_t seen = all_ended_.load(std::memory_order_seq_cst);
    if (unfinished() == 0) return empty_graveyard();
    os::futex_wait(all_ended_, seen, -1);
  }
}

TaskState Client::state_of(const Task& task) {
  return task.state.load(std::memory_order_acquire);
}

void Client::forget_handle(Task& task) {
  Locked lock(*this);
  task.handle = nullptr;
}

int Client::number_of(const Task& task) const {
  const auto place = static_cast<unsigned>(task.device);
  const auto first = std::find_if(shown_.begin(), shown_.end(), [&](OwnDevice shown) {
    return (same_[shown] >> place & 1) != 0;
  });
  return static_cast<int>(first - shown_.begin());
}

std::size_t Client::running_on(std::size_t device_number) {
  const DeviceSet places = same_[shown_[device_number]];
  Locked lock(*this);
  return static_cast<std::size_t>(
      std::count_if(tasks_.begin(), tasks_.end(), [&](const auto& one) {
        const Task& task = *one.second;
        return task.state >= TaskState::kGranted && (places >> task.device & 1) != 0;
      }));
}

}  // namespace amasia::devices
