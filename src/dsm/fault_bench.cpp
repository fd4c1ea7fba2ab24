// SPDX-License-Identifier: Apache-2.0
// Question: what does a remote read fault of 4 KiB cost?
//
// Peer: a request and its reply of 4 KiB over the same fabric in the same mode (the service threads
// answer, the thread that asks sleeps meanwhile), plus a fault that the engine resolves locally.
// Expected: about the sum, as a remote fault is both, less one hand-over between threads; the aim
// is 1.3 times the sum. Rounds of the three are interleaved.
//
// fault_bench [transports="tcp"] [rounds=20] [pinned=1] [spare core=0]; text and a JSON line.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "dsm/test_processes.hpp"
#include "os/os.hpp"

namespace amasia::dsm {
namespace {

constexpr fabric::MessageType kAsk = 0x300;
constexpr fabric::MessageType kReply = 0x301;
constexpr Bytes kPerRound = 100;
constexpr Bytes kStride = 17 * base::kPageSize;  // no walk for read-ahead to see

// Answers with a page; tells a waiting thread of an answer.
class Echo final : public fabric::Handler {
 public:
  void use(fabric::Fabric& fabric) {
    fabric_ = &fabric;
    auto made = os::Wakeup::make();
    AMASIA_CHECK(made.ok(), "an eventfd");
    answered_ = std::move(made).value();
    fabric.set_handler(kAsk, kReply, this);
  }
  void on_message(const fabric::Incoming& message) override {
    if (message.type == kAsk) {
      fabric_->send(message.from, kReply, {}, page_);
    } else {
      std::copy(message.body.begin(), message.body.end(), page_.begin());
      answered_.raise();
    }
  }
  void ask(NodeId node) {
    const std::uint64_t what = 1;
    fabric_->send(node, kAsk, fabric::bytes_of(what));
    const int descriptor = answered_.descriptor();
    while (!answered_.clear()) os::wait_readable(&descriptor, 1, -1);
  }

 private:
  fabric::Fabric* fabric_ = nullptr;
  os::Wakeup answered_;
  std::vector<std::byte> page_ = std::vector<std::byte>(base::kPageSize, std::byte{1});
};

struct Samples {
  std::vector<double> microseconds;
  void take(Nanos begin) {
    microseconds.push_back(static_cast<double>(os::monotonic_now() - begin) / 1e3);
  }
  double at(double quantile) {
    std::sort(microseconds.begin(), microseconds.end());
    const auto last = static_cast<double>(microseconds.size() - 1);
    return microseconds[static_cast<std::size_t>(std::lround(last * quantile))];
  }
  double deviation() {
    const double median = at(0.5);
    Samples distances;
    for (const double sample : microseconds) {
      distances.microseconds.push_back(std::abs(sample - median));
    }
    return distances.at(0.5);
  }
};

void print(const char* name, Samples& samples) {
  std::printf("%-28s median %7.1f us  MAD %5.1f  min %6.1f  p99 %7.1f  n %zu\n", name,
              samples.at(0.5), samples.deviation(), samples.at(0), samples.at(0.99),
              samples.microseconds.size());
}

void measure(const ProcessNode& node, Echo& echo, Bytes rounds) {
  Samples remote;
  Samples request;
  Samples local;
  ThreadSlot* const slot = node.engine.register_thread();
  for (Bytes round = 0; round < rounds; ++round) {
    for (Bytes i = 0; i < kPerRound; ++i) {
      const auto* const at = node.at<volatile std::uint64_t>(0, (round * kPerRound + i) * kStride);
      const Nanos begin = os::monotonic_now();
      AMASIA_CHECK(*at == 1, "the origin's page");
      remote.take(begin);
    }
    for (Bytes i = 0; i < kPerRound; ++i) {
      const Nanos begin = os::monotonic_now();
      echo.ask(base::kOrigin);
      request.take(begin);
    }
    // Pages of this node's own that are in the file, but not in the view.
    const auto own = reinterpret_cast<std::uintptr_t>(node.at<char>(node.self()));
    for (Bytes i = 0; i < kPerRound; ++i) {
      *reinterpret_cast<volatile char*>(own + i * kStride) = 1;
      AMASIA_CHECK(os::drop_pages(own + i * kStride, base::kPageSize) == 0, "drop a page");
      const Nanos begin = os::monotonic_now();
      AMASIA_CHECK(*reinterpret_cast<volatile char*>(own + i * kStride) == 1, "the same page");
      local.take(begin);
    }
  }
  const double sum = request.at(0.5) + local.at(0.5);
  print("remote read fault", remote);
  print("request and reply, 4 KiB", request);
  print("local fault", local);
  std::printf("ratio to their sum: %.2f\n", remote.at(0.5) / sum);
  std::printf(
      "{\"bench\":\"fault\",\"remote_us\":%.2f,\"request_us\":%.2f,\"local_us\":%.2f,"
      "\"ratio\":%.3f,\"stall_us\":%.2f}\n",
      remote.at(0.5), request.at(0.5), local.at(0.5), remote.at(0.5) / sum,
      static_cast<double>(slot->stall_ns.load()) / 1e3 /
          static_cast<double>(remote.microseconds.size() + local.microseconds.size()));
  std::fflush(stdout);
}

}  // namespace
}  // namespace amasia::dsm

int main(int argc, char** argv) {
  using namespace amasia;
  dsm::Echo echo;
  dsm::ProcessSettings settings;
  settings.transports = argc > 1 ? argv[1] : "tcp";
  const Bytes rounds = argc > 2 ? static_cast<Bytes>(std::atoi(argv[2])) : 20;
  settings.pin_to_cores = argc <= 3 || std::atoi(argv[3]) != 0;
  settings.engine.spare_core = argc > 4 && std::atoi(argv[4]) != 0;
  settings.before_start = [&echo](fabric::Fabric& fabric) { echo.use(fabric); };
  const auto body = [&](const dsm::ProcessNode& node) {
    if (node.self() == 0) {
      for (Bytes i = 0; i < rounds * dsm::kPerRound; ++i) {
        *node.at<std::uint64_t>(0, i * dsm::kStride) = 1;
      }
    }
    node.meet();
    if (node.self() == 1) dsm::measure(node, echo, rounds);
    // The origin sleeps, as the program's threads do not run there.
    if (node.self() == 1) node.board.figures[0][0] = 1;
    const int never = -1;
    while (node.board.figures[0][0].load() == 0) os::wait_readable(&never, 1, 1000000);
  };
  const std::string failure = dsm::run_processes(2, settings, body);
  if (!failure.empty()) std::fprintf(stderr, "%s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}
