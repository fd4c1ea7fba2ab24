// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/brief_calibration.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace amasia::omp {
namespace {

// Several periods of a CPU quota, so that a slowed node is seen as slow as it is.
constexpr Nanos kSpeedTime = 40 * base::kMillisecond;
// A slow link costs no more than this for each of the two measurements, and a few pages.
constexpr Nanos kPagesTime = 5 * base::kMillisecond;
constexpr Nanos kAnswerTimeout = 5 * base::kSecond;

// Pages that nobody can foresee: kStride apart from each other, modulo an area of twice the size,
// so that no two of them are neighbours. Then a row of pages.
constexpr std::size_t kSingles = 32, kLeastSingles = 4, kWarmUp = 2;
constexpr std::size_t kSinglesArea = 64, kStride = 37;
constexpr std::size_t kRow = 128, kLeastRow = 16;
constexpr std::size_t kPages = kSinglesArea + kRow;
static_assert(kSingles * 2 <= kSinglesArea);

volatile double* page_of(double* pages, std::size_t index) {
  return pages + index * machine::kDoublesPerPage;
}

// Writing is what work that moves between nodes does, and the dearer access.
double single_fault_ns(double* pages) {
  std::vector<Nanos> waits;
  const Nanos begin = os::monotonic_now();
  for (std::size_t i = 0; i < kSingles; ++i) {
    const Nanos before = os::monotonic_now();
    if (waits.size() >= kLeastSingles && before - begin > kPagesTime) break;
    *page_of(pages, i * kStride % kSinglesArea) = 0.5;
    if (i >= kWarmUp) waits.push_back(os::monotonic_now() - before);
  }
  const auto middle = waits.begin() + static_cast<std::ptrdiff_t>(waits.size() / 2);
  std::nth_element(waits.begin(), middle, waits.end());
  return static_cast<double>(*middle);
}

double row_page_ns(double* pages) {
  const Nanos begin = os::monotonic_now();
  std::size_t count = 0;
  Nanos elapsed = 0;
  while (count < kRow && (count < kLeastRow || elapsed < kPagesTime)) {
    *page_of(pages, kSinglesArea + count++) = 0.5;
    elapsed = os::monotonic_now() - begin;
  }
  return static_cast<double>(elapsed) / static_cast<double>(count);
}

}  // namespace

BriefCalibration::BriefCalibration(fabric::Fabric& fabric, Services& services,
                                   const std::string& cpu_group)
    : fabric_(fabric), services_(services), cpu_group_(cpu_group) {
  fabric_.set_handler(kCalibrationFirst, kCalibrationLast, this);
}

BriefCalibration::~BriefCalibration() {
  state_.store(State::kEnding, std::memory_order_release);  // partner: answer
  for (Answering& each : answering_) each.thread.join();
}

void BriefCalibration::begin_to_answer() {
  state_.store(State::kAnswering, std::memory_order_release);  // partner: answer
}

void BriefCalibration::ask(NodeId node, fabric::MessageType type, const Request& request) {
  os::in_runtime_section([&] { fabric_.send(node, type, fabric::bytes_of(request)); });
}

bool BriefCalibration::await(std::uint32_t answers) {
  const Nanos deadline = os::monotonic_now() + kAnswerTimeout;
  for (;;) {
    const std::uint32_t now = answered_.load(std::memory_order_acquire);  // partner: on_message
    const Nanos left = deadline - os::monotonic_now();
    if (now >= answers) return true;
    if (left <= 0) return false;
    os::futex_wait(answered_, now, left);
  }
}

void BriefCalibration::write_pages() {
  for (std::size_t i = 0; i < kPages; ++i) *page_of(pages_, i) = 0.25;
}

Result<machine::Calibration> BriefCalibration::measure(const machine::Identity& identity) {
  const auto count = static_cast<std::uint16_t>(fabric_.node_count());
  AMASIA_CHECK(identity.nodes.size() == count, "the identity is this job's");
  machine::Calibration out;
  out.identity = identity;
  out.method = machine::Method::kBrief;
  out.measured_s = os::realtime_now() / base::kSecond;
  out.nodes.resize(count);
  for (std::uint16_t i = 1; i < count; ++i) {
    ask(NodeId{i}, kMeasureSpeed, {.address = 0, .duration = kSpeedTime});
  }
  out.nodes[0].core_ops_per_s = machine::measure_core_speed(kSpeedTime);
  std::uint32_t expected = count - 1u;
  const Error late{"a node did not answer in time when it was to be measured", 0};
  if (!await(expected)) return late;

  void* const block = services_.allocate_shared((kPages + 1) * base::kPageSize);
  const auto address = reinterpret_cast<std::uintptr_t>(block);
  pages_ = reinterpret_cast<double*>(base::round_up(address, base::kPageSize));
  for (std::uint16_t i = 1; i < count; ++i) {
    write_pages();
    ask(NodeId{i}, kMeasurePages,
        {.address = reinterpret_cast<std::uintptr_t>(pages_), .duration = 0});
    // Of a node that may still write to them they are not given back.
    if (!await(++expected)) return late;
    machine::NodeCalibration& node = out.nodes[i];
    node.core_ops_per_s = figures_[i].core_ops_per_s;
    node.fault_latency_ns = figures_[i].fault_latency_ns;
    node.page_stream_ns = figures_[i].page_stream_ns;
    fill_break_even_from_model(node);
  }
  write_pages();  // the program finds them here, as if nothing had been
  services_.free_shared(block);
  return out;
}

void BriefCalibration::answer(void* answering) {
  const Answering& one = *static_cast<Answering*>(answering);
  BriefCalibration& self = *one.self;
  os::declare_runtime_thread();
  os::set_thread_name("amasia-measure");
  // Where that is refused the node does not come up: NodeProcess does the same.
  if (!self.cpu_group_.empty()) os::enter_cpu_group(self.cpu_group_.c_str());
  // A node that is not ready yet has no page to touch; it is in a moment.
  State state = State::kStarting;
  while (state == State::kStarting) {
    os::yield_core();
    state = self.state_.load(std::memory_order_acquire);  // partners: begin_to_answer, destructor
  }
  if (state == State::kEnding) return;
  if (one.type == kMeasureSpeed) {
    self.own_.core_ops_per_s = machine::measure_core_speed(one.request.duration);
  } else {
    auto* const pages = reinterpret_cast<double*>(one.request.address);
    self.own_.fault_latency_ns = single_fault_ns(pages);
    self.own_.page_stream_ns = row_page_ns(pages);
  }
  self.fabric_.send(base::kOrigin, kMeasured, fabric::bytes_of(self.own_));
}

void BriefCalibration::on_message(const fabric::Incoming& message) {
  if (message.type == kMeasured && message.body.size() == sizeof(Figures)) {
    std::memcpy(&figures_[message.from.value], message.body.data(), sizeof(Figures));
    answered_.fetch_add(1, std::memory_order_release);  // partner: await
    os::futex_wake(answered_, 1);
    return;
  }
  const bool asks = message.type == kMeasureSpeed || message.type == kMeasurePages;
  if (!asks || message.body.size() != sizeof(Request) || message.from != base::kOrigin) return;
  Answering& one = answering_[message.type == kMeasureSpeed ? 0 : 1];
  if (one.self != nullptr) return;
  one.self = this;
  one.type = message.type;
  std::memcpy(&one.request, message.body.data(), sizeof one.request);
  auto started = os::Thread::start(&answer, &one);
  if (started.ok()) one.thread = std::move(started).value();  // else the origin goes on without us
}

}  // namespace amasia::omp
