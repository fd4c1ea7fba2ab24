// SPDX-License-Identifier: Apache-2.0
#include "fabric/bootstrap_connection.hpp"
#include "fabric/bootstrap_space.hpp"

namespace amasia::fabric {
namespace {

class Server final : public BootstrapService {
 public:
  Server(const JobSecret& secret, const std::vector<int>& sockets)
      : space_(static_cast<std::uint32_t>(sockets.size()), secret) {
    for (const int socket : sockets) clients_.emplace_back(socket);
  }

  std::vector<int> descriptors() const override {
    std::vector<int> open;
    for (const auto& client : clients_) {
      if (client.is_open()) open.push_back(client.descriptor());
    }
    return open;
  }

  Status serve(int descriptor) override {
    for (std::size_t node = 0; node < clients_.size(); ++node) {
      if (!clients_[node].is_open() || clients_[node].descriptor() != descriptor) continue;
      const NodeId from(static_cast<std::uint16_t>(node));
      return clients_[node].receive([&](BootstrapMessage message) -> Status {
        auto answers = space_.step(from, std::move(message));
        if (!answers.ok()) return answers.error();
        send(answers.value());
        return base::ok();
      });
    }
    return base::ok();  // the client left since descriptors() was asked
  }

  std::vector<NodeId> missing_from_fence() const override { return space_.missing_from_fence(); }
  void fail(std::string_view sentence) override { send(space_.fail(sentence)); }

 private:
  void send(const std::vector<BootstrapAnswer>& answers) {
    for (const auto& answer : answers) clients_[answer.to.value].send(answer.message);
  }

  BootstrapSpace space_;
  std::vector<BootstrapConnection> clients_;
};

}  // namespace

std::unique_ptr<BootstrapService> serve_bootstrap(const JobSecret& secret,
                                                  std::vector<int> sockets) {
  return std::make_unique<Server>(secret, sockets);
}

}  // namespace amasia::fabric
