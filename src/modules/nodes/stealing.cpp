// SPDX-License-Identifier: Apache-2.0
// Flexible tasks: those that are here and may be taken, and those that this node takes.
#include <cstring>

#include "modules/nodes/node.hpp"

namespace amasia::nodes::detail {

void Node::offer(const Parcel& parcel, Sink* sink) {
  must_be_everywhere(parcel);
  auto* const record = new Record;
  Work& work = record->work;
  work.perform = parcel.perform;
  work.bytes = parcel.bytes;
  work.result_bytes = parcel.result_bytes;
  work.wants_value = sink != nullptr;
  work.body = std::make_unique_for_overwrite<std::byte[]>(parcel.bytes);
  std::memcpy(work.body.get(), parcel.body, parcel.bytes);
  record->value = sink != nullptr ? ValueState::kAwaited : ValueState::kNotWanted;
  record->sink = sink;
  {
    const os::MutexLock lock(mutex_);
    link_last(record);
  }
  tasks::async([this, record] { run_ticket(record); });
  give_surplus();
}

void Node::link_last(Record* record) {
  record->previous = open_last_;
  (open_last_ != nullptr ? open_last_->next : open_first_) = record;
  open_last_ = record;
  ++open_count_;
}

void Node::unlink(Record* record) {
  (record->previous != nullptr ? record->previous->next : open_first_) = record->next;
  (record->next != nullptr ? record->next->previous : open_last_) = record->previous;
  record->next = record->previous = nullptr;
  --open_count_;
}

void Node::run_ticket(Record* record) {
  AwayStep next{};
  {
    const os::MutexLock lock(mutex_);
    next = step(record->state, AwayEvent::kTicket);
    record->state = next.next;
    if (next.action == AwayAction::kDo) unlink(record);
    if (next.action == AwayAction::kHold) record->held = host_.hold_scope_of_others();
  }
  if (next.action == AwayAction::kHold) return;  // the record is the receiving thread's
  const std::unique_ptr<Record> owned(record);
  if (next.action == AwayAction::kDo) return do_here(record);
  if (record->error != nullptr) std::rethrow_exception(record->error);
}

void Node::do_here(Record* record) {
  if (record->is_foreign) return perform(std::move(record->work));
  give_surplus();
  Work& work = record->work;
  ResultRoom result(work.result_bytes);
  if (record->sink == nullptr) return work.perform(work.body.get(), result.data());
  Sink* const sink = std::exchange(record->sink, nullptr);
  try {
    work.perform(work.body.get(), result.data());
  } catch (...) {
    return sink->fail(sink, std::current_exception());
  }
  sink->put(sink, result.data());
}

std::size_t Node::tasks_to_spare() const {
  return tasks_to_give(open_count_, host_.some_worker_sleeps());
}

// The oldest, which in a tree are the largest.
Node::Gift Node::take_gift(NodeId to, bool for_lifeline) {
  Gift gift{.to = to};
  TasksHead head{.count = 0, .for_lifeline = for_lifeline};
  gift.bytes.resize(sizeof head);
  const std::size_t most = std::min<std::size_t>(tasks_to_spare(), kMostTasks);
  while (head.count < most && gift.bytes.size() < kMostBytesOfTasks) {
    Record* const record = open_first_;
    const AwayStep next = step(record->state, AwayEvent::kSteal);
    AMASIA_CHECK(next.action == AwayAction::kSend, "an open task is to be had");
    unlink(record);
    record->state = next.next;
    record->to = to;
    append_task(gift.bytes, head_of(record->work, away_.add(record)), record->work.body.get());
    ++head.count;
  }
  std::memcpy(gift.bytes.data(), &head, sizeof head);
  counters_.given.fetch_add(head.count, std::memory_order_relaxed);
  return gift;
}

// S2 of seeker.hpp: whenever a task comes to be, and whenever a worker begins one.
void Node::give_surplus() {
  // A lifeline that is laid right now finds by itself what is here.
  if (!is_asked_.load(std::memory_order_relaxed)) return;
  std::vector<Gift> gifts;
  {
    const os::MutexLock lock(mutex_);
    while (tasks_to_spare() > 0) {
      const auto thief = seeker_.surplus();
      if (!thief) break;
      gifts.push_back(take_gift(*thief, true));
    }
    is_asked_.store(seeker_.has_lifelines(), std::memory_order_relaxed);
  }
  for (const Gift& gift : gifts) send_gift(gift);
}

void Node::send_gift(const Gift& gift) {
  send_counted(gift.to, kTasksMessage, gift.bytes);
}

std::uint64_t Node::random() {  // xorshift
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return random_;
}

void Node::send_seek_messages(const SeekStep& step) {
  for (const SeekMessage& message : step.send) {
    fabric::MessageType type = kNothingMessage;
    if (message.kind == SeekKind::kRequest) {
      counters_.requests.fetch_add(1, std::memory_order_relaxed);
      type = kRequestMessage;
    } else if (message.kind == SeekKind::kLifeline) {
      counters_.lifelines.fetch_add(1, std::memory_order_relaxed);
      type = kLifelineMessage;
    }
    connection_->fabric().send(message.to, type, {});
  }
}

void Node::idle() {
  const WhileHere here(*this);
  if (is_alone() || here.is_too_late()) return;
  SeekStep step;
  {
    const os::MutexLock lock(mutex_);
    if (!is_serving_) return;
    step = seeker_.on_idle(random());
  }
  send_seek_messages(step);
}

void Node::take_seek_message(NodeId from, fabric::MessageType type) {
  SeekStep step;
  Gift gift;
  {
    const os::MutexLock lock(mutex_);
    const bool can_give = tasks_to_spare() > 0;
    const bool for_lifeline = type == kLifelineMessage;
    if (type == kNothingMessage) {
      step = seeker_.on_nothing(from, random());
    } else {
      step =
          for_lifeline ? seeker_.on_lifeline(from, can_give) : seeker_.on_request(from, can_give);
    }
    if (step.give) gift = take_gift(from, for_lifeline);
    is_asked_.store(seeker_.has_lifelines(), std::memory_order_relaxed);
  }
  if (step.refused != nullptr) malformed(from, step.refused);
  if (step.give) send_gift(gift);
  send_seek_messages(step);
}

void Node::take_tasks_message(NodeId from, std::span<const std::byte> body) {
  const auto arrived = read_tasks(body);
  if (!arrived) malformed(from, "tasks of another length than they say");
  {
    const os::MutexLock lock(mutex_);
    const SeekStep step = seeker_.on_tasks(from, arrived->head.for_lifeline != 0);
    if (step.refused != nullptr) malformed(from, step.refused);
  }
  counters_.stolen.fetch_add(arrived->tasks.size(), std::memory_order_relaxed);
  bool is_first = true;
  for (const ArrivedTask& task : arrived->tasks) {
    Work work;
    if (!read_work(from, task, work)) malformed(from, "a task whose code is not there");
    // One is done here whatever comes, so that no task travels for ever.
    std::exchange(is_first, false) ? do_soon(std::move(work)) : put_up(std::move(work));
  }
  give_surplus();
}

// Others may take it from here in their turn.
void Node::put_up(Work work) {
  auto record = std::make_unique<Record>();
  record->is_foreign = true;
  record->value = work.wants_value ? ValueState::kAwaited : ValueState::kNotWanted;
  record->work = std::move(work);
  const os::MutexLock lock(mutex_);
  AMASIA_CHECK(is_serving_, "a node that asks for tasks serves");
  link_last(record.get());
  host_.async_within(serving_, [this, mine = record.release()] { run_ticket(mine); });
}

statistics Node::get_statistics() const {
  const auto value = [](const std::atomic<std::uint64_t>& counter) {
    return counter.load(std::memory_order_relaxed);
  };
  return {.sent = value(counters_.sent),
          .received = value(counters_.received),
          .given = value(counters_.given),
          .stolen = value(counters_.stolen),
          .requests = value(counters_.requests),
          .lifelines = value(counters_.lifelines)};
}

}  // namespace amasia::nodes::detail
