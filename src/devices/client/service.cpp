// SPDX-License-Identifier: Apache-2.0
// What a client does with what the daemon says.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <span>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

Fault why_refused(RefuseReason reason) {
  if (reason == RefuseReason::kQuota) {
    return fault(MCL_ERR_QUOTA,
                 "the task needs more memory on a device than the daemon grants one program (its "
                 "policy's quota-memory)");
  }
  if (reason == RefuseReason::kNoDevice) {
    return fault(MCL_ERR_INVDEV,
                 "the daemon serves {} devices of other programs already, and none that the task "
                 "may run on",
                 kMaxDevices);
  }
  return fault(MCL_ERR_DEVMEM, "the daemon has no device that can hold the task");
}

}  // namespace

void Client::serve(void* client) {
  os::set_thread_name("amasia-service");
  static_cast<Client*>(client)->serve_loop();
}

void Client::serve_loop() {
  while (!stopping_.load()) {
    std::shared_ptr<Link> link;
    bool wanted = false, unsent = false;
    {
      Locked lock(*this);
      flush();
      link = link_;
      wanted = link_wanted_;
      unsent = !unsent_.empty();
    }
    if (link == nullptr) {
      // What the daemon granted before it ended may have been read by this thread, in lose_link.
      if (run_quick_jobs(nullptr, 0)) continue;
      if (wanted) {
        reconnect();
        continue;
      }
      const int interrupt = interrupt_.descriptor();
      os::wait_readable(&interrupt, 1, -1);
      interrupt_.clear();
      continue;
    }
    bool any = drain(true);
    while (run_quick_jobs(nullptr, 0)) any = true;
    if (any) continue;
    // Threads that attend to the ring take it from the daemon that this one need be woken.
    if (attending_.load(std::memory_order_seq_cst) == 0) {
      os::MutexLock reading(receive_);
      if (!link->may_sleep()) continue;
    }
    // Where something is unsent the ring is full: it is being emptied, or the daemon has ended.
    if (unsent) os::yield_core();
    const unsigned ready = link->wait(interrupt_, unsent ? 0 : -1);
    if ((ready & Link::kInterrupted) != 0) interrupt_.clear();
    if ((ready & Link::kPackets) != 0) read_packets();
  }
}

// Whether somebody attends is known to the ring by its `sleeps`: the first that comes takes it
// back, the last that goes sets it again and looks once more.
void Client::attend() {
  std::shared_ptr<Link> link;
  {
    Locked lock(*this);
    link = link_;
  }
  attending_.fetch_add(1, std::memory_order_seq_cst);
  if (link != nullptr) link->attend();
}

void Client::leave() {
  if (attending_.fetch_sub(1, std::memory_order_seq_cst) != 1) return;
  std::shared_ptr<Link> link;
  bool something = false;
  {
    Locked lock(*this);
    link = link_;
    something = !jobs_.empty();  // read by threads that had no time to run them
  }
  if (link != nullptr) {
    os::MutexLock reading(receive_);
    something |= !link->may_sleep();
  }
  if (something) interrupt_.raise();
}

bool Client::drain(bool own_thread) {
  if (!own_thread) {
    if (!receive_.try_lock()) return false;
  } else {
    receive_.lock();
  }
  std::shared_ptr<Link> link;
  {
    Locked lock(*this);
    link = link_;
  }
  bool any = false;
  while (link != nullptr && !link->nothing_received()) {
    std::array<Record, 64> records;
    std::size_t count = 0;
    while (count < records.size() && link->receive(&records[count]) == RingState::kOk) ++count;
    if (count == 0) break;
    any = true;
    Locked lock(*this);
    for (const Record& record : std::span(records).first(count)) receive(record);
    pump();
    flush();
  }
  receive_.unlock();
  return any;
}

void Client::receive(const Record& record) {
  const ShortRecord content = record.as<ShortRecord>();
  switch (content.kind) {
    case RecordKind::kGrant: {
      InFlight& there = in_flight_[content.device];
      for (auto& task : answered(content.number)) {
        task->device = content.device;
        for (Argument& argument : task->arguments) {
          if (argument.resident != nullptr) ++argument.resident->running[content.device];
        }
        ++granted_;
        ++there.now;
        set_status(*task, TaskState::kGranted, MCL_REQ_INPROGRESS);
        enqueue({std::move(task), nullptr, content.device}, true);
      }
      there.half = there.now / 2;
      if (content.lease != 0) {
        leased_ |= devices_of(DeviceSet{1} << content.device);
      }
      return;
    }
    case RecordKind::kRefuse: {
      const auto reason = static_cast<RefuseReason>(content.reason);
      for (const auto& task : answered(content.number)) {
        --outstanding_;
        task->run = nullptr;
        if (reason == RefuseReason::kDraining) {
          draining_ = true;
          set_status(*task, TaskState::kWaiting, MCL_REQ_PENDING);
          ready_.emplace(std::pair(-std::int64_t{task->priority}, task->number), task);
        } else {
          end(task, why_refused(reason));
        }
      }
      if (draining_) scatter();
      return;
    }
    case RecordKind::kEvict: {
      const auto found = buffers_by_number_.find(content.number);
      if (found == buffers_by_number_.end()) return;  // it has gone meanwhile, and said so
      for (DeviceSet left = same_[content.device]; left != 0; left &= left - 1) {
        const auto place = static_cast<OwnDevice>(std::countr_zero(left));
        if (!found->second->copies.contains(place)) continue;
        found->second->to_evict |= DeviceSet{1} << place;
        if (found->second->running[place] == 0 && !found->second->moving) {
          enqueue({nullptr, found->second, place}, true);
        }
      }
      return;
    }
    case RecordKind::kRevoke:
      leased_ = 0;
      return;
    case RecordKind::kDraining:
      draining_ = true;
      scatter();
      return;
    default:
      base::log_line(base::LogLevel::kError, "the daemon sent a record of kind {}",
                     static_cast<unsigned>(content.kind));
  }
}

void Client::read_packets() {
  std::shared_ptr<Link> link;
  {
    Locked lock(*this);
    link = link_;
  }
  for (;;) {
    auto received = link->receive_packet();
    if (!received.ok()) {
      std::string why = received.error().message;
      return lose_link(why);
    }
    if (!received.value().has_value()) return;
    Link::Received& packet = *received.value();
    if (packet.kind() == PacketKind::kRefused) {
      RefusedPacket refused;
      if (packet.read(&refused)) {
        base::log_line(base::LogLevel::kError, "the daemon refuses to go on: {}",
                       text_of(refused.sentence));
      }
      continue;
    }
    PacketHead head;
    if (packet.bytes.size() < sizeof head) continue;
    std::memcpy(&head, packet.bytes.data(), sizeof head);
    Locked lock(*this);
    if (asked_.erase(head.request) != 0) replies_[head.request].packet = std::move(packet);
    reply_posts_.fetch_add(1, std::memory_order_seq_cst);
    os::futex_wake(reply_posts_, 1 << 20);
  }
}

void Client::lose_link(const std::string& why) {
  drain(true);  // what it said before it ended holds
  os::MutexLock reading(receive_);
  Locked lock(*this);
  link_.reset();
  unsent_.clear();
  scatter();
  forget_runs();
  std::vector<std::shared_ptr<Task>> lost;
  for (const auto& [number, task] : tasks_) {
    if (task->state == TaskState::kPut) lost.push_back(task);
  }
  // Where it drained it has told of every task that it would not run.
  for (const auto& task : lost) {
    if (task->state == TaskState::kEnded) continue;
    end(task, fault(MCL_ERR_SRVCOMM, "the daemon ended while the task was in its hands ({})", why));
  }
  for (const auto& [request, unused] : asked_) replies_[request].lost = true;
  asked_.clear();
  reply_posts_.fetch_add(1, std::memory_order_seq_cst);
  os::futex_wake(reply_posts_, 1 << 20);
  pump();
}

// Tasks are ready and there is no daemon.
void Client::reconnect() {
  auto made = Link::open(settings_.link, descriptions_);
  Locked lock(*this);
  if (made.ok()) {
    adopt(std::move(made).value());
    // The new daemon knows of no copies; those that are there are announced with their next use.
    pump();
    flush();
    return;
  }
  link_wanted_ = false;
  while (!ready_.empty()) {
    const std::shared_ptr<Task> task = ready_.begin()->second;
    ready_.erase(ready_.begin());
    end(task, fault(MCL_ERR_SRVCOMM, "{}", made.error().message));
  }
}

}  // namespace amasia::devices
