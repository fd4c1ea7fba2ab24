// SPDX-License-Identifier: Apache-2.0
// UCX as far as it is used here: one worker, an endpoint to each peer, eager active messages that
// carry frames. Knows nothing of what frames mean. No UCX type appears in it, so that one file
// includes UCX.
//
// All calls but descriptor() and signal() must be serialized by the owner; none blocks, but close()
// for as long as it is told. Callbacks run inside progress() and transmit().
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "fabric/frame.hpp"
#include "fabric/ucx.hpp"

namespace amasia::fabric {

class UcxListener {
 public:
  virtual ~UcxListener() = default;
  // A frame from somewhere. To keep `body` beyond the call, return true and give `held` to
  // UcxPort::release() later; `held` is null if there is nothing to keep.
  virtual bool on_frame(std::span<const std::byte> header, std::span<const std::byte> body,
                        void* held) = 0;
  // The connection to `peer` failed; `why` is UCX's text.
  virtual void on_failure(NodeId peer, const char* why) = 0;
  // A frame that transmit() had queued is on the network, or given up with its connection.
  virtual void on_sent(std::size_t body_length) = 0;
};

// A body to send: head, then payload. If `copy` is not empty the spans lie in it.
struct OutgoingBody {
  std::span<const std::byte> head;
  std::span<const std::byte> payload;
  std::vector<std::byte> copy;
  std::size_t size() const { return head.size() + payload.size(); }
};

enum class Transmission { kDone, kQueued, kFailed };

class UcxPort {
 public:
  virtual ~UcxPort() = default;
  static Result<std::unique_ptr<UcxPort>> open(const UcxSettings& settings, UcxListener& listener);

  virtual std::vector<std::byte> address() const = 0;
  virtual Status connect(NodeId peer, std::span<const std::byte> address) = 0;
  // Whether anything happened.
  virtual bool progress() = 0;
  // Sends in the order of calls, as far as UCX keeps it. The body is read before it returns; what
  // the network does not take at once is copied, and on_sent() tells when that has gone.
  virtual Transmission transmit(NodeId peer, const FrameHeader& header, OutgoingBody body) = 0;
  virtual void release(void* held) = 0;
  // Ends the connection to `peer`, if there is one, at the next progress(). Also from callbacks.
  virtual void drop(NodeId peer) = 0;
  // Lets everything queued go out, for at most `timeout`, then ends all connections.
  virtual void close(Nanos timeout) = 0;

  virtual bool arm() = 0;
  virtual int descriptor() const = 0;
  virtual void signal() = 0;
};

}  // namespace amasia::fabric
