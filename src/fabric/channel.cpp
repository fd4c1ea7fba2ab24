// SPDX-License-Identifier: Apache-2.0
#include "fabric/channel.hpp"

#include <cstring>

namespace amasia::fabric {
namespace {

Judgement refuse(const char* reason) { return {Verdict::kRefuse, reason, false, false}; }

}  // namespace

std::uint32_t claimed_sender(const FrameHeader& header, NodeId self, std::uint32_t node_count) {
  const bool ours = header.to == self.value && header.from != self.value;
  return ours && header.from < node_count ? header.from : node_count;
}

Channel::Channel(NodeId self, NodeId peer, const JobSecret& secret, const Nonce& own_nonce)
    : self_(self), peer_(peer), secret_(secret), own_nonce_(own_nonce) {
  AMASIA_CHECK(self != peer, "a node has no connection to itself");
}

Judgement Channel::judge(const FrameHeader& header, std::span<const std::byte> body) {
  AMASIA_CHECK(header.from == peer_.value, "frames are judged by the channel of their sender");
  if (state_ == ChannelState::kLost) return refuse("is lost and still sends");
  if (header.token == 0) {
    // Anyone can send these, so that none of them may do harm once the channel is open.
    if (state_ == ChannelState::kOpen && header.type == kHelloType && body.size() == 32 &&
        std::memcmp(body.data(), peer_nonce_.data(), sizeof peer_nonce_) == 0) {
      return {Verdict::kAccept};  // the proof overtook the greeting
    }
    if (state_ == ChannelState::kOpen || state_ == ChannelState::kLeft) {
      return refuse("sends a second handshake");
    }
    if (header.version != kFrameVersion) {
      return break_off("runs another version of Amasia (its frames have another version)");
    }
    if (header.length != body.size()) return refuse("sends a handshake of the wrong length");
    if (header.type == kHelloType) return judge_hello(body);
    if (header.type == kProofType) return judge_proof(body);
    return refuse("sends messages before it has proved the job's secret");
  }
  if (state_ == ChannelState::kSilent || header.token != receive_token_) {
    return refuse("sends a frame without the connection's token");
  }
  if (state_ == ChannelState::kLeft && header.type != kFarewellType) {
    return break_off("sends after its goodbye");
  }
  if (header.version != kFrameVersion) return break_off("sends a frame of another version");
  if (header.reserved != 0) return break_off("sends a frame with reserved bits set");
  if (header.length != body.size() || header.length > kMaxFrameBody) {
    return break_off("sends a frame whose length is wrong");
  }
  return judge_message(header);
}

bool Channel::greet(const Nonce& nonce) {
  if (state_ != ChannelState::kSilent) return nonce == peer_nonce_;
  peer_nonce_ = nonce;
  send_token_ = compute_token(secret_, {self_, peer_, own_nonce_, peer_nonce_});
  receive_token_ = compute_token(secret_, {peer_, self_, peer_nonce_, own_nonce_});
  state_ = ChannelState::kGreeted;
  return true;
}

Judgement Channel::judge_hello(std::span<const std::byte> body) {
  if (body.size() != sizeof(Nonce)) return refuse("sends a greeting of the wrong length");
  Nonce nonce;
  std::memcpy(nonce.data(), body.data(), sizeof nonce);
  const bool first = state_ == ChannelState::kSilent;
  if (!greet(nonce)) return break_off("greets twice, differently");
  return {Verdict::kAccept, "", first, false};
}

Judgement Channel::judge_proof(std::span<const std::byte> body) {
  if (body.size() != sizeof(ProofBody)) return refuse("sends a proof of the wrong length");
  ProofBody proof;
  std::memcpy(&proof, body.data(), sizeof proof);
  const bool first = state_ == ChannelState::kSilent;
  if (!greet(proof.nonce)) return break_off("greets twice, differently");
  const Mac expected = compute_proof(secret_, {peer_, self_, peer_nonce_, own_nonce_});
  if (!is_same(proof.mac, expected)) return break_off("does not know the job's secret");
  state_ = ChannelState::kOpen;
  return {Verdict::kAccept, "", first, true};
}

Judgement Channel::judge_message(const FrameHeader& header) {
  const bool is_own = header.type == kGoodbyeType || header.type == kFarewellType;
  if (!is_own && (header.type < kFirstFreeType || header.type >= kTypeCount)) {
    return break_off("sends a message of an unknown type");
  }
  if (header.sequence < receive_sequence_) return break_off("sends a frame twice");
  if (header.sequence - receive_sequence_ >= kReorderWindow) {
    return break_off("sends frames too far ahead of their order");
  }
  if (state_ == ChannelState::kGreeted || header.sequence != receive_sequence_) {
    return {Verdict::kHold};
  }
  ++receive_sequence_;
  if (!is_own) return {Verdict::kDeliver};
  if (header.length != 0) return break_off("sends a goodbye with a body");
  if (header.type == kFarewellType) {
    return said_goodbye_ ? Judgement{Verdict::kFarewell} : break_off("answers no goodbye");
  }
  state_ = ChannelState::kLeft;
  return {Verdict::kLeave};
}

Judgement Channel::break_off(const char* reason) {
  state_ = ChannelState::kLost;
  return {Verdict::kBreak, reason, false, false};
}

FrameHeader Channel::handshake_header(MessageType type, std::uint32_t length) const {
  FrameHeader header;
  header.type = type;
  header.length = length;
  header.from = self_.value;
  header.to = peer_.value;
  return header;
}

ProofBody Channel::proof_body() const {
  AMASIA_CHECK(state_ != ChannelState::kSilent, "a proof answers the peer's nonce");
  return {own_nonce_, compute_proof(secret_, {self_, peer_, own_nonce_, peer_nonce_})};
}

FrameHeader Channel::stamp(MessageType type, std::uint32_t length) {
  const bool may_answer = state_ == ChannelState::kLeft && type == kFarewellType;
  AMASIA_CHECK(state_ == ChannelState::kOpen || may_answer,
               "nothing is sent to a peer that has not proved itself, or has left");
  said_goodbye_ = said_goodbye_ || type == kGoodbyeType;
  AMASIA_CHECK(length <= kMaxFrameBody, "a body is at most 4 MiB");
  FrameHeader header = handshake_header(type, length);
  header.sequence = send_sequence_++;
  header.token = send_token_;
  return header;
}

}  // namespace amasia::fabric
