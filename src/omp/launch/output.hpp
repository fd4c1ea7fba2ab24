// SPDX-License-Identifier: Apache-2.0
// Standard output and error of the nodes that have none of their own.
//
// On a node other than the origin both are pipes. What the program writes is read from them by a
// thread of the runtime, or by a thread that flushes, and sent to the origin as whole lines. There
// one thread writes them with fwrite to its own streams, after what the program on the origin has
// printed so far. A line that has begun waits at its node, in a file that outlives the node.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/base.hpp"
#include "fabric/fabric.hpp"
#include "os/os.hpp"

namespace amasia::omp {

// kOutput: from a node to the origin; head OutputHead, payload the bytes to write.
inline constexpr fabric::MessageType kOutputFirst = 0x310, kOutputLast = 0x31f;
inline constexpr fabric::MessageType kOutput = 0x310;
// kOutputAsk: from a node to the origin, OutputMark: is all that came before written?
// kOutputWritten: the answer, the same mark, when it is.
inline constexpr fabric::MessageType kOutputAsk = 0x311;
inline constexpr fabric::MessageType kOutputWritten = 0x312;
// kOutputWanted: from the origin, where the program ends in a region: flush what is in buffers.
// kOutputGiven: the answer, behind all that was written.
inline constexpr fabric::MessageType kOutputWanted = 0x313;
inline constexpr fabric::MessageType kOutputGiven = 0x314;

enum class Stream : std::uint32_t { kStandard = 0, kError = 1 };
inline constexpr std::size_t kStreams = 2;

struct OutputHead {
  Stream stream = Stream::kStandard;
  std::uint32_t unused = 0;
};

struct OutputMark {
  std::uint32_t number = 0;
  std::uint32_t unused = 0;
};

// Bytes of one stream, as whole lines. Pure.
class LineAssembler {
 public:
  static constexpr std::size_t kLongestLine = 1 << 20;  // a longer one is cut into pieces

  // What can be sent now that `bytes` came: whole lines.
  std::string add(std::string_view bytes);
  // What has begun and not ended.
  std::string_view rest() const { return rest_; }
  std::string take_rest() { return std::exchange(rest_, {}); }

 private:
  std::string rest_;
};

// On nodes other than the origin.
class OutputSource final : public fabric::Handler {
 public:
  // Makes descriptors 1 and 2 of this process pipes, and keeps what 2 was for the log. Before
  // the program's main, with what was printed before discarded by the caller.
  static Result<std::unique_ptr<OutputSource>> redirect(fabric::Fabric& fabric);
  // Ends the thread. What was not flushed is lost: by then the origin may have ended.
  ~OutputSource() override;
  OutputSource(const OutputSource&) = delete;
  OutputSource& operator=(const OutputSource&) = delete;

  // Flushes stdout and sends what has been written. Any thread but the service thread; afterwards
  // a message of the same thread is behind the output at the origin. True: something was sent since
  // the last call. About 0.1 µs if there is none.
  bool flush();
  // The same without what is in the buffer of stdout.
  bool send_written();
  // Whether flush() would find something in the buffer of stdout. Some ns.
  bool has_buffered() const;
  // After flush(): returns when the origin has written what was sent. Any thread but the service
  // thread; blocks for the way there and back.
  void wait_written();

  void on_message(const fabric::Incoming& message) override;

  // Whoever has copies can read from them what is left once this process is dead: for each stream
  // the line that has begun, and what is in the pipe behind it.
  std::array<int, 2 * kStreams> last_words() const {
    return {rests_[0].get(), pipes_[0].get(), rests_[1].get(), pipes_[1].get()};
  }

  // A descriptor of the original standard error.
  int log_descriptor() const { return log_.get(); }

 private:
  OutputSource(fabric::Fabric& fabric, os::Descriptor log);
  void pump();
  void drain();
  void drain_locked(std::size_t stream);
  bool flush_pipes();
  void send_lines(std::size_t stream, std::string_view text);
  void keep_rest(std::size_t stream);
  void give();

  fabric::Fabric& fabric_;
  // Read once, before globals are managed: the variable `stdout` mostly lies in the executable
  // (copy relocation), so that reading it could wait for a page of a node that has ended.
  std::FILE* const standard_;
  os::Descriptor log_;
  std::array<os::Descriptor, kStreams> pipes_;  // the reading ends
  std::array<os::Descriptor, kStreams> rests_;  // files with the rest of lines_, offset 0
  os::Descriptor both_pipes_;                   // joined
  os::Wakeup stop_;
  // Guards reading and sending, so that bytes are sent in the order in which they were read. Held
  // in runtime sections only.
  os::Mutex mutex_;
  std::array<LineAssembler, kStreams> lines_;  // under mutex_
  // Since the last flush; changes under mutex_. A line that was begun and not flushed counts.
  std::atomic<bool> has_sent_{false};
  std::vector<char> buffer_;  // under mutex_
  std::uint32_t asked_ = 0;        // under mutex_: the last kOutputAsk
  // The last one that was answered. Release by the handler, acquire by who waits.
  std::atomic<std::uint32_t> answered_{0};
  std::thread thread_;
};

// On the origin.
class OutputSink final : public fabric::Handler {
 public:
  explicit OutputSink(fabric::Fabric& fabric);
  ~OutputSink() override;

  // Returns when all that has arrived is written. Any thread but the service thread. A load if
  // there is nothing.
  void wait_written();
  // Asks all other nodes for what is in their streams' buffers; returns when they have sent it, or
  // the time is over: a thread there may hold the stream. Runtime section, once.
  void collect(Nanos timeout);
  // The same as wait_written(), and ends the thread.
  void finish();

  void on_message(const fabric::Incoming& message) override;

 private:
  struct Chunk {
    NodeId source;
    Stream stream;
    fabric::MessageType type;
    std::string bytes;
    OutputMark mark;
  };
  void write_loop();
  void write_chunk(const Chunk& chunk);
  void answer(const Chunk& chunk);

  fabric::Fabric& fabric_;
  os::Mutex mutex_;  // taken by the handler; held only while queue_ is touched
  std::deque<Chunk> queue_ AMASIA_GUARDED_BY(mutex_);
  // Chunks that arrived and that were written. Release by who adds, acquire by who compares.
  std::atomic<std::uint32_t> arrived_{0};
  std::atomic<std::uint32_t> written_{0};
  std::atomic<std::uint32_t> given_{0};  // nodes that have answered collect()
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace amasia::omp
