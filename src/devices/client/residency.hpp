// SPDX-License-Identifier: Apache-2.0
// Where the newest bytes of one resident buffer are. Pure.
//
// Invariant: every byte of the buffer is valid somewhere, on the host or on a device. Bytes move
// between devices over the host.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "devices/client/intervals.hpp"

namespace amasia::devices {

// One of the client's devices; its own numbers.
using OwnDevice = std::uint8_t;
inline constexpr OwnDevice kHost = 0xff;

struct Move {
  OwnDevice from = kHost, to = kHost;  // one of both is kHost
  Range range;
};

class Residency {
 public:
  explicit Residency(Bytes size) : size_(size) { host_.add({0, size}); }
  Bytes size() const { return size_; }

  // What to move, in order, so that `range` is valid on `device`, or on the host. The moves count
  // as done.
  std::vector<Move> bring(OwnDevice device, Range range);
  // A kernel on the device, or the program on the host, has written or will have written `range`.
  void written(OwnDevice device, Range range);
  // The copy on the device goes; what is valid only there is saved by these moves first.
  std::vector<Move> drop(OwnDevice device);
  // The same without saving: it is lost, and whatever the host has counts as valid.
  void forget(OwnDevice device);
  // Whether the copy there, if any, has no valid byte.
  bool is_stale(OwnDevice device) const {
    const auto found = devices_.find(device);
    return found != devices_.end() && found->second.empty();
  }
  bool has_copy(OwnDevice device) const { return devices_.contains(device); }
  std::vector<OwnDevice> copies() const;
  // Whether nothing would have to move for `range` to be valid there.
  bool is_valid(OwnDevice where, Range range) const;

 private:
  Bytes size_;
  IntervalSet host_;
  std::map<OwnDevice, IntervalSet> devices_;
};

}  // namespace amasia::devices
