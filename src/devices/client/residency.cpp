// SPDX-License-Identifier: Apache-2.0
#include "devices/client/residency.hpp"

namespace amasia::devices {

std::vector<Move> Residency::bring(OwnDevice device, Range range) {
  std::vector<Move> moves;
  const std::vector<Range> lacking =
      device == kHost ? host_.missing(range) : devices_[device].missing(range);
  for (const Range& piece : lacking) {
    for (const Range& elsewhere : host_.missing(piece)) {
      for (const auto& [other, valid] : devices_) {
        for (const Range& part : valid.common(elsewhere)) {
          if (host_.missing(part).empty()) continue;  // another device's copy has served
          moves.push_back({other, kHost, part});
          host_.add(part);
        }
      }
    }
    if (device == kHost) continue;
    moves.push_back({kHost, device, piece});
    devices_[device].add(piece);
  }
  return moves;
}

void Residency::written(OwnDevice device, Range range) {
  if (device != kHost) devices_[device];
  for (auto& [other, valid] : devices_) {
    if (other == device) {
      valid.add(range);
    } else {
      valid.remove(range);
    }
  }
  if (device == kHost) {
    host_.add(range);
  } else {
    host_.remove(range);
  }
}

std::vector<Move> Residency::drop(OwnDevice device) {
  const auto found = devices_.find(device);
  if (found == devices_.end()) return {};
  IntervalSet alone = found->second;
  for (const Range& range : host_.common({0, size_})) alone.remove(range);
  for (const auto& [other, valid] : devices_) {
    if (other == device) continue;
    for (const Range& range : valid.common({0, size_})) alone.remove(range);
  }
  std::vector<Move> moves;
  for (const Range& range : alone.common({0, size_})) {
    moves.push_back({device, kHost, range});
    host_.add(range);
  }
  devices_.erase(found);
  return moves;
}

void Residency::forget(OwnDevice device) {
  if (devices_.erase(device) == 0) return;
  for (Range lost : host_.missing({0, size_})) {
    IntervalSet nowhere;
    nowhere.add(lost);
    for (const auto& [other, valid] : devices_) {
      for (const Range& range : valid.common(lost)) nowhere.remove(range);
    }
    for (const Range& range : nowhere.common(lost)) host_.add(range);
  }
}

std::vector<OwnDevice> Residency::copies() const {
  std::vector<OwnDevice> out;
  for (const auto& [device, valid] : devices_) out.push_back(device);
  return out;
}

bool Residency::is_valid(OwnDevice where, Range range) const {
  if (where == kHost) return host_.covers(range);
  const auto found = devices_.find(where);
  return found != devices_.end() && found->second.covers(range);
}

}  // namespace amasia::devices
