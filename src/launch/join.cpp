// SPDX-License-Identifier: Apache-2.0
#include "launch/join.hpp"

#include <unistd.h>

#include <cstdlib>
#include <span>
#include <vector>

#include "launch/messages.hpp"

namespace amasia::launch {
namespace {

Message make(MessageType type) {
  Message message;
  message.type = type;
  return message;
}

std::span<const std::byte> bytes_of(const Message& message) {
  return std::as_bytes(std::span(&message, 1));
}

// A message that cannot be sent has no reader any more, and the lifeline is about to end us.
void tell(const os::Descriptor& connection, const Message& message,
          std::span<const int> descriptors = {}) noexcept {
  static_cast<void>(os::send_packet(connection.get(), bytes_of(message), descriptors));
}

}  // namespace

Membership::Membership(NodeId self, std::uint32_t node_count, os::Descriptor connection,
                       os::Descriptor bootstrap, os::Descriptor lifeline, JobBoard board,
                       std::string cpu_group)
    : self_(self),
      node_count_(node_count),
      connection_(std::move(connection)),
      bootstrap_(std::move(bootstrap)),
      lifeline_(std::move(lifeline)),
      board_(std::move(board)),
      cpu_group_(std::move(cpu_group)) {}

void Membership::ready(std::span<const int> outputs) noexcept {
  // Release with JobBoard::describe's acquire.
  slot().state.store(NodeState::kServing, std::memory_order_release);
  tell(connection_, make(MessageType::kReady), outputs);
}

void Membership::failed(std::string_view sentence) noexcept {
  Message message = make(MessageType::kFailed);
  message.node = self_.value;
  message.set_text(sentence);
  tell(connection_, message);
}

void Membership::finishing() noexcept {
  slot().state.store(NodeState::kFinishing, std::memory_order_release);
  tell(connection_, make(MessageType::kFinishing));
}

bool below_launcher() noexcept {
  const char* name = std::getenv(kLauncherVariable);
  return name != nullptr && *name != '\0';
}

Result<std::optional<Membership>> join() {
  if (!below_launcher()) return std::optional<Membership>();
  auto connected = os::connect_abstract(std::getenv(kLauncherVariable));
  if (!connected.ok()) {
    return Error{"the launcher of this job is not there: " + connected.error().message,
                 connected.error().code};
  }
  os::Descriptor connection = std::move(connected).value();
  // Standard output and error go along, so that peers write where this process writes even if a
  // shell has redirected them.
  std::vector<int> outputs;
  for (const int output : {STDOUT_FILENO, STDERR_FILENO}) {
    if (os::is_open(output)) outputs.push_back(output);
  }
  if (outputs.size() != 2) outputs.clear();
  const Status sent =
      os::send_packet(connection.get(), bytes_of(make(MessageType::kJoin)), outputs);
  if (!sent.ok()) return sent.error();

  Message answer;
  auto packet = os::receive_packet(connection.get(), std::as_writable_bytes(std::span(&answer, 1)));
  if (!packet.ok()) return packet.error();
  if (packet.value().size == 0) return Error{"the launcher closed the connection", 0};
  if (const char* what = malformed(answer, packet.value().size); what != nullptr) {
    return Error{std::string("the launcher's answer cannot be used: ") + what, 0};
  }
  if (answer.type == MessageType::kAlone) return std::optional<Membership>();
  auto& handed = packet.value().descriptors;
  if (answer.type != MessageType::kMembership || handed.size() != kMembershipDescriptors) {
    return Error{"the launcher's answer is not one to a join", 0};
  }
  auto board = JobBoard::open(handed[static_cast<int>(MembershipDescriptor::kBoard)].release());
  if (!board.ok()) return board.error();
  os::Descriptor& lifeline = handed[static_cast<int>(MembershipDescriptor::kLifeline)];
  if (const Status armed = os::die_when_closed(lifeline.get()); !armed.ok()) return armed.error();
  return std::optional<Membership>(
      std::in_place, NodeId(static_cast<std::uint16_t>(answer.node)), answer.node_count,
      std::move(connection), std::move(handed[static_cast<int>(MembershipDescriptor::kBootstrap)]),
      std::move(lifeline), std::move(board).value(), std::string(answer.text_view()));
}

}  // namespace amasia::launch
