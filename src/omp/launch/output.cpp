// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/output.hpp"

#include <fcntl.h>
#include <stdio_ext.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

namespace amasia::omp {
namespace {

constexpr std::size_t kChunk = 64 * base::kKiB;

std::size_t bytes_waiting(int descriptor) {
  int count = 0;
  return ioctl(descriptor, FIONREAD, &count) == 0 && count > 0 ? static_cast<std::size_t>(count)
                                                               : 0;
}

}  // namespace

std::string LineAssembler::add(std::string_view bytes) {
  const auto newline = bytes.rfind('\n');
  if (newline == std::string_view::npos) {
    rest_ += bytes;
    return rest_.size() > kLongestLine ? take_rest() : std::string();
  }
  std::string lines = std::exchange(rest_, std::string(bytes.substr(newline + 1)));
  lines += bytes.substr(0, newline + 1);
  return lines;
}

OutputSource::OutputSource(fabric::Fabric& fabric, os::Descriptor log)
    : fabric_(fabric), standard_(stdout), log_(std::move(log)), buffer_(kChunk) {}

Result<std::unique_ptr<OutputSource>> OutputSource::redirect(fabric::Fabric& fabric) {
  os::Descriptor log(fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 64));
  std::unique_ptr<OutputSource> source(new OutputSource(fabric, std::move(log)));
  auto stop = os::Wakeup::make();
  if (!stop.ok()) return stop.error();
  source->stop_ = std::move(stop).value();
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    auto pipe = os::make_pipe();
    if (!pipe.ok()) return pipe.error();
    const int target = stream == 0 ? STDOUT_FILENO : STDERR_FILENO;
    source->pipes_[stream] = std::move(pipe.value().first);
    source->rests_[stream] = os::Descriptor(memfd_create("amasia output", MFD_CLOEXEC));
    if (!source->rests_[stream].valid()) {
      return base::errno_error(errno, "cannot make a file for the standard streams");
    }
    fcntl(source->pipes_[stream].get(), F_SETFL, O_NONBLOCK);
    if (dup2(pipe.value().second.get(), target) != target) {
      return base::errno_error(errno, "cannot redirect the standard streams");
    }
  }
  auto both = os::join_descriptors(source->pipes_[0].get(), source->pipes_[1].get());
  if (!both.ok()) return both.error();
  source->both_pipes_ = std::move(both).value();
  fabric.set_handler(kOutputFirst, kOutputLast, source.get());
  source->thread_ = std::thread([pump = source.get()] { pump->pump(); });
  return source;
}

OutputSource::~OutputSource() {
  if (!thread_.joinable()) return;
  stop_.raise();
  thread_.join();
}

void OutputSource::pump() {
  os::declare_runtime_thread();
  os::set_thread_name("amasia-output");
  const int descriptors[] = {stop_.descriptor(), pipes_[0].get(), pipes_[1].get()};
  for (;;) {
    if ((os::wait_readable(descriptors, 3, -1) & 1u) != 0) return;
    drain();
  }
}

bool OutputSource::flush() {
  std::fflush(standard_);
  return send_written();
}

bool OutputSource::send_written() {
  // Mostly there is nothing: one system call says so. What the other thread has just taken out of
  // a pipe it has noted before (acquire with drain_locked's release).
  if (!os::is_either_readable(both_pipes_) && !has_sent_.load(std::memory_order_acquire)) {
    return false;
  }
  bool sent = false;
  os::in_runtime_section([this, &sent] { sent = flush_pipes(); });
  return sent;
}

bool OutputSource::flush_pipes() {
  os::MutexLock lock(mutex_);
  for (std::size_t stream = 0; stream < kStreams; ++stream) {
    drain_locked(stream);
    if (lines_[stream].rest().empty()) continue;
    send_lines(stream, lines_[stream].take_rest());
    keep_rest(stream);
  }
  return has_sent_.exchange(false, std::memory_order_relaxed);
}

void OutputSource::send_lines(std::size_t stream, std::string_view text) {
  fabric_.send(base::kOrigin, kOutput, fabric::bytes_of(OutputHead{static_cast<Stream>(stream)}),
               std::as_bytes(std::span(text)));
}

// The file's size is the length of the rest. Written before it is cut, so that it never has bytes
// that nobody wrote. Nothing to be done where it cannot be.
void OutputSource::keep_rest(std::size_t stream) {
  const std::string_view rest = lines_[stream].rest();
  const int file = rests_[stream].get();
  if (pwrite(file, rest.data(), rest.size(), 0) < 0) return;
  static_cast<void>(ftruncate(file, static_cast<off_t>(rest.size())) == 0);
}

bool OutputSource::has_buffered() const { return __fpending(standard_) != 0; }

void OutputSource::wait_written() {
  std::uint32_t mine = 0;
  os::in_runtime_section([&] {
    os::MutexLock lock(mutex_);
    mine = ++asked_;
    fabric_.send(base::kOrigin, kOutputAsk, fabric::bytes_of(OutputMark{mine}));
  });
  for (;;) {
    const std::uint32_t answered = answered_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(mine - answered) <= 0) return;
    os::futex_wait(answered_, answered, base::kSecond);
  }
}

void OutputSource::give() {
  os::declare_runtime_thread();
  flush();
  fabric_.send(base::kOrigin, kOutputGiven, fabric::bytes_of(OutputMark{}));
}

void OutputSource::on_message(const fabric::Incoming& message) {
  OutputMark mark;
  if (message.type == kOutputWanted && message.from == base::kOrigin) {
    // A thread of its own: the one that empties the pipes must go on while this one flushes.
    std::thread([this] { give(); }).detach();
    return;
  }
  if (message.type != kOutputWritten || message.body.size() != sizeof mark) return;
  std::memcpy(&mark, message.body.data(), sizeof mark);
  answered_.store(mark.number, std::memory_order_release);
  os::futex_wake(answered_, INT32_MAX);
}

void OutputSource::drain() {
  os::MutexLock lock(mutex_);
  for (std::size_t stream = 0; stream < kStreams; ++stream) drain_locked(stream);
}

void OutputSource::drain_locked(std::size_t stream) {
  const int pipe = pipes_[stream].get();
  // Bounded: what is written meanwhile belongs to the next call.
  std::size_t waiting = bytes_waiting(pipe);
  if (waiting > 0) has_sent_.store(true, std::memory_order_release);  // before it is read
  while (waiting > 0) {
    const ssize_t got = read(pipe, buffer_.data(), std::min(waiting, buffer_.size()));
    if (got <= 0) return;
    const std::string_view bytes(buffer_.data(), static_cast<std::size_t>(got));
    const bool had_rest = !lines_[stream].rest().empty();
    const std::string lines = lines_[stream].add(bytes);
    if (!lines.empty()) send_lines(stream, lines);
    if (had_rest || !lines_[stream].rest().empty()) keep_rest(stream);
    waiting -= bytes.size();
  }
}

OutputSink::OutputSink(fabric::Fabric& fabric) : fabric_(fabric) {
  fabric.set_handler(kOutputFirst, kOutputLast, this);
  thread_ = std::thread([this] { write_loop(); });
}

OutputSink::~OutputSink() { finish(); }

void OutputSink::on_message(const fabric::Incoming& message) {
  static_assert(sizeof(OutputHead) == sizeof(OutputMark));
  if (message.body.size() < sizeof(OutputHead)) return;
  if (message.type == kOutputGiven) {
    given_.fetch_add(1, std::memory_order_release);  // partner: collect
    os::futex_wake(given_, 1);
    return;
  }
  Chunk chunk{.source = message.from, .stream = {}, .type = message.type, .bytes = {}, .mark = {}};
  if (message.type == kOutputAsk) {
    std::memcpy(&chunk.mark, message.body.data(), sizeof chunk.mark);
  } else {
    OutputHead head;
    std::memcpy(&head, message.body.data(), sizeof head);
    if (static_cast<std::size_t>(head.stream) >= kStreams) return;
    const auto text = message.body.subspan(sizeof head);
    chunk.stream = head.stream;
    chunk.bytes.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  {
    os::MutexLock lock(mutex_);
    queue_.push_back(std::move(chunk));
  }
  arrived_.fetch_add(1, std::memory_order_release);  // with write_loop's acquire
  os::futex_wake(arrived_, 1);
}

void OutputSink::write_loop() {
  os::set_thread_name("amasia-output");
  for (;;) {
    const std::uint32_t arrived = arrived_.load(std::memory_order_acquire);
    std::deque<Chunk> chunks;
    {
      os::MutexLock lock(mutex_);
      chunks.swap(queue_);
    }
    for (const Chunk& chunk : chunks) write_chunk(chunk);
    if (!chunks.empty()) {
      // Release with wait_written's acquire: the lines are in the stream.
      written_.fetch_add(static_cast<std::uint32_t>(chunks.size()), std::memory_order_release);
      os::futex_wake(written_, INT32_MAX);
      continue;
    }
    if (stopping_.load(std::memory_order_acquire)) return;
    os::futex_wait(arrived_, arrived, -1);
  }
}

void OutputSink::answer(const Chunk& chunk) {
  os::in_runtime_section(
      [&] { fabric_.send(chunk.source, kOutputWritten, fabric::bytes_of(chunk.mark)); });
}

void OutputSink::write_chunk(const Chunk& chunk) {
  if (chunk.type == kOutputAsk) return answer(chunk);
  std::FILE* const stream = chunk.stream == Stream::kStandard ? stdout : stderr;
  std::fwrite(chunk.bytes.data(), 1, chunk.bytes.size(), stream);
  // What writes past this stream (Fortran, write(2)) comes after what arrived before.
  std::fflush(stream);
}

void OutputSink::wait_written() {
  const std::uint32_t target = arrived_.load(std::memory_order_acquire);
  for (;;) {
    const std::uint32_t written = written_.load(std::memory_order_acquire);
    if (static_cast<std::int32_t>(target - written) <= 0) return;
    os::futex_wait(written_, written, base::kSecond);
  }
}

void OutputSink::collect(Nanos timeout) {
  const std::uint32_t others = fabric_.node_count() - 1;
  for (std::uint16_t node = 1; node <= others; ++node) {
    fabric_.send(NodeId{node}, kOutputWanted, fabric::bytes_of(OutputMark{}));
  }
  const Nanos deadline = os::monotonic_now() + timeout;
  for (;;) {
    const std::uint32_t given = given_.load(std::memory_order_acquire);
    const Nanos left = deadline - os::monotonic_now();
    if (given >= others || left <= 0) return;
    os::futex_wait(given_, given, left);
  }
}

void OutputSink::finish() {
  if (!thread_.joinable()) return;
  wait_written();
  stopping_.store(true, std::memory_order_release);  // with write_loop's acquire
  arrived_.fetch_add(1, std::memory_order_release);  // no chunk: only wakes
  os::futex_wake(arrived_, 1);
  thread_.join();
}

}  // namespace amasia::omp
