// SPDX-License-Identifier: Apache-2.0
// One connection as a pure state machine: judges every frame that claims to come from one peer,
// and stamps every frame to it. No I/O, no allocation, no lock. The state x event table is in
// docs/protocols/fabric.md; a test holds the two together.
#pragma once

#include <cstdint>
#include <span>

#include "fabric/frame.hpp"
#include "fabric/proof.hpp"

namespace amasia::fabric {

enum class ChannelState : std::uint8_t {
  kSilent,   // nothing valid came from the peer yet
  kGreeted,  // its nonce is known; it has not proved the secret
  kOpen,     // it has proved the secret
  kLeft,     // it said goodbye
  kLost,     // it broke the protocol, or close() was called
};

enum class Verdict : std::uint8_t {
  kDeliver,  // hand the body on
  kHold,     // keep the frame and judge it again when its sequence number is due
  kAccept,   // a frame of the handshake, used up
  kLeave,    // the peer leaves in order: send it a farewell
  kFarewell, // the peer has taken in all that was sent, this node's goodbye too
  kRefuse,   // the sender has not shown that it is the peer: ignore the frame
  kBreak,    // the sender is the peer and breaks the protocol: it is lost
};

struct Judgement {
  Verdict verdict;
  const char* reason = "";  // for kRefuse and kBreak: completes "node N …"
  bool send_proof = false;  // send proof_body() with proof_header() now
  bool opened = false;      // the state is kOpen since this frame
};

struct ProofBody {
  Nonce nonce;
  Mac mac;
};
static_assert(sizeof(ProofBody) == 64);

// Frames may come early by less than this; a frame further ahead is malformed.
inline constexpr std::uint64_t kReorderWindow = 256;

// The node that `header` claims to come from, if header and body agree with each other and it is
// for `self` from another node of the job; else node_count.
std::uint32_t claimed_sender(const FrameHeader& header, NodeId self, std::uint32_t node_count);

class Channel {
 public:
  Channel(NodeId self, NodeId peer, const JobSecret& secret, const Nonce& own_nonce);

  Judgement judge(const FrameHeader& header, std::span<const std::byte> body);

  ChannelState state() const { return state_; }
  bool is_open() const { return state_ == ChannelState::kOpen; }
  std::uint64_t next_sequence() const { return receive_sequence_; }
  // From now on every frame of the peer is refused.
  void close() { state_ = ChannelState::kLost; }

  FrameHeader hello_header() const { return handshake_header(kHelloType, sizeof(Nonce)); }
  const Nonce& hello_body() const { return own_nonce_; }
  FrameHeader proof_header() const { return handshake_header(kProofType, sizeof(ProofBody)); }
  // Only after a judgement with send_proof.
  ProofBody proof_body() const;
  // Stamps the next frame to the peer. Only when open; a farewell also when it has left.
  FrameHeader stamp(MessageType type, std::uint32_t length);

 private:
  FrameHeader handshake_header(MessageType type, std::uint32_t length) const;
  Judgement judge_hello(std::span<const std::byte> body);
  Judgement judge_proof(std::span<const std::byte> body);
  Judgement judge_message(const FrameHeader& header);
  // Learns the peer's nonce; false if it had told another one.
  bool greet(const Nonce& nonce);
  Judgement break_off(const char* reason);

  NodeId self_;
  NodeId peer_;
  JobSecret secret_;
  Nonce own_nonce_;
  Nonce peer_nonce_{};
  ChannelState state_ = ChannelState::kSilent;
  std::uint64_t send_token_ = 0;
  std::uint64_t receive_token_ = 0;
  std::uint64_t send_sequence_ = 0;
  std::uint64_t receive_sequence_ = 0;
  bool said_goodbye_ = false;
};

}  // namespace amasia::fabric
