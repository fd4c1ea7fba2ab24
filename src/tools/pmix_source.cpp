// SPDX-License-Identifier: Apache-2.0
#include "tools/pmix_source.hpp"

#include <fmt/format.h>

#include <future>
#include <string>
#include <thread>
#include <utility>

#include "launch/launch.hpp"
#include "tools/image_text.hpp"

namespace amasia::tools {
namespace {

// Between the thread that waits for the origin's word and the event loop.
struct Arrival {
  explicit Arrival(os::Wakeup made) : wakeup(std::move(made)) {}
  os::Wakeup wakeup;
  std::promise<Result<std::vector<std::byte>>> word;
};

class PmixSource final : public JobSource {
 public:
  PmixSource(std::shared_ptr<fabric::PmixMembership> membership, std::string name,
             os::Wakeup wakeup)
      : membership_(std::move(membership)),
        name_(std::move(name)),
        arrival_(std::make_shared<Arrival>(std::move(wakeup))) {
    if (membership_->self() == base::kOrigin) return;
    // Detached: where the job fails before the origin's word comes, this thread would wait for
    // ever, and the process ends without it. What it touches is shared, not ours alone.
    std::thread([membership = membership_, arrival = arrival_]() mutable {
      auto word = membership->broadcast({});
      // Who has the word may end the process, and must be the last to have the membership: PMIx
      // calls a process lost that ends without leaving it.
      membership.reset();
      arrival->word.set_value(std::move(word));
      arrival->wakeup.raise();
    }).detach();
  }

  std::uint32_t node_count() const override { return membership_->node_count(); }
  std::vector<NodeId> local_nodes() const override { return {membership_->self()}; }
  bool can_repeat() const override { return false; }

  Result<Wiring> wire() override {
    auto pair = os::make_stream_pair();
    if (!pair.ok()) return pair.error();
    Wiring wiring;
    wiring.service = membership_->serve(pair.value().first.release());
    wiring.node_ends.push_back(std::move(pair.value().second));
    return wiring;
  }

  Status announce(const std::optional<os::ProcessImage>& image) override {
    const auto sent = membership_->broadcast(pack_image(image));
    if (!sent.ok()) return sent.error();
    return base::ok();
  }
  int word_descriptor() const override {
    return membership_->self() == base::kOrigin ? -1 : arrival_->wakeup.descriptor();
  }
  Result<std::optional<os::ProcessImage>> word() override {
    const auto bytes = arrival_->word.get_future().get();
    if (!bytes.ok()) return bytes.error();
    auto image = unpack_image(bytes.value());
    if (image.ok() && image.value()) {
      const std::string prefix = fmt::format("{}=", launch::kLauncherVariable);
      for (std::string& entry : image.value()->environment) {
        if (entry.starts_with(prefix)) entry = prefix + name_;
      }
    }
    return image;
  }
  void abort(int status, std::string_view sentence) override {
    membership_->abort(status, sentence);
  }

 private:
  std::shared_ptr<fabric::PmixMembership> membership_;
  std::string name_;
  std::shared_ptr<Arrival> arrival_;
};

}  // namespace

Result<std::unique_ptr<JobSource>> make_pmix_source(
    std::unique_ptr<fabric::PmixMembership> membership, const std::string& name) {
  auto wakeup = os::Wakeup::make();
  if (!wakeup.ok()) return wakeup.error();
  return std::unique_ptr<JobSource>(
      std::make_unique<PmixSource>(std::shared_ptr<fabric::PmixMembership>(std::move(membership)),
                                   name, std::move(wakeup).value()));
}

}  // namespace amasia::tools
