// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>

#include "modules/nodes/node.hpp"

namespace amasia::nodes {
namespace {

// A process is one node of one job: what tasks that came from elsewhere find it by.
std::atomic<detail::Node*> this_node{nullptr};

detail::Node& node_here() {
  detail::Node* const node = this_node.load(std::memory_order_acquire);
  if (node == nullptr) {
    throw std::logic_error("there is no nodes::library in this program, or it has ended");
  }
  return *node;
}

// exit() before the library object ended: the other nodes and the launcher are to know that this is
// no loss.
void end_at_exit() {
  detail::Node* const node = this_node.exchange(nullptr);
  if (node == nullptr || node->self() != 0) return;
  node->end_job_in_order();
  node->leave_at_exit();
}

}  // namespace

remote_error::remote_error(unsigned node, const std::string& text)
    : std::runtime_error("node " + std::to_string(node) + ": " + text), node_(node) {}

library::library(tasks::runtime& workers) : workers_(workers) {
  static std::atomic<bool> is_there{false};
  if (is_there.exchange(true)) {
    throw std::logic_error("a process is one node: there is, or was, a nodes::library already");
  }
  workers_.attach(*this);
  for (unsigned number = 0; number < count(); ++number) {
    workers_.add_place({.name = "node" + std::to_string(number),
                        .type = tasks::place_type::node,
                        .number = static_cast<int>(number),
                        .next_to = {"interconnect"},
                        .without_workers = true});
  }
}

library::~library() {
  if (this_node.exchange(nullptr) == nullptr) return;  // exit() in run()
  node_->end_job_in_order();
  workers_.detach(*this);
}

void library::initialise(tasks::module_host& host) {
  ProgramImage image = ProgramImage::of_this_process();
  auto connection = Connection::join(image);
  node_ = std::make_unique<detail::Node>(std::move(connection), std::move(image), host);
  this_node.store(node_.get(), std::memory_order_release);
  if (node_->is_alone()) return;
  host.tell_me_of_idleness();
  host.judge_deadlocks();
  node_->start();
  std::atexit(end_at_exit);
}

void library::finalise() noexcept { node_->leave(); }
void library::idle() noexcept { node_->idle(); }
void library::stalled() noexcept { node_->stalled(); }

void library::serve_unless_origin() {
  if (node_->self() == 0) return;
  workers_.run([&] {
    const Serving while_it_lasts(*this);
    node_->wait_for_end_of_job();
  });
  workers_.write_trace();
  node_->leave();
  std::exit(0);
}

void library::begin_serving() { node_->begin_serving(); }
void library::end_serving() noexcept { node_->end_serving(); }

unsigned library::self() const noexcept { return node_->self(); }
unsigned library::count() const noexcept { return node_->count(); }
statistics library::statistics() const { return node_->get_statistics(); }

unsigned self() { return node_here().self(); }
unsigned count() { return node_here().count(); }
statistics this_node_statistics() { return node_here().get_statistics(); }

tasks::place at(unsigned node) {
  if (node >= count()) {
    throw std::out_of_range("there is no node " + std::to_string(node) + "; there are " +
                            std::to_string(count()) + ", from 0");
  }
  return tasks::find_place("node" + std::to_string(node));
}

namespace detail {

unsigned number_of(tasks::place at) {
  const unsigned nodes = count();
  const bool fits = at.valid() && at.type() == tasks::place_type::node && at.number() >= 0 &&
                    static_cast<unsigned>(at.number()) < nodes;
  if (!fits) {
    throw std::logic_error((at.valid() ? "the place '" + at.name() + "'" : "an invalid place") +
                           " stands for no node of this job");
  }
  return static_cast<unsigned>(at.number());
}

unsigned self() { return node_here().self(); }
bool is_alone() { return node_here().is_alone(); }

namespace {
// What the caller did wrong is thrown, and whoever waits for the value is told, too.
template <typename Body>
void or_fail(Sink* sink, Body body) {
  try {
    body();
  } catch (...) {
    if (sink != nullptr) sink->fail(sink, std::current_exception());
    throw;
  }
}
}  // namespace

void send(unsigned to, const Parcel& parcel, Sink* sink) {
  or_fail(sink, [&] { node_here().send(NodeId(static_cast<std::uint16_t>(to)), parcel, sink); });
}
void offer(const Parcel& parcel, Sink* sink) {
  or_fail(sink, [&] { node_here().offer(parcel, sink); });
}

}  // namespace detail
}  // namespace amasia::nodes
