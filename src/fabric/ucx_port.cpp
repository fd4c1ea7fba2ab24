// SPDX-License-Identifier: Apache-2.0
// The only file that includes UCX. Checked against UCX 1.13.
#include "fabric/ucx_port.hpp"

#include <ucp/api/ucp.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>

#include "os/os.hpp"

namespace amasia::fabric {
namespace {

constexpr unsigned kActiveMessageId = 7;
// Bodies up to this are tried as one short message, put together on the stack.
constexpr std::size_t kShortBody = 2048;

Error ucx_error(const char* what, ucs_status_t status) {
  return Error{fmt::format("UCX cannot {}: {}", what, ucs_status_string(status)), 0};
}

// What the user has set that may be why nothing can be used; "": nothing.
std::string chosen_in_environment() {
  std::string text;
  if (const char* const transports = std::getenv("UCX_TLS"); transports != nullptr) {
    text += fmt::format("; UCX_TLS is '{}' ('amasia doctor' lists the transports that it may name)",
                        transports);
  }
  if (const char* const devices = std::getenv("UCX_NET_DEVICES"); devices != nullptr) {
    text += fmt::format("; UCX_NET_DEVICES is '{}'", devices);
  }
  return text;
}

class Port;

// A frame that UCX reads piece by piece, perhaps after transmit() has returned. UCX sees a generic
// datatype, that is, it asks pack_body() for every piece: so the source can be exchanged for a copy
// when a frame has to wait, and nothing is copied when it has not.
struct Outgoing {
  FrameHeader header;
  OutgoingBody body;
  std::size_t piece = 0;  // where the last piece began; UCX packs from front to back
  Port* port = nullptr;
  NodeId to;

  // Copies what may still be asked for, so that the source is free.
  void keep_rest();
};

std::size_t pack_body(void* state, size_t offset, void* destination, size_t max_length) {
  auto& outgoing = *static_cast<Outgoing*>(state);
  auto* out = static_cast<std::byte*>(destination);
  const auto head = outgoing.body.head;
  const auto payload = outgoing.body.payload;
  std::size_t length = 0;
  if (offset < head.size()) {
    length = std::min(max_length, head.size() - offset);
    std::memcpy(out, head.data() + offset, length);
  }
  if (length < max_length && offset + length >= head.size()) {
    const std::size_t at = offset + length - head.size();
    const std::size_t rest = std::min(max_length - length, payload.size() - at);
    if (rest != 0) std::memcpy(out + length, payload.data() + at, rest);
    length += rest;
  }
  outgoing.piece = offset;
  return length;
}

void Outgoing::keep_rest() {
  if (!body.copy.empty() || body.size() == 0) return;
  // The pieces before the last are gone: the copy has their place, but not their bytes. The last
  // may be asked for again.
  std::vector<std::byte> copy(body.size());
  const std::size_t begin = piece;
  pack_body(this, begin, copy.data() + begin, copy.size() - begin);
  body.copy = std::move(copy);
  body.head = {};
  body.payload = body.copy;
}

constexpr ucp_generic_dt_ops_t kBodyOperations = {
    [](void*, const void* buffer, size_t) { return const_cast<void*>(buffer); },
    [](void*, void*, size_t) -> void* { return nullptr; },
    [](void* state) -> size_t { return static_cast<Outgoing*>(state)->body.size(); },
    pack_body,
    [](void*, size_t, const void*, size_t) { return UCS_ERR_UNSUPPORTED; },
    [](void*) {},
};

// One of UCX's options. Those of transports are known to ucp_config_modify by a name without the
// transport, and to the environment by one with it.
struct UcxOption {
  const char* variable;
  const char* name;
  std::string value;
};

std::vector<UcxOption> options_of(const UcxSettings& settings) {
  const auto keepalive = fmt::format("{}us", std::max<Nanos>(settings.keepalive, 1000000) / 1000);
  std::vector<UcxOption> options = {
      // What goes wrong with a peer is told to on_failure(), in a sentence.
      {"UCX_LOG_LEVEL", "LOG_LEVEL", "fatal"},
      {"UCX_KEEPALIVE_INTERVAL", "KEEPALIVE_INTERVAL", keepalive},
      // Order within a pair holds on one lane only.
      {"UCX_MAX_EAGER_RAILS", "MAX_EAGER_RAILS", "1"},
      // Without it endpoints that report lost peers do not use shared memory.
      {"UCX_POSIX_ERROR_HANDLING", "MM_ERROR_HANDLING", "y"},
      // A piece of a frame is a system call on both sides. 2 MiB one way on one host take 2320 us
      // in
      // pieces of 8 KiB (the default), 390 in 64 KiB, 335 in 256 KiB, 221 in 512 KiB.
      {"UCX_TCP_TX_SEG_SIZE", "TX_SEG_SIZE", "512k"},
      {"UCX_TCP_RX_SEG_SIZE", "RX_SEG_SIZE", "1m"},
  };
  if (!settings.transports.empty()) options.push_back({"UCX_TLS", "TLS", settings.transports});
  if (!settings.net_devices.empty()) {
    options.push_back({"UCX_NET_DEVICES", "NET_DEVICES", settings.net_devices});
  }
  return options;
}

// What the user has set in the environment stays.
Status set_options(ucp_config_t* config, const UcxSettings& settings) {
  for (const UcxOption& option : options_of(settings)) {
    if (std::getenv(option.variable) != nullptr) continue;
    const ucs_status_t status = ucp_config_modify(config, option.name, option.value.c_str());
    if (status == UCS_OK) continue;
    return ucx_error(fmt::format("set {} to '{}'", option.variable, option.value).c_str(), status);
  }
  return base::ok();
}

// What there is for one peer.
struct Connection {
  ucp_ep_h endpoint = nullptr;
  bool waits_in_ucx = false;      // a frame that UCX has not sent yet
  std::deque<Outgoing*> waiting;  // the frames behind it
};

class Port final : public UcxPort {
 public:
  explicit Port(UcxListener& listener) : listener_(listener) {}
  ~Port() override;

  Status open(const UcxSettings& settings);
  std::vector<std::byte> address() const override;
  Status connect(NodeId peer, std::span<const std::byte> address) override;
  bool progress() override;
  Transmission transmit(NodeId peer, const FrameHeader& header, OutgoingBody body) override;
  void release(void* held) override { ucp_am_data_release(worker_, held); }
  void drop(NodeId peer) override { failed_ |= std::uint64_t{1} << peer.value; }
  void close(Nanos timeout) override;
  bool arm() override { return failed_ == 0 && ucp_worker_arm(worker_) == UCS_OK; }
  int descriptor() const override { return descriptor_; }
  void signal() override { ucp_worker_signal(worker_); }

 private:
  static ucs_status_t take(void* self, const void* header, size_t header_length, void* data,
                           size_t length, const ucp_am_recv_param_t* param);
  static void fail(void* self, ucp_ep_h endpoint, ucs_status_t status);
  static void complete(void* request, ucs_status_t status, void* outgoing);

  Status make_worker();
  void disconnect(NodeId peer);
  bool transmit_short(Connection& peer, const FrameHeader& header, const OutgoingBody& body,
                      Transmission* result);
  Transmission hand_over(Connection& peer, Outgoing* outgoing);
  void send_waiting(Connection& peer);
  void finish(Outgoing* outgoing);
  bool is_anything_waiting() const;
  Outgoing* acquire();
  void recycle(Outgoing* outgoing);
  void wait_for(ucs_status_ptr_t request, Nanos deadline);

  UcxListener& listener_;
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_datatype_t body_type_ = 0;
  int descriptor_ = -1;
  std::array<Connection, base::kMaxNodes> peers_;
  std::uint64_t failed_ = 0;       // a bit for each endpoint to be closed
  std::uint64_t unblocked_ = 0;    // a bit for each peer whose frame has left UCX
  std::deque<Outgoing> outgoing_;  // owns them all; grows with what waits, and stays
  std::vector<Outgoing*> idle_;
};

Status Port::open(const UcxSettings& settings) {
  ucp_config_t* config = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &config);
  if (status != UCS_OK) return ucx_error("read its configuration", status);
  const auto set = set_options(config, settings);
  if (!set.ok()) {
    ucp_config_release(config);
    return set;
  }
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  status = ucp_init(&params, config, &context_);
  ucp_config_release(config);
  if (status != UCS_OK) {
    Error error = ucx_error("start (ucp_init)", status);
    error.message += chosen_in_environment();
    return error;
  }
  return make_worker();
}

Status Port::make_worker() {
  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE | UCP_WORKER_PARAM_FIELD_AM_ALIGNMENT |
                      UCP_WORKER_PARAM_FIELD_EVENTS;
  // TX: else a worker that has frames waiting can be armed, and over shared memory nothing tells
  // when they can go.
  worker.events = UCP_WAKEUP_TX | UCP_WAKEUP_RX;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  worker.am_alignment = 8;
  ucs_status_t status = ucp_worker_create(context_, &worker, &worker_);
  if (status != UCS_OK) return ucx_error("make a worker", status);
  ucp_am_handler_param_t handler{};
  handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB |
                       UCP_AM_HANDLER_PARAM_FIELD_ARG | UCP_AM_HANDLER_PARAM_FIELD_FLAGS;
  handler.id = kActiveMessageId;
  handler.cb = take;
  handler.arg = this;
  handler.flags = UCP_AM_FLAG_WHOLE_MSG | UCP_AM_FLAG_PERSISTENT_DATA;
  status = ucp_worker_set_am_recv_handler(worker_, &handler);
  if (status != UCS_OK) return ucx_error("take active messages", status);
  status = ucp_worker_get_efd(worker_, &descriptor_);
  if (status != UCS_OK) return ucx_error("give a descriptor to wait on", status);
  status = ucp_dt_create_generic(&kBodyOperations, nullptr, &body_type_);
  if (status != UCS_OK) return ucx_error("make a datatype", status);
  return base::ok();
}

Port::~Port() {
  if (worker_ != nullptr) {
    close(0);
    ucp_worker_destroy(worker_);
  }
  if (body_type_ != 0) ucp_dt_destroy(body_type_);
  if (context_ != nullptr) ucp_cleanup(context_);
}

std::vector<std::byte> Port::address() const {
  ucp_address_t* address = nullptr;
  size_t length = 0;
  const ucs_status_t status = ucp_worker_get_address(worker_, &address, &length);
  AMASIA_CHECK(status == UCS_OK, "a worker has an address");
  const auto* const bytes = reinterpret_cast<const std::byte*>(address);
  std::vector<std::byte> copy(bytes, bytes + length);
  ucp_worker_release_address(worker_, address);
  return copy;
}

Status Port::connect(NodeId peer, std::span<const std::byte> address) {
  AMASIA_CHECK(peers_[peer.value].endpoint == nullptr, "one endpoint to each peer");
  ucp_ep_params_t params{};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler.cb = fail;
  params.err_handler.arg = this;
  const ucs_status_t status = ucp_ep_create(worker_, &params, &peers_[peer.value].endpoint);
  if (status == UCS_OK) return base::ok();
  peers_[peer.value].endpoint = nullptr;
  return ucx_error(fmt::format("connect to node {}", peer.value).c_str(), status);
}

ucs_status_t Port::take(void* self, const void* header, size_t header_length, void* data,
                        size_t length, const ucp_am_recv_param_t* param) {
  // Frames are sent eagerly. A rendezvous comes from a stranger, and its data is not here.
  if ((param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) header_length = 0;
  const bool can_hold = (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_DATA) != 0;
  AMASIA_CHECK(can_hold || header_length == 0 || length == 0, "UCX gives data that can be kept");
  const bool held = static_cast<Port*>(self)->listener_.on_frame(
      {static_cast<const std::byte*>(header), header_length},
      {static_cast<const std::byte*>(data), length}, can_hold ? data : nullptr);
  return held && can_hold ? UCS_INPROGRESS : UCS_OK;
}

void Port::fail(void* self, ucp_ep_h endpoint, ucs_status_t status) {
  Port& port = *static_cast<Port*>(self);
  for (std::size_t peer = 0; peer < port.peers_.size(); ++peer) {
    const std::uint64_t bit = std::uint64_t{1} << peer;
    if (port.peers_[peer].endpoint != endpoint || (port.failed_ & bit) != 0) continue;
    port.failed_ |= bit;  // closed in progress(): not from within UCX's callback
    port.listener_.on_failure(NodeId(static_cast<std::uint16_t>(peer)), ucs_status_string(status));
  }
}

bool Port::progress() {
  const bool moved = ucp_worker_progress(worker_) != 0;
  for (std::uint16_t peer = 0; (failed_ | unblocked_) != 0 && peer < peers_.size(); ++peer) {
    const std::uint64_t bit = std::uint64_t{1} << peer;
    if ((failed_ & bit) != 0) disconnect(NodeId(peer));
    if ((unblocked_ & bit) != 0) send_waiting(peers_[peer]);
    unblocked_ &= ~bit;
  }
  return moved;
}

// True if the frame went out, or cannot, as one short message.
bool Port::transmit_short(Connection& peer, const FrameHeader& header, const OutgoingBody& body,
                          Transmission* result) {
  alignas(8) std::byte joined[kShortBody];
  const std::byte* data = body.head.data();
  if (!body.payload.empty()) {
    if (!body.head.empty()) std::memcpy(joined, body.head.data(), body.head.size());
    std::memcpy(joined + body.head.size(), body.payload.data(), body.payload.size());
    data = joined;
  }
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FLAG_FORCE_IMM_CMPL;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  const ucs_status_ptr_t sent = ucp_am_send_nbx(peer.endpoint, kActiveMessageId, &header,
                                                sizeof header, data, body.size(), &param);
  if (sent == nullptr) {
    *result = Transmission::kDone;
    return true;
  }
  AMASIA_CHECK(UCS_PTR_IS_ERR(sent), "a send that is forced to complete leaves no request");
  if (UCS_PTR_STATUS(sent) == UCS_ERR_NO_RESOURCE) return false;
  *result = Transmission::kFailed;
  return true;
}

Transmission Port::transmit(NodeId to, const FrameHeader& header, OutgoingBody body) {
  Connection& peer = peers_[to.value];
  if (peer.endpoint == nullptr || (failed_ >> to.value & 1) != 0) return Transmission::kFailed;
  // UCX does not keep order between a send that waits inside it and a later one that need not: of
  // each peer at most one frame waits there, the others wait here.
  const bool must_wait = peer.waits_in_ucx || !peer.waiting.empty();
  Transmission result = Transmission::kFailed;
  if (!must_wait && body.size() <= kShortBody && transmit_short(peer, header, body, &result)) {
    return result;
  }
  Outgoing* const outgoing = acquire();
  outgoing->header = header;
  outgoing->body = std::move(body);
  outgoing->piece = 0;
  outgoing->port = this;
  outgoing->to = to;
  result = must_wait ? Transmission::kQueued : hand_over(peer, outgoing);
  if (result == Transmission::kQueued) {
    outgoing->keep_rest();
    if (must_wait) peer.waiting.push_back(outgoing);
  } else {
    recycle(outgoing);
  }
  return result;
}

// Gives a frame to UCX. On kQueued it stays there until complete().
Transmission Port::hand_over(Connection& peer, Outgoing* outgoing) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS | UCP_OP_ATTR_FIELD_DATATYPE |
                       UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.flags = UCP_AM_SEND_FLAG_EAGER;
  param.datatype = body_type_;
  param.cb.send = complete;
  param.user_data = outgoing;
  const ucs_status_ptr_t sent = ucp_am_send_nbx(peer.endpoint, kActiveMessageId, &outgoing->header,
                                                sizeof outgoing->header, outgoing, 1, &param);
  if (sent == nullptr) return Transmission::kDone;
  if (UCS_PTR_IS_ERR(sent)) return Transmission::kFailed;
  peer.waits_in_ucx = true;
  return Transmission::kQueued;
}

void Port::complete(void* request, ucs_status_t, void* user_data) {
  // An error needs no answer here: its endpoint fails too, and fail() is told.
  auto* const outgoing = static_cast<Outgoing*>(user_data);
  Port& port = *outgoing->port;
  port.peers_[outgoing->to.value].waits_in_ucx = false;
  port.unblocked_ |= std::uint64_t{1} << outgoing->to.value;
  port.finish(outgoing);
  ucp_request_free(request);
}

void Port::send_waiting(Connection& peer) {
  while (!peer.waiting.empty() && !peer.waits_in_ucx) {
    Outgoing* const outgoing = peer.waiting.front();
    peer.waiting.pop_front();
    if (hand_over(peer, outgoing) != Transmission::kQueued) finish(outgoing);
  }
}

void Port::finish(Outgoing* outgoing) {
  listener_.on_sent(outgoing->body.size());
  recycle(outgoing);
}

Outgoing* Port::acquire() {
  if (idle_.empty()) return &outgoing_.emplace_back();
  Outgoing* const outgoing = idle_.back();
  idle_.pop_back();
  return outgoing;
}

void Port::recycle(Outgoing* outgoing) {
  outgoing->body = {};
  idle_.push_back(outgoing);
}

void Port::wait_for(ucs_status_ptr_t request, Nanos deadline) {
  if (!UCS_PTR_IS_PTR(request)) return;
  while (ucp_request_check_status(request) == UCS_INPROGRESS && os::monotonic_now() < deadline) {
    if (ucp_worker_progress(worker_) == 0) os::yield_core();
  }
  ucp_request_free(request);
}

void Port::disconnect(NodeId peer) {
  failed_ &= ~(std::uint64_t{1} << peer.value);
  for (Outgoing* const outgoing : peers_[peer.value].waiting) finish(outgoing);
  peers_[peer.value].waiting.clear();
  const ucp_ep_h endpoint = std::exchange(peers_[peer.value].endpoint, nullptr);
  if (endpoint == nullptr) return;
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(endpoint, &param);
  if (UCS_PTR_IS_PTR(request)) ucp_request_free(request);
}

bool Port::is_anything_waiting() const {
  return std::any_of(peers_.begin(), peers_.end(),
                     [](const Connection& peer) { return !peer.waiting.empty(); });
}

void Port::close(Nanos timeout) {
  const Nanos deadline = os::monotonic_now() + timeout;
  while (is_anything_waiting() && os::monotonic_now() < deadline) {
    if (!progress()) os::yield_core();
  }
  ucp_request_param_t param{};
  if (timeout > 0) wait_for(ucp_worker_flush_nbx(worker_, &param), deadline);
  for (std::uint16_t peer = 0; peer < peers_.size(); ++peer) disconnect(NodeId(peer));
}

}  // namespace

Result<std::unique_ptr<UcxPort>> UcxPort::open(const UcxSettings& settings, UcxListener& listener) {
  auto port = std::make_unique<Port>(listener);
  const auto opened = port->open(settings);
  if (!opened.ok()) return opened.error();
  return std::unique_ptr<UcxPort>(std::move(port));
}

}  // namespace amasia::fabric
