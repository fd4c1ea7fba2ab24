// SPDX-License-Identifier: Apache-2.0
#include "tools/job_source.hpp"

namespace amasia::tools {
namespace {

class ForkSource final : public JobSource {
 public:
  explicit ForkSource(std::uint32_t node_count) : node_count_(node_count) {}
  std::uint32_t node_count() const override { return node_count_; }
  std::vector<NodeId> local_nodes() const override {
    std::vector<NodeId> out;
    for (std::uint32_t node = 0; node < node_count_; ++node) {
      out.emplace_back(static_cast<std::uint16_t>(node));
    }
    return out;
  }
  bool can_repeat() const override { return true; }

  Result<Wiring> wire() override {
    Wiring wiring;
    std::vector<os::Descriptor> ends;
    for (std::uint32_t node = 0; node < node_count_; ++node) {
      auto pair = os::make_stream_pair();
      if (!pair.ok()) return pair.error();
      ends.push_back(std::move(pair.value().first));
      wiring.node_ends.push_back(std::move(pair.value().second));
    }
    std::vector<int> served;
    for (os::Descriptor& end : ends) served.push_back(end.release());
    // A secret of its own for each session: a node of an earlier one cannot speak to this one.
    wiring.service = fabric::serve_bootstrap(fabric::make_job_secret(), std::move(served));
    return wiring;
  }

  Status announce(const std::optional<os::ProcessImage>&) override { return base::ok(); }
  void abort(int, std::string_view) override {}  // all parts of the job are here

 private:
  std::uint32_t node_count_;
};

}  // namespace

std::unique_ptr<JobSource> make_fork_source(std::uint32_t node_count) {
  return std::make_unique<ForkSource>(node_count);
}

}  // namespace amasia::tools
