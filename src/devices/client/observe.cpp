// SPDX-License-Identifier: Apache-2.0
#include "devices/client/observe.hpp"

#include <cerrno>
#include <cstdlib>

#include "devices/backends/registry.hpp"
#include "devices/backends/same_device.hpp"
#include "devices/client/link.hpp"
#include "os/os.hpp"

namespace amasia::devices {
namespace {

constexpr Nanos kAnswerLimit = 10 * base::kSecond;
// A daemon with as many clients as it can have says less.
constexpr std::size_t kMostBytes = 64 * base::kMiB;

}  // namespace

std::vector<DeviceDescription> devices_here() {
  const char* const wanted = std::getenv("AMASIA_DEVICES_BACKENDS");
  const Backends backends = make_backends(wanted == nullptr ? "" : wanted);
  std::vector<DeviceDescription> out;
  for (const auto& backend : backends.all) {
    out.insert(out.end(), backend->devices().begin(), backend->devices().end());
  }
  return each_once(out);
}

Observer::Observer(std::unique_ptr<Link> link) : link_(std::move(link)) {}
Observer::~Observer() = default;

Result<std::unique_ptr<Observer>> Observer::open(const std::string& path) {
  LinkSettings settings;
  settings.connect.path = path;
  settings.connect.start_daemon = false;
  settings.program = "amasia";
  settings.role = Role::kObserver;
  auto link = Link::open(settings, {});
  if (!link.ok()) return link.error();
  return std::unique_ptr<Observer>(new Observer(std::move(link).value()));
}

Result<std::string> Observer::snapshot() {
  QueryPacket query;
  query.head.request = ++requests_;
  if (const Status sent = link_->send_packet(query); !sent.ok()) return sent.error();
  const Nanos deadline = os::monotonic_now() + kAnswerLimit;
  std::string out;
  for (;;) {
    auto received = link_->receive_packet();
    if (!received.ok()) return received.error();
    if (!received.value()) {
      const Nanos left = deadline - os::monotonic_now();
      if (left <= 0) return Error{"the daemon does not answer; it may be stopped", ETIMEDOUT};
      const int socket = link_->socket();
      os::wait_readable(&socket, 1, left);
      continue;
    }
    AnswerPacket answer;
    if (!received.value()->read(&answer) || answer.head.kind != PacketKind::kAnswer ||
        answer.head.request != requests_) {
      continue;
    }
    if (answer.length > sizeof answer.text || out.size() > kMostBytes) {
      return Error{"the daemon's answer is not one", EPROTO};
    }
    out.append(answer.text, answer.length);
    if (answer.last != 0) return out;
  }
}

}  // namespace amasia::devices
