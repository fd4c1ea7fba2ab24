// SPDX-License-Identifier: Apache-2.0
#include "fabric/bootstrap_connection.hpp"

namespace amasia::fabric {

Status BootstrapConnection::receive(const std::function<Status(BootstrapMessage)>& take) {
  std::byte chunk[16 * 1024];
  std::size_t count = 0;
  const os::Transfer transfer = os::receive_some(socket_.get(), chunk, &count);
  if (transfer == os::Transfer::kWouldBlock) return base::ok();
  if (transfer == os::Transfer::kClosed) {
    close();
    return base::ok();
  }
  reader_.append(std::span(chunk).first(count));
  for (;;) {
    auto next = reader_.next();
    if (next.ok() && !next.value().has_value()) return base::ok();
    Status taken = next.ok() ? take(std::move(*next.value())) : Status(next.error());
    if (!taken.ok()) {
      close();
      return taken;
    }
    if (!is_open()) return base::ok();
  }
}

void BootstrapConnection::send(const BootstrapMessage& message) {
  if (!is_open()) return;
  const auto sent =
      os::send_all(socket_.get(), encode(message), os::monotonic_now() + base::kSecond);
  // That a node is gone is found by the launcher, which waits for it as a process.
  if (!sent.ok()) close();
}

}  // namespace amasia::fabric
