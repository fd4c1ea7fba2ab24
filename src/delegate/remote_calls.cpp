// SPDX-License-Identifier: Apache-2.0
#include "delegate/remote_calls.hpp"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace amasia::delegate {
namespace {

// A longer read or write is cut: POSIX lets both return less, and every caller must go on.
constexpr std::size_t kMaxTransfer = 1 * base::kMiB;

// Where the bytes of a call lie in the caller's memory, in order.
using Pieces = std::vector<iovec>;

iovec piece(std::uint64_t address, std::size_t size) {
  return {reinterpret_cast<void*>(address), size};
}

iovec path_piece(std::uint64_t address) {
  return piece(address, std::strlen(reinterpret_cast<const char*>(address)) + 1);
}

bool lacks_a_path(const CallShape& shape, const os::TrappedCall& call) {
  switch (shape.kind) {
    case ShapeKind::kTwoPaths:
      return call.arguments[shape.pointer] == 0 || call.arguments[shape.out_pointer] == 0;
    case ShapeKind::kPath:
    case ShapeKind::kPathBytes:
    case ShapeKind::kPathOut:
      return call.arguments[shape.pointer] == 0;
    default:
      return false;
  }
}

Pieces vector_pieces(const os::TrappedCall& call) {
  const auto* vector = reinterpret_cast<const iovec*>(call.arguments[1]);
  return {vector, vector + call.arguments[2]};
}

Pieces pieces_in(const CallShape& shape, const os::TrappedCall& call) {
  switch (shape.kind) {
    case ShapeKind::kBytesIn:
      return {piece(call.arguments[shape.pointer], call.arguments[shape.length])};
    case ShapeKind::kPath:
    case ShapeKind::kPathBytes:
    case ShapeKind::kPathOut:
      return {path_piece(call.arguments[shape.pointer])};
    case ShapeKind::kTwoPaths:
      return {path_piece(call.arguments[shape.pointer]),
              path_piece(call.arguments[shape.out_pointer])};
    case ShapeKind::kFixedOut:  // F_GETLK reads what it overwrites; the others do not mind
      return {piece(call.arguments[shape.out_pointer], shape.out_size)};
    case ShapeKind::kVectorIn:
      return vector_pieces(call);
    default:
      return {};
  }
}

Pieces pieces_out(const CallShape& shape, const os::TrappedCall& call) {
  switch (shape.kind) {
    case ShapeKind::kBytesOut:
      return {piece(call.arguments[shape.pointer], call.arguments[shape.length])};
    case ShapeKind::kPathBytes:
      return {piece(call.arguments[shape.out_pointer], call.arguments[shape.length])};
    case ShapeKind::kPathOut:
    case ShapeKind::kFixedOut:
      return {piece(call.arguments[shape.out_pointer], shape.out_size)};
    case ShapeKind::kVectorOut:
      return vector_pieces(call);
    default:
      return {};
  }
}

std::vector<std::byte> gather(const Pieces& pieces) {
  std::vector<std::byte> bytes;
  for (const iovec& from : pieces) {
    const std::size_t size = std::min(from.iov_len, kMaxTransfer - bytes.size());
    const auto* begin = static_cast<const std::byte*>(from.iov_base);
    bytes.insert(bytes.end(), begin, begin + size);
  }
  return bytes;
}

void scatter(std::span<const std::byte> bytes, const Pieces& pieces) {
  for (const iovec& to : pieces) {
    const std::size_t size = std::min(to.iov_len, bytes.size());
    std::memcpy(to.iov_base, bytes.data(), size);
    bytes = bytes.subspan(size);
  }
}

std::size_t total_size(const Pieces& pieces) {
  std::size_t size = 0;
  for (const iovec& each : pieces) size += std::min(each.iov_len, kMaxTransfer - size);
  return size;
}

// Puts the addresses of the origin's copies, and their sizes, in place of the caller's.
void point_at(const CallShape& shape, CallMessage& message, std::byte* in, iovec& out_vector,
              iovec& in_vector) {
  auto& arguments = message.arguments;
  const auto address = [](const void* p) { return reinterpret_cast<std::uint64_t>(p); };
  switch (shape.kind) {
    case ShapeKind::kBytesIn:
      arguments[shape.pointer] = address(in);
      arguments[shape.length] = message.in_size;
      break;
    case ShapeKind::kBytesOut:
      arguments[shape.pointer] = address(out_vector.iov_base);
      arguments[shape.length] = message.out_size;
      break;
    case ShapeKind::kTwoPaths:
      arguments[shape.pointer] = address(in);
      arguments[shape.out_pointer] = address(in) + 1 + strnlen(reinterpret_cast<char*>(in),
                                                               message.in_size);
      break;
    case ShapeKind::kPathBytes:
      arguments[shape.length] = message.out_size;
      [[fallthrough]];
    case ShapeKind::kPathOut:
      arguments[shape.out_pointer] = address(out_vector.iov_base);
      [[fallthrough]];
    case ShapeKind::kPath:
      arguments[shape.pointer] = address(in);
      break;
    case ShapeKind::kFixedOut:
      arguments[shape.out_pointer] = address(out_vector.iov_base);
      break;
    case ShapeKind::kVectorIn:
      arguments[1] = address(&in_vector);
      arguments[2] = 1;
      break;
    case ShapeKind::kVectorOut:
      arguments[1] = address(&out_vector);
      arguments[2] = 1;
      break;
    case ShapeKind::kValues:
    case ShapeKind::kRefused:
      break;
  }
}

// How many of the `out_size` bytes the call has written.
std::size_t written(const CallShape& shape, long result, std::uint32_t out_size) {
  if (result < 0) return 0;
  const bool counts = shape.kind == ShapeKind::kBytesOut || shape.kind == ShapeKind::kVectorOut ||
                      shape.kind == ShapeKind::kPathBytes;
  return counts ? std::min<std::size_t>(static_cast<std::size_t>(result), out_size) : out_size;
}

// `in` is what the call reads: of calls with a path that comes first.
AwaitedCall awaited(const CallShape& shape, const os::TrappedCall& call,
                    const std::vector<std::byte>& in) {
  if (shape.kind == ShapeKind::kPath || shape.kind == ShapeKind::kPathOut) {
    return {.object = AwaitedCall::Object::kPath,
            .what = shape.name,
            .path = reinterpret_cast<const char*>(in.data())};
  }
  return {.object = AwaitedCall::Object::kDescriptor,
          .what = shape.name,
          .number = call.arguments[0]};
}

thread_local CallTimes own_call_times;
// Looked at by others, for whom it may be over by then. Relaxed.
thread_local std::atomic<bool> carrying{false};

}  // namespace

CallTimes RemoteCalls::own_times() noexcept { return own_call_times; }

const std::atomic<bool>& RemoteCalls::own_carrying() noexcept { return carrying; }

CallTimes RemoteCalls::times() const noexcept {
  return {.at_origin = at_origin_.load(std::memory_order_relaxed),
          .carriage = carriage_.load(std::memory_order_relaxed)};
}

// The clocks of two nodes are not compared, only what each says of a time of its own.
void RemoteCalls::count(Nanos taken, Nanos waited) noexcept {
  taken = std::clamp<Nanos>(taken, 0, waited);
  own_call_times.at_origin += taken;
  own_call_times.carriage += waited - taken;
  at_origin_.fetch_add(taken, std::memory_order_relaxed);
  carriage_.fetch_add(waited - taken, std::memory_order_relaxed);
}

long RemoteCalls::answer(const os::TrappedCall& call) noexcept {
  const CallShape* shape = shape_of(static_cast<int>(call.number), call.arguments);
  AMASIA_CHECK(shape != nullptr, "a call was caught that the table does not know");
  if (shape->kind == ShapeKind::kRefused) return refuse(*shape);
  if (lacks_a_path(*shape, call)) return -EFAULT;
  calls_.fetch_add(1, std::memory_order_relaxed);
  return carry(*shape, call);
}

long RemoteCalls::refuse(const CallShape& shape) noexcept {
  refused_.fetch_add(1, std::memory_order_relaxed);
  // Relaxed: two threads differ in the same bit only.
  if (!said_[static_cast<std::size_t>(shape.number)].exchange(true, std::memory_order_relaxed)) {
    base::log_line(base::LogLevel::kWarning,
                   "{} is possible on node 0 only and fails here (errno {}); further calls of "
                   "it fail without a word",
                   shape.name, shape.refusal);
  }
  return -shape.refusal;
}

long RemoteCalls::carry(const CallShape& shape, const os::TrappedCall& call) {
  const std::vector<std::byte> in = gather(pieces_in(shape, call));
  const Pieces out = pieces_out(shape, call);
  CallMessage message;
  message.ticket = slots_.acquire();
  message.number = static_cast<std::int32_t>(call.number);
  message.in_size = static_cast<std::uint32_t>(in.size());
  message.out_size = static_cast<std::uint32_t>(total_size(out));
  message.arguments = call.arguments;
  // The program's memory, for whose pages it may wait, is touched before and after.
  const Nanos began = os::monotonic_now();
  os::in_runtime_section(
      [&] { fabric_.send(base::kOrigin, kCall, fabric::bytes_of(message), in); });
  carrying.store(true, std::memory_order_relaxed);
  slots_.wait_beyond(message.ticket, CallSlot::kRegistered, kNoDeadline,
                     awaited(shape, call, in));
  carrying.store(false, std::memory_order_relaxed);
  CallSlot& slot = slots_.slot(message.ticket);
  const long result = slot.result;
  count(slot.taken, os::monotonic_now() - began);
  scatter(slot.reply, out);
  slots_.release(message.ticket);
  return result;
}

CallServer::~CallServer() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    queue_.clear();
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

bool CallServer::on_call(NodeId from, std::span<const std::byte> body) {
  Request request{.from = from, .message = {}, .in = {}};
  if (body.size() < sizeof request.message) return false;
  std::memcpy(&request.message, body.data(), sizeof request.message);
  body = body.subspan(sizeof request.message);
  const CallShape* shape = shape_of(request.message.number, request.message.arguments);
  if (shape == nullptr || shape->kind == ShapeKind::kRefused) return false;
  if (body.size() != request.message.in_size) return false;
  const bool has_paths = shape->kind == ShapeKind::kPath || shape->kind == ShapeKind::kTwoPaths ||
                         shape->kind == ShapeKind::kPathBytes || shape->kind == ShapeKind::kPathOut;
  const int paths = shape->kind == ShapeKind::kTwoPaths ? 2 : 1;
  if (has_paths && std::ranges::count(body, std::byte{0}) != paths) return false;
  if (request.message.out_size > kMaxTransfer) return false;
  request.in.assign(body.begin(), body.end());
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(request));
  if (idle_threads_ < queue_.size() && threads_.size() < kMaxThreads) {
    threads_.emplace_back([this] { work(); });
  }
  changed_.notify_one();
  return true;
}

void CallServer::work() {
  os::declare_runtime_thread();
  os::set_thread_name("amasia-calls");
  std::unique_lock lock(mutex_);
  for (;;) {
    ++idle_threads_;
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    --idle_threads_;
    if (stopping_) return;
    Request request = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    execute(request);
    lock.lock();
  }
}

void CallServer::execute(Request& request) {
  CallMessage& message = request.message;
  const CallShape* shape = shape_of(message.number, message.arguments);
  std::vector<std::byte> out(message.out_size);
  if (shape->kind == ShapeKind::kFixedOut && request.in.size() == out.size()) out = request.in;
  iovec out_vector{out.data(), out.size()};
  iovec in_vector{request.in.data(), request.in.size()};
  point_at(*shape, message, request.in.data(), out_vector, in_vector);
  const auto& a = message.arguments;
  const Nanos began = os::monotonic_now();
  const long returned = syscall(message.number, a[0], a[1], a[2], a[3], a[4], a[5]);
  const long result = returned == -1 ? -errno : returned;
  const AnswerMessage answer{message.ticket, result, os::monotonic_now() - began};
  const std::size_t size = written(*shape, answer.result, message.out_size);
  fabric_.send(request.from, kAnswer, fabric::bytes_of(answer), std::span(out).first(size));
}

}  // namespace amasia::delegate
