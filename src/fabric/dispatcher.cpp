// SPDX-License-Identifier: Apache-2.0
#include "fabric/dispatcher.hpp"

namespace amasia::fabric {

void Dispatcher::set_handler(MessageType first, MessageType last, Handler* handler) {
  AMASIA_CHECK(first >= kFirstFreeType && first <= last && last < kTypeCount,
               "message types lie in [0x100, 0x400)");
  for (unsigned type = first; type <= last; ++type) {
    AMASIA_CHECK(table_[type] == nullptr || handler == nullptr, "a message type has one handler");
    table_[type] = handler;
  }
}

void Dispatcher::deliver(const Incoming& message) {
  AMASIA_CHECK(takes(message.type), "only messages that somebody takes are delivered");
  messages_in_.fetch_add(1, std::memory_order_relaxed);
  bytes_in_.fetch_add(message.body.size(), std::memory_order_relaxed);
  table_[message.type]->on_message(message);
}

void Dispatcher::report_lost(NodeId peer, std::string_view why) {
  if (lost_ != nullptr) lost_->on_peer_lost(peer, why);
}

void Dispatcher::count_queued(std::size_t body) {
  const Bytes now = bytes_queued_.fetch_add(body, std::memory_order_relaxed) + body;
  Bytes most = bytes_queued_max_.load(std::memory_order_relaxed);
  while (most < now &&
         !bytes_queued_max_.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

Statistics Dispatcher::statistics() const {
  Statistics s;
  s.messages_out = messages_out_.load(std::memory_order_relaxed);
  s.messages_in = messages_in_.load(std::memory_order_relaxed);
  s.bytes_out = bytes_out_.load(std::memory_order_relaxed);
  s.bytes_in = bytes_in_.load(std::memory_order_relaxed);
  s.frames_refused = frames_refused_.load(std::memory_order_relaxed);
  s.frames_reordered = frames_reordered_.load(std::memory_order_relaxed);
  s.bytes_queued = bytes_queued_.load(std::memory_order_relaxed);
  s.bytes_queued_max = bytes_queued_max_.load(std::memory_order_relaxed);
  return s;
}

}  // namespace amasia::fabric
