// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx_port.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace amasia::fabric {
namespace {

class Deaf final : public UcxListener {
 public:
  bool on_frame(std::span<const std::byte>, std::span<const std::byte>, void*) override {
    return false;
  }
  void on_failure(NodeId, const char*) override {}
  void on_sent(std::size_t) override {}
};

// Sets one for as long as it lives.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    if (const char* const before = std::getenv(name); before != nullptr) before_ = before;
    ::setenv(name, value, 1);
  }
  ~Variable() {
    if (before_) {
      ::setenv(name_, before_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(UcxPort, TheVariableThatLeavesNoTransportIsNamed) {
  const Variable transports("UCX_TLS", "nothing");
  Deaf listener;
  const auto port = UcxPort::open(UcxSettings{}, listener);
  ASSERT_FALSE(port.ok());
  EXPECT_NE(port.error().message.find("; UCX_TLS is 'nothing' ("), std::string::npos)
      << port.error().message;
}

}  // namespace
}  // namespace amasia::fabric
