// SPDX-License-Identifier: Apache-2.0
// Question: how fast does a thread read a remote array from one end to the other?
//
// Peer: the fabric's own bandwidth with messages of the same size (64 pages), eight of them asked
// for ahead, each copied to its place by the receiver. Expected: 70 % of it; the rest is
// protection, mapping (0.2 us a page) and the directory. Rounds of both are interleaved.
//
// sequential_bench [transports="tcp"] [MiB=64] [rounds=7] [pinned=1] [window=256]; text and JSON.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "dsm/test_processes.hpp"
#include "os/os.hpp"

namespace amasia::dsm {
namespace {

constexpr fabric::MessageType kAsk = 0x300;
constexpr fabric::MessageType kChunk = 0x301;
constexpr Bytes kChunkSize = 64 * base::kPageSize;
constexpr Bytes kAhead = 8;

// Sends a chunk for each question; copies each chunk and asks for the next.
class Stream final : public fabric::Handler {
 public:
  void use(fabric::Fabric& fabric) {
    fabric_ = &fabric;
    auto made = os::Wakeup::make();
    AMASIA_CHECK(made.ok(), "an eventfd");
    done_ = std::move(made).value();
    fabric.set_handler(kAsk, kChunk, this);
  }
  void on_message(const fabric::Incoming& message) override {
    if (message.type == kAsk) {
      fabric_->send(message.from, kChunk, {}, chunk_);
      return;
    }
    std::memcpy(target_.data() + received_ % kAhead * kChunkSize, message.body.data(), kChunkSize);
    if (++received_ == wanted_) return done_.raise();
    if (asked_ < wanted_) ask();
  }
  void run(Bytes size) {
    received_ = asked_ = 0;
    wanted_ = size / kChunkSize;
    const Bytes first = std::min(kAhead, wanted_);
    asked_ = first;  // before the first answer can come
    for (Bytes i = 0; i < first; ++i) send_question();
    const int descriptor = done_.descriptor();
    while (!done_.clear()) os::wait_readable(&descriptor, 1, -1);
  }

 private:
  void ask() {
    ++asked_;
    send_question();
  }
  void send_question() {
    const std::uint64_t what = 1;
    fabric_->send(base::kOrigin, kAsk, fabric::bytes_of(what));
  }

  fabric::Fabric* fabric_ = nullptr;
  os::Wakeup done_;
  Bytes received_ = 0;
  Bytes asked_ = 0;
  Bytes wanted_ = 0;
  std::vector<std::byte> chunk_ = std::vector<std::byte>(kChunkSize, std::byte{1});
  std::vector<std::byte> target_ = std::vector<std::byte>(kAhead * kChunkSize);
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double deviation(const std::vector<double>& values) {
  std::vector<double> distances;
  for (const double value : values) distances.push_back(std::abs(value - median(values)));
  return median(distances);
}

double megabytes_per_second(Bytes size, Nanos begin) {
  return static_cast<double>(size) * 1e3 / static_cast<double>(os::monotonic_now() - begin);
}

void measure(const ProcessNode& node, Stream& stream, Bytes size, int rounds) {
  std::vector<double> walk;
  std::vector<double> peer;
  node.engine.register_thread();
  for (int round = 0; round < rounds; ++round) {
    // Each round another array: what has been read once is here.
    const auto* const words = node.at<std::uint64_t>(0, static_cast<Bytes>(round) * size);
    Nanos begin = os::monotonic_now();
    std::uint64_t sum = 0;
    for (Bytes i = 0; i < size / sizeof *words; ++i) sum += words[i];
    walk.push_back(megabytes_per_second(size, begin));
    AMASIA_CHECK(sum == size / sizeof *words, "the origin's array");
    begin = os::monotonic_now();
    stream.run(size);
    peer.push_back(megabytes_per_second(size, begin));
  }
  const Statistics s = node.engine.statistics();
  const double ratio = median(walk) / median(peer);
  std::printf("sequential read %8.1f MB/s (MAD %.1f), fabric %8.1f MB/s (MAD %.1f), ratio %.2f\n",
              median(walk), deviation(walk), median(peer), deviation(peer), ratio);
  std::printf(
      "  faults %llu, triggers %llu, pages %llu, prefetched %llu, stall %.1f ms\n",
      static_cast<unsigned long long>(s.faults_read),
      static_cast<unsigned long long>(s.stale_events), static_cast<unsigned long long>(s.pages_in),
      static_cast<unsigned long long>(s.pages_prefetched), static_cast<double>(s.stall_ns) / 1e6);
  std::printf("{\"bench\":\"sequential\",\"walk_mb_s\":%.1f,\"fabric_mb_s\":%.1f,\"ratio\":%.3f}\n",
              median(walk), median(peer), ratio);
  std::fflush(stdout);
}

}  // namespace
}  // namespace amasia::dsm

int main(int argc, char** argv) {
  using namespace amasia;
  dsm::Stream stream;
  dsm::ProcessSettings settings;
  settings.transports = argc > 1 ? argv[1] : "tcp";
  const Bytes size = (argc > 2 ? static_cast<Bytes>(std::atoi(argv[2])) : 64) * base::kMiB;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 7;
  settings.pin_to_cores = argc <= 4 || std::atoi(argv[4]) != 0;
  if (argc > 5) settings.engine.read_ahead_pages = static_cast<std::uint32_t>(std::atoi(argv[5]));
  settings.before_start = [&stream](fabric::Fabric& fabric) { stream.use(fabric); };
  const auto body = [&](const dsm::ProcessNode& node) {
    if (node.self() == 0) {
      auto* const words = node.at<std::uint64_t>(0);
      std::fill_n(words, static_cast<Bytes>(rounds) * size / sizeof *words, 1);
    }
    node.meet();
    if (node.self() == 1) dsm::measure(node, stream, size, rounds);
    if (node.self() == 1) node.board.figures[0][0] = 1;
    const int never = -1;  // the origin's thread sleeps
    while (node.board.figures[0][0].load() == 0) os::wait_readable(&never, 1, 1000000);
  };
  const std::string failure = dsm::run_processes(2, settings, body);
  if (!failure.empty()) std::fprintf(stderr, "%s\n", failure.c_str());
  return failure.empty() ? 0 : 1;
}
