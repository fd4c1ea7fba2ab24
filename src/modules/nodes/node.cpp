// SPDX-License-Identifier: Apache-2.0
// Tasks that are sent, that come, and their answers.
#include "modules/nodes/node.hpp"

#include <cstring>

namespace amasia::nodes::detail {
namespace {

struct Text {
  unsigned node;
  std::string text;
};

// An exception as text, with the node where it was thrown first.
Text text_of(const std::exception_ptr& error, NodeId self) {
  try {
    std::rethrow_exception(error);
  } catch (const remote_error& known) {
    const std::string prefix = remote_error(known.node(), "").what();
    return {known.node(), std::string(known.what()).substr(prefix.size())};
  } catch (const std::exception& known) {
    return {self.value, known.what()};
  } catch (...) {
    return {self.value, "an exception that is no std::exception"};
  }
}

std::exception_ptr error_in(const Answer& answer) {
  return std::make_exception_ptr(remote_error(answer.head.failed_on, std::string(answer.text)));
}

std::exception_ptr error_of(const tasks::future<void>& ended) {
  try {
    ended.get();
    return nullptr;
  } catch (...) {
    return std::current_exception();
  }
}

}  // namespace

Node::Node(std::unique_ptr<Connection> connection, ProgramImage image, tasks::module_host& host)
    : connection_(std::move(connection)),
      image_(std::move(image)),
      host_(host),
      self_(connection_ != nullptr ? connection_->self() : base::kOrigin),
      count_(connection_ != nullptr ? connection_->node_count() : 1),
      seeker_(self_, count_),
      random_(0x9e3779b97f4a7c15u * (self_.value + 1u)),
      judge_(count_),
      waits_(count_) {}

Node::~Node() { leave(); }

void Node::start() {
  if (connection_ != nullptr) connection_->start(*this, *this);
}

void Node::leave() {
  left_.store(true);  // partner: WhileHere
  // Brief: who is here takes two mutexes, under which nobody waits, and sends, which never waits
  // for a peer (fabric.hpp, F5). What the program does about a deadlock is done by the thread that
  // receives, which stop() waits for.
  while (reporting_.load() != 0) os::yield_core();
  if (connection_ != nullptr) connection_->stop();
}

void Node::leave_at_exit() {
  if (connection_ == nullptr) return;
  bool runs = false;
  {
    const os::MutexLock lock(mutex_);
    runs = is_serving_;
  }
  runs ? connection_->stop_thread() : connection_->stop();
}

void Node::end_job_in_order() {
  if (connection_ == nullptr) return;
  connection_->finishing();
  for (std::uint16_t node = 1; node < count_; ++node) {
    connection_->fabric().send(NodeId(node), kJobOverMessage, {});
  }
}

void Node::malformed(NodeId from, std::string_view what) {
  connection_->end_job(
      fmt::format("node {} sent what node {} cannot take: {}", from.value, self_.value, what));
}

void Node::on_peer_lost(NodeId peer, std::string_view why) {
  if (connection_->is_ending()) return;
  connection_->end_job(fmt::format("node {} was lost: {}", peer.value, why));
}

void Node::on_message(const fabric::Incoming& message) {
  connection_->show_progress();
  take(message);
  if (is_counted(message.type)) counted_received_.fetch_add(1);
  look_whether_stalled(false);
}

void Node::take(const fabric::Incoming& message) {
  switch (message.type) {
    case kTaskMessage:
      return take_task_message(message.from, message.body);
    case kTasksMessage:
      return take_tasks_message(message.from, message.body);
    case kAnswerMessage:
      return take_answer_message(message.from, message.body);
    case kRequestMessage:
    case kLifelineMessage:
    case kNothingMessage:
      if (!message.body.empty()) malformed(message.from, "a request that is too long");
      return take_seek_message(message.from, message.type);
    case kJobOverMessage:
      if (message.from != base::kOrigin || self_ == base::kOrigin) {
        malformed(message.from, "the end of the job, which only the origin tells");
      }
      connection_->expect_end();
      return job_over_.put();
    case kStopMessage:
      if (message.from != self_) malformed(message.from, "an order to stop");
      return connection_->stop_receiving();
    case kStalledMessage:
      return take_stalled_message(message.from, message.body);
    case kAskMessage:
      return take_ask_message(message.from, message.body);
    case kStallAnswerMessage:
      return take_stall_answer_message(message.from, message.body);
    default:
      malformed(message.from, fmt::format("a message of type 0x{:x}", message.type));
  }
}

TaskHead Node::head_of(const Work& work, std::uint64_t number) const {
  const auto code = image_.position_of(reinterpret_cast<const void*>(work.perform));
  AMASIA_CHECK(code.has_value(), "that its code is everywhere was seen when the task was made");
  return {.number = number,
          .code = *code,
          .bytes = work.bytes,
          .result_bytes = work.result_bytes,
          .wants_value = work.wants_value};
}

void Node::must_be_everywhere(const Parcel& parcel) const {
  if (image_.position_of(reinterpret_cast<const void*>(parcel.perform))) return;
  throw std::logic_error(
      "the code of a callable for other nodes is in a library that was loaded after "
      "nodes::library was made: other nodes do not have it");
}

void Node::send(NodeId to, const Parcel& parcel, Sink* sink) {
  must_be_everywhere(parcel);
  auto* const record = new Record;
  record->work.perform = parcel.perform;
  record->work.bytes = parcel.bytes;
  record->work.result_bytes = parcel.result_bytes;
  record->work.wants_value = sink != nullptr;
  record->state = AwayState::kHeld;
  record->value = sink != nullptr ? ValueState::kAwaited : ValueState::kNotWanted;
  record->to = to;
  record->sink = sink;
  record->held = host_.hold_scope_of_others();
  TaskHead head = head_of(record->work, 0);
  {
    const os::MutexLock lock(mutex_);
    head.number = away_.add(record);
  }
  counters_.sent.fetch_add(1, std::memory_order_relaxed);
  std::vector<std::byte> message;
  append_task(message, head, parcel.body);
  send_counted(to, kTaskMessage, message);
}

bool Node::read_work(NodeId from, const ArrivedTask& task, Work& work) {
  const void* const code = image_.function_at(task.head.code);
  if (code == nullptr) return false;
  work.perform = reinterpret_cast<void (*)(void*, void*)>(const_cast<void*>(code));
  work.bytes = task.head.bytes;
  work.result_bytes = task.head.result_bytes;
  work.wants_value = task.head.wants_value != 0;
  work.from = from;
  work.number = task.head.number;
  work.body = std::make_unique_for_overwrite<std::byte[]>(work.bytes);
  std::memcpy(work.body.get(), task.body.data(), work.bytes);
  return true;
}

void Node::take_task_message(NodeId from, std::span<const std::byte> body) {
  const auto task = take_task(body);
  Work work;
  if (!task || !body.empty()) malformed(from, "a task of another length than it says");
  if (!read_work(from, *task, work)) malformed(from, "a task whose code is not there");
  counters_.received.fetch_add(1, std::memory_order_relaxed);
  do_soon(std::move(work));
}

void Node::do_soon(Work work) {
  const os::MutexLock lock(mutex_);
  if (!is_serving_) {
    early_.push_back(std::move(work));
    return;
  }
  host_.async_within(serving_,
                     [this, work = std::move(work)]() mutable { perform(std::move(work)); });
}

void Node::begin_serving() {
  if (is_alone()) return;
  std::vector<Work> early;
  {
    const os::MutexLock lock(mutex_);
    serving_ = host_.hold_scope_of_others();
    is_serving_ = true;
    early.swap(early_);
  }
  for (Work& work : early) do_soon(std::move(work));
}

void Node::end_serving() noexcept {
  tasks::hold held;
  const os::MutexLock lock(mutex_);
  is_serving_ = false;
  std::swap(held, serving_);
}

// In a task: what came from another node, in a finish scope of its own.
void Node::perform(Work work) {
  const tasks::span span("nodes", "a task of another node");
  connection_->show_progress();
  give_surplus();
  ResultRoom result(work.result_bytes);
  std::exception_ptr thrown;
  const auto ended = tasks::finish_future([&] {
    try {
      work.perform(work.body.get(), result.data());
    } catch (...) {
      if (!work.wants_value) throw;
      thrown = std::current_exception();
    }
  });
  const std::span<const std::byte> value(static_cast<const std::byte*>(result.data()),
                                         thrown == nullptr ? work.result_bytes : 0);
  FirstAnswer first = first_answer(work.wants_value, ended.ready());
  const std::exception_ptr failed = first.end ? error_of(ended) : nullptr;
  if (first.value && first.end && (thrown == nullptr || failed == nullptr)) {
    const std::uint32_t flags = kHasValue | kHasEnd | (failed != nullptr ? kTextIsOfEnd : 0);
    return answer(work, flags, value, failed != nullptr ? failed : thrown);
  }
  if (first.value) answer(work, kHasValue, value, thrown);
  const auto tell_end = [this](const Work& of, const std::exception_ptr& error) {
    answer(of, kHasEnd | (error != nullptr ? kTextIsOfEnd : 0), {}, error);
  };
  if (first.end) return tell_end(work, failed);
  work.body.reset();
  tasks::async_await([tell_end, ended, work = std::move(work)] { tell_end(work, error_of(ended)); },
                     ended);
}

void Node::answer(const Work& work, std::uint32_t flags, std::span<const std::byte> value,
                  std::exception_ptr error) {
  Text text{self_.value, {}};
  if (error != nullptr) {
    text = text_of(error, self_);
    text.text.resize(std::min<std::size_t>(text.text.size(), kMostText));
    if (text.text.empty()) text.text.push_back('?');  // that there is one says that it failed
  }
  if ((flags & kHasValue) == 0 || !work.wants_value) value = {};
  const AnswerHead head{.number = work.number,
                        .flags = flags,
                        .value_bytes = static_cast<std::uint32_t>(value.size()),
                        .text_bytes = static_cast<std::uint32_t>(text.text.size()),
                        .failed_on = text.node};
  std::vector<std::byte> body(value.begin(), value.end());
  const auto bytes = std::as_bytes(std::span(text.text));
  body.insert(body.end(), bytes.begin(), bytes.end());
  send_counted(work.from, kAnswerMessage, fabric::bytes_of(head), body);
}

// To where the task came from, for one that was taken on from here.
void Node::forward(const Record& record, const Answer& answer) {
  AnswerHead head = answer.head;
  head.number = record.work.number;
  std::vector<std::byte> body(answer.value.begin(), answer.value.end());
  const auto bytes = std::as_bytes(std::span(answer.text));
  body.insert(body.end(), bytes.begin(), bytes.end());
  send_counted(record.work.from, kAnswerMessage, fabric::bytes_of(head), body);
}

void Node::take_answer_message(NodeId from, std::span<const std::byte> body) {
  const auto answer = read_answer(body);
  if (!answer) malformed(from, "an answer of another length than it says");
  Record* record = nullptr;
  {
    const os::MutexLock lock(mutex_);
    record = away_.find(answer->head.number);
    const bool fits = record != nullptr && record->to == from &&
                      accept(record->value, answer->has_value(), answer->has_end()) &&
                      (!answer->has_value() || answer->value_failed() ||
                       answer->value.size() == record->work.result_bytes);
    if (!fits) malformed(from, "an answer that nobody waits for");
  }
  // Nobody else has the record until the end is noted: its ticket, if it is still to run, only
  // leaves a hold.
  settle_value(*record, *answer);
  if (!answer->has_end()) return;
  AwayStep next{};
  {
    const os::MutexLock lock(mutex_);
    next = step(record->state, AwayEvent::kEnd);
    if (next.action == AwayAction::kRefuse) malformed(from, "the end of a task that it has not");
    record->state = next.next;
    away_.remove(answer->head.number);
    if (answer->end_failed() && !record->is_foreign) record->error = error_in(*answer);
  }
  if (next.action == AwayAction::kNote) return;  // the ticket's from now on
  const std::unique_ptr<Record> owned(record);
  if (record->error != nullptr) record->held.fail(record->error);
  record->held.release();
}

void Node::settle_value(Record& record, const Answer& answer) {
  if (record.is_foreign) return forward(record, answer);
  if (!answer.has_value()) return;
  Sink* const sink = std::exchange(record.sink, nullptr);
  if (answer.value_failed()) return sink->fail(sink, error_in(answer));
  ResultRoom value(answer.value.size());
  if (!answer.value.empty()) std::memcpy(value.data(), answer.value.data(), answer.value.size());
  sink->put(sink, value.data());
}

}  // namespace amasia::nodes::detail
