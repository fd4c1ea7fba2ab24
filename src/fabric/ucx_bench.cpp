// SPDX-License-Identifier: Apache-2.0
// Question: what does the fabric add to UCX? One way (half of a ping-pong of equal messages) and
// fetch (8 bytes there, the size back), two processes, both polling, and fetch with both sleeping.
// Expected: 0.2-0.4 µs a message (two locks, a judgement, a queue), so a ratio below 1.3 over tcp
// and below 2 over shared memory for small messages; near 1 for large ones.
// Peer: bare UCX 1.13 active messages with UCX's own choice of protocol, between the same two
// processes, batches interleaved. Usage: ucx_bench [transports]; prints a table and a line of JSON.
#include <sys/wait.h>
#include <ucp/api/ucp.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::fabric {
namespace {

constexpr int kBatches = 15;

struct Shape {
  std::size_t request;
  std::size_t reply;
  int iterations;  // of one batch
};
constexpr Shape kShapes[] = {
    {8, 8, 2000},    {4096, 4096, 1000}, {65536, 65536, 200}, {2097152, 2097152, 10},
    {8, 4096, 1000}, {8, 65536, 300},    {8, 2097152, 20},
};

// One side of a ping-pong: send a message and wait for one.
class Side {
 public:
  virtual ~Side() = default;
  virtual void send(std::size_t size) = 0;
  virtual void receive() = 0;
};

// ---- bare UCX

class BareSide final : public Side {
 public:
  BareSide(Bootstrap& bootstrap, const char* transports) {
    ucp_config_t* config = nullptr;
    must(ucp_config_read(nullptr, nullptr, &config));
    if (*transports != 0) must(ucp_config_modify(config, "TLS", transports));
    ucp_params_t params{};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
    must(ucp_init(&params, config, &context_));
    ucp_worker_params_t worker{};
    must(ucp_worker_create(context_, &worker, &worker_));
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                         UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.cb = take;
    handler.arg = this;
    must(ucp_worker_set_am_recv_handler(worker_, &handler));
    ucp_address_t* address = nullptr;
    size_t length = 0;
    must(ucp_worker_get_address(worker_, &address, &length));
    const auto key = fmt::format("bare");
    AMASIA_CHECK(bootstrap.put(key, {reinterpret_cast<const std::byte*>(address), length}).ok() &&
                     bootstrap.fence(10 * base::kSecond).ok(),
                 "the benchmark's nodes meet");
    const auto peer = bootstrap.get(NodeId(1 - bootstrap.self().value), key).value();
    ucp_ep_params_t endpoint{};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(peer.data());
    must(ucp_ep_create(worker_, &endpoint, &endpoint_));
  }

  void send(std::size_t size) override {
    ucp_request_param_t param{};
    wait(ucp_am_send_nbx(endpoint_, 0, nullptr, 0, buffer_.data(), size, &param));
  }
  void receive() override {
    while (!arrived_) ucp_worker_progress(worker_);
    arrived_ = false;
  }

 private:
  static void must(ucs_status_t status) {
    AMASIA_CHECK(status == UCS_OK, "bare UCX does as it is told");
  }
  static ucs_status_t take(void* self, const void*, size_t, void* data, size_t length,
                           const ucp_am_recv_param_t* param) {
    auto& side = *static_cast<BareSide*>(self);
    if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) == 0) {
      side.arrived_ = true;
      return UCS_OK;
    }
    ucp_request_param_t receive{};
    receive.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    receive.cb.recv_am = [](void* request, ucs_status_t, size_t, void* user) {
      static_cast<BareSide*>(user)->arrived_ = true;
      ucp_request_free(request);
    };
    receive.user_data = self;
    const auto request =
        ucp_am_recv_data_nbx(side.worker_, data, side.incoming_.data(), length, &receive);
    if (request == nullptr) side.arrived_ = true;
    return UCS_INPROGRESS;
  }
  void wait(ucs_status_ptr_t request) {
    if (request == nullptr) return;
    AMASIA_CHECK(!UCS_PTR_IS_ERR(request), "bare UCX sends");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(4 * base::kMiB);
  std::vector<std::byte> incoming_ = std::vector<std::byte>(4 * base::kMiB);
  bool arrived_ = false;
};

// ---- the fabric

class FabricSide final : public Side, public Handler {
 public:
  FabricSide(Fabric& fabric, Nanos spin) : fabric_(fabric), spin_(spin) {}
  void send(std::size_t size) override {
    const NodeId peer(static_cast<std::uint16_t>(1 - fabric_.self().value));
    const auto body = std::span<const std::byte>(buffer_).first(size);
    fabric_.send(peer, 0x100, body.first(8), body.subspan(8));
  }
  void receive() override {
    while (arrived_ == 0) wait_and_poll(fabric_, 16, spin_, base::kSecond);
    --arrived_;
  }
  void on_message(const Incoming&) override { ++arrived_; }
  void set_spin(Nanos spin) { spin_ = spin; }
  // Nobody polls while the peer has its turn: what is queued would stay so.
  void settle() {
    while (fabric_.statistics().bytes_queued != 0) fabric_.poll(0);
  }

 private:
  Fabric& fabric_;
  Nanos spin_;
  std::vector<std::byte> buffer_ = std::vector<std::byte>(4 * base::kMiB);
  int arrived_ = 0;
};

// Microseconds of one exchange; both sides run it at the same time.
double run_batch(Side& side, bool asks, const Shape& shape, int iterations) {
  const Nanos begin = os::monotonic_now();
  for (int i = 0; i < iterations; ++i) {
    if (asks) {
      side.send(shape.request);
      side.receive();
    } else {
      side.receive();
      side.send(shape.reply);
    }
  }
  return static_cast<double>(os::monotonic_now() - begin) / iterations / 1000.0;
}

struct Summary {
  double median;
  double deviation;  // median absolute
  double min;
};

Summary summarize(std::vector<double> values) {
  const auto middle = [](std::vector<double>& v) {
    std::nth_element(v.begin(), v.begin() + static_cast<long>(v.size() / 2), v.end());
    return v[v.size() / 2];
  };
  Summary summary{};
  summary.min = *std::min_element(values.begin(), values.end());
  summary.median = middle(values);
  for (double& value : values) value = std::abs(value - summary.median);
  summary.deviation = middle(values);
  return summary;
}

void report(const char* transports, const Shape& shape, const char* mode, const Summary& ours,
            const Summary& bare) {
  const bool symmetric = shape.request == shape.reply;
  const double scale = symmetric ? 0.5 : 1.0;
  const double ratio = ours.median / bare.median;
  std::printf(
      "%-10s %-7s %-8s %8zu B  fabric %9.2f us (mad %.2f, min %.2f)  bare %9.2f us "
      "(mad %.2f, min %.2f)  ratio %.2f\n",
      *transports != 0 ? transports : "all", symmetric ? "one-way" : "fetch", mode, shape.reply,
      ours.median * scale, ours.deviation * scale, ours.min * scale, bare.median * scale,
      bare.deviation * scale, bare.min * scale, ratio);
  std::printf(
      "{\"bench\":\"ucx\",\"transports\":\"%s\",\"kind\":\"%s\",\"mode\":\"%s\","
      "\"bytes\":%zu,\"n\":%d,\"fabric_us\":%.3f,\"bare_us\":%.3f,\"ratio\":%.3f}\n",
      transports, symmetric ? "one-way" : "fetch", mode, shape.reply, kBatches, ours.median * scale,
      bare.median * scale, ratio);
}

void measure(Bootstrap& bootstrap, const char* transports) {
  os::declare_runtime_thread();
  UcxSettings settings;
  settings.transports = transports;
  auto fabric = connect_ucx(bootstrap, settings);
  AMASIA_CHECK(fabric.ok(), "the benchmark's nodes connect");
  FabricSide ours(*fabric.value(), base::kSecond);
  fabric.value()->set_handler(0x100, 0x100, &ours);
  BareSide bare(bootstrap, transports);
  const bool asks = bootstrap.self() == base::kOrigin;
  for (const Shape& shape : kShapes) {
    std::vector<double> ours_us;
    std::vector<double> bare_us;
    std::vector<double> sleeping_us;
    for (int batch = 0; batch < kBatches + 2; ++batch) {  // two to warm up
      const double a = run_batch(ours, asks, shape, shape.iterations);
      ours.settle();
      const double b = run_batch(bare, asks, shape, shape.iterations);
      ours.set_spin(0);
      const double c = run_batch(ours, asks, shape, std::max(shape.iterations / 10, 5));
      ours.set_spin(base::kSecond);
      if (batch < 2) continue;
      ours_us.push_back(a);
      bare_us.push_back(b);
      sleeping_us.push_back(c);
    }
    if (!asks) continue;
    report(transports, shape, "polling", summarize(ours_us), summarize(bare_us));
    report(transports, shape, "sleeping", summarize(sleeping_us), summarize(bare_us));
  }
}

int run(const char* transports) {
  std::vector<int> server_ends;
  int children[2];
  for (int& child : children) {
    auto pair = os::make_socket_pair().value();
    child = ::fork();
    if (child == 0) {
      auto bootstrap = connect_bootstrap(pair.second.release());
      AMASIA_CHECK(bootstrap.ok(), "the benchmark's nodes find their launcher");
      measure(*bootstrap.value(), transports);
      std::fflush(stdout);
      ::_exit(0);
    }
    server_ends.push_back(pair.first.release());
  }
  const auto service = serve_bootstrap(make_job_secret(), server_ends);
  while (!service->descriptors().empty()) {
    const auto open = service->descriptors();
    const unsigned ready =
        os::wait_readable(open.data(), static_cast<unsigned>(open.size()), base::kSecond);
    for (std::size_t i = 0; i < open.size(); ++i) {
      if ((ready >> i & 1) != 0) static_cast<void>(service->serve(open[i]));
    }
  }
  int failures = 0;
  for (const int child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    failures += status != 0;
  }
  return failures;
}

}  // namespace
}  // namespace amasia::fabric

int main(int argc, char** argv) { return amasia::fabric::run(argc > 1 ? argv[1] : ""); }
