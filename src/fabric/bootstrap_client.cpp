// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <cstring>

#include "fabric/bootstrap_wire.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

// How long the launcher may take to answer what it can answer at once.
constexpr Nanos kAnswerTimeout = 30 * base::kSecond;

class Client final : public Bootstrap {
 public:
  explicit Client(int descriptor) : socket_(descriptor) {}

  Status greet(Nanos timeout);

  NodeId self() const override { return self_; }
  std::uint32_t node_count() const override { return node_count_; }
  const JobSecret& secret() const override { return secret_; }
  Status put(std::string_view key, std::span<const std::byte> value) override;
  Status fence(Nanos timeout) override;
  Result<std::vector<std::byte>> get(NodeId node, std::string_view key) override;

 private:
  Status tell(const BootstrapMessage& message);
  Result<BootstrapMessage> hear(BootstrapWord expected, Nanos deadline);
  std::string describe_missing();

  os::Descriptor socket_;
  NodeId self_;
  std::uint32_t node_count_ = 0;
  JobSecret secret_;
};

Status Client::tell(const BootstrapMessage& message) {
  auto sent = os::send_all(socket_.get(), encode(message), os::monotonic_now() + kAnswerTimeout);
  if (!sent.ok()) return Error{"cannot reach the launcher: " + sent.error().message, 0};
  return base::ok();
}

Result<BootstrapMessage> Client::hear(BootstrapWord expected, Nanos deadline) {
  std::byte bytes[sizeof(BootstrapHeader)];
  auto got = os::receive_all(socket_.get(), bytes, deadline);
  if (!got.ok()) {
    return Error{"cannot hear from the launcher: " + got.error().message, got.error().code};
  }
  const auto header = read_bootstrap_header(bytes);
  if (!header.ok()) return header.error();
  BootstrapMessage message;
  message.word = header.value().word;
  message.node = NodeId(header.value().node);
  message.argument = header.value().argument;
  message.key.resize(header.value().key_length);
  message.value.resize(header.value().value_length);
  // The rest of a frame follows at once.
  const Nanos rest = os::monotonic_now() + kAnswerTimeout;
  got = os::receive_all(socket_.get(), std::as_writable_bytes(std::span(message.key)), rest);
  if (got.ok()) got = os::receive_all(socket_.get(), message.value, rest);
  if (!got.ok()) return Error{"cannot hear from the launcher: " + got.error().message, 0};
  if (message.word == BootstrapWord::kError) {
    return Error{
        std::string(reinterpret_cast<const char*>(message.value.data()), message.value.size()), 0};
  }
  if (message.word != expected) {
    return Error{fmt::format("the launcher answered with word {} instead of {}",
                             static_cast<int>(message.word), static_cast<int>(expected)),
                 0};
  }
  return message;
}

Status Client::greet(Nanos timeout) {
  auto told = tell({BootstrapWord::kHello, {}, 0, {}, {}});
  if (!told.ok()) return told;
  auto heard = hear(BootstrapWord::kWelcome, os::monotonic_now() + timeout);
  if (!heard.ok()) return heard.error();
  const BootstrapMessage& welcome = heard.value();
  if (welcome.argument < 1 || welcome.argument > base::kMaxNodes ||
      welcome.node.value >= welcome.argument || welcome.value.size() != secret_.bytes.size()) {
    return Error{fmt::format("the launcher says that this is node {} of {} (at most {})",
                             welcome.node.value, welcome.argument, base::kMaxNodes),
                 0};
  }
  self_ = welcome.node;
  node_count_ = welcome.argument;
  std::memcpy(secret_.bytes.data(), welcome.value.data(), secret_.bytes.size());
  return base::ok();
}

Status Client::put(std::string_view key, std::span<const std::byte> value) {
  if (key.empty() || key.size() > kMaxBootstrapKey || value.size() > kMaxBootstrapValue) {
    return Error{fmt::format("cannot publish {} bytes under a key of {} (at most {}, and 1 to {})",
                             value.size(), key.size(), kMaxBootstrapValue, kMaxBootstrapKey),
                 0};
  }
  return tell({BootstrapWord::kPut, self_, 0, std::string(key), {value.begin(), value.end()}});
}

Status Client::fence(Nanos timeout) {
  auto told = tell({BootstrapWord::kFence, self_, 0, {}, {}});
  if (!told.ok()) return told;
  auto heard = hear(BootstrapWord::kFenced, os::monotonic_now() + timeout);
  if (heard.ok()) return base::ok();
  if (heard.error().code != ETIMEDOUT) return heard.error();
  return Error{fmt::format("{} did not come up within {} s", describe_missing(),
                           (timeout + base::kSecond - 1) / base::kSecond),
               ETIMEDOUT};
}

std::string Client::describe_missing() {
  auto told = tell({BootstrapWord::kMissing, self_, 0, {}, {}});
  if (!told.ok()) return "some node";
  auto heard = hear(BootstrapWord::kAbsent, os::monotonic_now() + 2 * base::kSecond);
  if (!heard.ok() || heard.value().value.size() < 2) return "some node";
  const auto& value = heard.value().value;
  std::string text = value.size() > 2 ? "nodes" : "node";
  for (std::size_t i = 0; i + 1 < value.size(); i += 2) {
    std::uint16_t node = 0;
    std::memcpy(&node, value.data() + i, sizeof node);
    text += fmt::format("{} {}", i == 0 ? "" : ",", node);
  }
  return text;
}

Result<std::vector<std::byte>> Client::get(NodeId node, std::string_view key) {
  auto told = tell({BootstrapWord::kGet, node, 0, std::string(key), {}});
  if (!told.ok()) return told.error();
  auto heard = hear(BootstrapWord::kValue, os::monotonic_now() + kAnswerTimeout);
  if (!heard.ok()) return heard.error();
  return std::move(heard).value().value;
}

}  // namespace

Result<std::unique_ptr<Bootstrap>> connect_bootstrap(int descriptor, Nanos timeout) {
  auto client = std::make_unique<Client>(descriptor);
  auto greeted = client->greet(timeout);
  if (!greeted.ok()) return greeted.error();
  return std::unique_ptr<Bootstrap>(std::move(client));
}

}  // namespace amasia::fabric
