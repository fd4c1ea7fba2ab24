// SPDX-License-Identifier: Apache-2.0
#include "devices/policy/eviction.hpp"

#include <algorithm>

namespace amasia::devices::policy {
namespace {

struct Candidate {
  BufferKey key;
  Bytes bytes;
  double worth;
  std::uint64_t used_at;
};

constexpr double kOutOfDate = -1;

}  // namespace

std::vector<BufferKey> victims(const EvictionPolicy& policy, Ledger& ledger,
                               const TaskDescription& task, DeviceId id,
                               std::uint64_t (*next_use)(const void*, BufferKey),
                               const void* context) {
  Ledger::Need need = ledger.need(task, id);
  if (need.of_any == 0 && need.of_client == 0) return {};
  DeviceUse& device = ledger.device_for_eviction(id);
  std::vector<Candidate> all;
  for (const auto& [key, copy] : device.copies) {
    const bool own = key.client == task.key.client &&
                     std::any_of(task.resident.begin(), task.resident.end(),
                                 [&](const TaskArgument& use) { return use.buffer == key.buffer; });
    if (own || copy.pins > 0) continue;
    const double worth = copy.valid ? policy.worth(copy, next_use(context, key)) : kOutOfDate;
    all.push_back({key, copy.bytes, worth, copy.used_at});
  }
  // The key last, so that the same happens in every run.
  std::sort(all.begin(), all.end(), [](const Candidate& a, const Candidate& b) {
    if (a.worth != b.worth) return a.worth < b.worth;
    if (a.used_at != b.used_at) return a.used_at < b.used_at;
    return a.key < b.key;
  });
  const ClientId client = task.key.client;
  Bytes of_any = 0, of_client = 0;
  std::vector<Candidate> chosen;
  const auto take = [&](bool of_client_only) {
    for (Candidate& candidate : all) {
      const bool enough = of_client_only ? of_client >= need.of_client : of_any >= need.of_any;
      if (enough) return;
      if (candidate.bytes == 0 || (of_client_only && candidate.key.client != client)) continue;
      chosen.push_back(candidate);
      of_any += candidate.bytes;
      if (candidate.key.client == client) of_client += candidate.bytes;
      candidate.bytes = 0;  // taken
    }
  };
  take(true);
  take(false);
  AMASIA_CHECK(of_any >= need.of_any && of_client >= need.of_client,
               "where a task fits, what is not pinned makes enough room");
  // A large one that was taken last may have made smaller ones superfluous: the worthiest stay.
  std::sort(chosen.begin(), chosen.end(), [](const Candidate& a, const Candidate& b) {
    return a.worth != b.worth ? a.worth > b.worth : a.key < b.key;
  });
  std::vector<BufferKey> out;
  for (const Candidate& candidate : chosen) {
    const Bytes own = candidate.key.client == client ? candidate.bytes : 0;
    if (of_any - candidate.bytes >= need.of_any && of_client - own >= need.of_client) {
      of_any -= candidate.bytes;
      of_client -= own;
      continue;
    }
    policy.went(device, std::max(0.0, candidate.worth));
    out.push_back(candidate.key);
  }
  return out;
}

}  // namespace amasia::devices::policy
