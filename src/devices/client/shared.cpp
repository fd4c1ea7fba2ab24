// SPDX-License-Identifier: Apache-2.0
// Buffers and tasks that several processes share, through the daemon.
#include <algorithm>
#include <cerrno>

#include "devices/client/client.hpp"

namespace amasia::devices {
namespace {

constexpr Nanos kAnswerLimit = 10 * base::kSecond;
// How long a shared buffer that is not there yet is waited for.
constexpr Nanos kAppearLimit = base::kSecond;

Fault no_daemon() { return {MCL_ERR_SRVCOMM, "there is no daemon, or it ended meanwhile"}; }

}  // namespace

// The connection; a new one where the daemon has ended.
std::shared_ptr<Link> Client::connected_link() {
  {
    Locked lock(*this);
    if (link_ != nullptr) return link_;
    link_wanted_ = true;
  }
  interrupt_.raise();
  for (const Nanos deadline = os::monotonic_now() + kAnswerLimit;
       os::monotonic_now() < deadline;) {
    {
      Locked lock(*this);
      if (link_ != nullptr || !link_wanted_) return link_;
    }
    os::wait_readable(nullptr, 0, base::kMillisecond);
  }
  return nullptr;
}

template <typename T>
Fault Client::ask(T packet, std::span<const int> descriptors, Nanos deadline, bool* answered,
                  Link::Received* reply) {
  *answered = false;
  const std::shared_ptr<Link> link = connected_link();
  if (link == nullptr) return no_daemon();
  std::uint32_t request = 0;
  {
    Locked lock(*this);
    request = packet.head.request = ++last_request_;
    asked_[request] = true;
    if (link_ != link || !link->send_packet(packet, descriptors).ok()) {
      asked_.erase(request);
      return no_daemon();
    }
  }
  for (;;) {
    const std::uint32_t seen = reply_posts_.load(std::memory_order_seq_cst);
    {
      Locked lock(*this);
      if (auto found = replies_.extract(request); !found.empty()) {
        if (found.mapped().lost) return no_daemon();
        *answered = true;
        *reply = std::move(found.mapped().packet);
        return no_fault();
      }
      if (os::monotonic_now() >= deadline) {
        asked_.erase(request);
        return no_fault();
      }
    }
    const Nanos left = deadline - os::monotonic_now();
    os::futex_wait(reply_posts_, seen, std::max<Nanos>(left, 0));
  }
}

Fault Client::open_shared(const std::string& name, Bytes size, bool create, bool replace,
                          void** address) {
  OpenSharedPacket packet;
  if (name.empty() || name.size() > 63 || name.find('/') != std::string::npos || size == 0) {
    return fault(MCL_ERR_INVARG,
                 "shared buffer '{}' of {} bytes (allowed: a name of 1 … 63 bytes without '/', at "
                 "least a byte)",
                 name, size);
  }
  set_text(packet.name, name);
  packet.size = size;
  packet.create = create ? 1 : 0;
  packet.replace = replace ? 1 : 0;
  os::Descriptor memory;
  if (create) {
    auto made = os::make_sealed_memory("amasia-shared-buffer",
                                       base::round_up(size, base::kPageSize));
    if (!made.ok()) return fault(MCL_ERR_SHMEM, "{}", made.error().message);
    memory = std::move(made).value();
  }
  const int handed = memory.get();
  Link::Received received;
  SharedPacket reply;
  // Who makes it may be a little later than who looks for it.
  const Nanos appears_by = os::monotonic_now() + (create ? 0 : kAppearLimit);
  for (Nanos pause = base::kMillisecond;; pause = std::min(2 * pause, 32 * base::kMillisecond)) {
    bool answered = false;
    if (Fault wrong = ask(packet, std::span(&handed, create ? 1 : 0),
                          os::monotonic_now() + kAnswerLimit, &answered, &received)) {
      return wrong;
    }
    if (!answered || !received.read(&reply)) {
      return fault(MCL_ERR_SRVCOMM, "the daemon does not answer about shared buffer '{}'", name);
    }
    if (reply.code != ENOENT || os::monotonic_now() >= appears_by) break;
    os::wait_readable(nullptr, 0, pause);
  }
  if (reply.code != 0 || received.descriptors.size() != 1) {
    return fault(MCL_ERR_SHMEM, "shared buffer '{}' of {} bytes: {}", name, size,
                 reply.code == ENOENT ? "there is none of this name"
                 : reply.code == EINVAL ? "the one of this name is smaller"
                                        : "the daemon refuses it");
  }
  const Bytes mapped = base::round_up(size, base::kPageSize);
  const auto there = os::sealed_memory_size(received.descriptors[0].get());
  std::uintptr_t at = 0;
  if (!there.ok() || there.value() < size ||
      os::map_shared(received.descriptors[0].get(), 0, mapped, os::Placement::kAnywhere, &at) !=
          0) {
    return fault(MCL_ERR_SHMEM, "shared buffer '{}' cannot be mapped", name);
  }
  *address = reinterpret_cast<void*>(at);
  // Tasks use parts of it, which shall be parts of one buffer. It fails only where memory that the
  // program has given back since is registered there: then the first task registers what it uses.
  const bool registered = !register_buffer(*address, size);
  Locked lock(*this);
  if (registered) buffers_.at(static_cast<std::byte*>(*address))->is_shared = true;
  shared_[*address] = {name, mapped};
  return no_fault();
}

bool Client::close_shared(void* address) {
  SharedMemory memory;
  std::shared_ptr<Link> link;
  {
    Locked lock(*this);
    auto found = shared_.extract(address);
    if (found.empty()) return false;
    memory = found.mapped();
    link = link_;
  }
  static_cast<void>(unregister_buffer(address));  // it may have been resident
  os::unmap(reinterpret_cast<std::uintptr_t>(address), memory.size);
  CloseSharedPacket packet;
  set_text(packet.name, memory.name);
  Locked lock(*this);
  if (link != nullptr) static_cast<void>(link->send_packet(packet));
  return true;
}

Fault Client::publish(Task& task) {
  const std::shared_ptr<Link> link = connected_link();
  if (link == nullptr) return no_daemon();
  Locked lock(*this);
  task.sharing = ++last_sharing_;
  TaskPacket packet;
  packet.head.kind = PacketKind::kPublishTask;
  packet.task = static_cast<std::uint64_t>(task.sharing);
  if (!link->send_packet(packet).ok()) return no_daemon();
  return no_fault();
}

Fault Client::watch(std::int32_t process, std::uint32_t number, Nanos deadline, bool* ended,
                    int* error) {
  TaskPacket question;
  question.head.kind = PacketKind::kWatchTask;
  question.process = process;
  question.task = number;
  question.wait = deadline != 0 ? 1 : 0;
  bool answered = false;
  Link::Received received;
  *ended = false;
  const Nanos until = deadline != 0 ? deadline : os::monotonic_now() + kAnswerLimit;
  if (Fault wrong = ask(question, {}, until, &answered, &received)) return wrong;
  if (!answered) return no_fault();
  TaskPacket reply;
  if (!received.read(&reply) || reply.state == SharedTaskState::kUnknown) {
    return fault(MCL_ERR_INVREQ, "process {} has no shared task {}", process, number);
  }
  *ended = reply.state == SharedTaskState::kEnded;
  *error = static_cast<int>(reply.error);
  return no_fault();
}

}  // namespace amasia::devices
