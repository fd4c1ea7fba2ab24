// SPDX-License-Identifier: Apache-2.0
// How a test ends a server that it runs on a thread.
#pragma once

#include <utility>

#include "devices/daemon/server.hpp"
#include "os/os.hpp"

namespace amasia::devices {

// raise() may be called by any thread.
class Stop final : public Server::StopSource {
 public:
  int descriptor() const override { return wakeup_.descriptor(); }
  void consume() override { wakeup_.clear(); }
  void raise() { wakeup_.raise(); }

 private:
  os::Wakeup wakeup_ = std::move(os::Wakeup::make()).value();
};

}  // namespace amasia::devices
