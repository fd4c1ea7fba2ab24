// SPDX-License-Identifier: Apache-2.0
// When to give up a page that another node asks for. Pure: the caller brings clocks and signs.
//
// A page that is given away before the woken thread has retried its access makes no progress
// ("steal before use"); a page that is kept for long makes the others wait. Three rules:
//   floor      keep a page until the thread that faulted has run for `floor_cpu` since the
//              installation, by its own CPU clock: then it has retried its access.
//   priority   one node in turn (protocol/turns.hpp) may keep contended pages while it still
//              collects more of them or writes them; the others give theirs up after the floor. The
//              turn must rotate, since an instruction may need two pages at once, and it must be
//              longer than it takes to collect the pages that are used together. In a stretched
//              turn pages that are written are kept to its end, as a sweep comes back to them late,
//              unless the thread sleeps, perhaps for something that another node is to do.
//   probe      whether a page is still written is found by write-protecting it and seeing
//              whether a write fault comes while its thread runs. (Comparing the contents would
//              take a counter that comes back to its value for an idle one.)
// All three end when the threads that faulted come to a wait for other nodes (a barrier, a lock):
// who asks for the page then may well be who they wait for.
// A rule of a fixed time alone is wrong for some workload at every value.
//
// Flow: the engine calls decide() when a revocation arrives for which can_hold() is true, or when
// an installation finds one pending (kRevokePending). It does what is said: release (without hold,
// or kReleaseHold), or asks again after `after`; for kProbe it also write-protects the page in the
// view, and calls note_probe_hit() when a write fault on it comes. The protocol answers that fault
// as a stale one (the page is exclusive): it maps the page writable again.
#pragma once

#include <cstdint>

#include "base/base.hpp"
#include "dsm/protocol/turns.hpp"

namespace amasia::dsm::protocol {

struct HoldSettings {
  Nanos floor_cpu = 2 * base::kMicrosecond;
  // A thread that does not get to run, or sleeps in the kernel, must not keep a page for ever.
  Nanos floor_limit = 2 * base::kMillisecond;
  // Not shorter: an engine that rechecks every 3 us on the thread's own core starves it.
  Nanos recheck = 20 * base::kMicrosecond;
  Nanos probe_first = 40 * base::kMicrosecond;  // CPU time until the first probe, then doubling
  Nanos probe_last = 640 * base::kMicrosecond;
  // A protected page whose thread has run this long without a write fault is no longer written.
  Nanos probe_quiet_cpu = 5 * base::kMicrosecond;
  // The same when the thread does not run at all.
  Nanos probe_quiet = 200 * base::kMicrosecond;
};

// One for each page with a held revocation; begin_hold() when the revocation is first seen.
struct HoldRecord {
  Nanos probe_interval = 0;  // CPU time between probes
  Nanos probe_base_cpu = 0;  // CPU time used when the last probe ended
  Nanos armed_cpu = 0;       // CPU time used, and the time, when the page was protected
  Nanos armed_at = 0;
  bool armed = false;
  bool hit = false;
  Nanos seen_cpu = -1;  // CPU time used when last asked in a stretched turn
};

struct HoldInput {
  // The job's clock: the same on all nodes to well below a turn, which depends on it.
  Nanos now = 0;
  Nanos installed_at = 0;  // by the same clock
  // CPU time that the thread that faulted has used since the installation; of several, the least.
  // Negative: nobody faulted (prefetched, or the home's own untouched page): there is no floor.
  Nanos cpu_used = 0;
  // That thread has faulted again since then, so it has retried its access, whatever its clock
  // says.
  bool faulted_since = false;
  // All threads that faulted have since come to a wait for other nodes: they are done with it.
  bool paused_since = false;
  NodeId self;
  Turn turn;  // the one at `now`
  // Writable here; a read copy is not probed.
  bool exclusive = false;
  // This node waits for pages, or got one within the last `recheck`.
  bool collecting = false;
};

enum class HoldAction : std::uint8_t { kRelease, kRecheck, kProbe };

struct HoldDecision {
  HoldAction action;
  Nanos after = 0;  // ask again then (kRecheck, kProbe); never less than settings.recheck
};

HoldRecord begin_hold(const HoldSettings& settings);
HoldDecision decide(HoldRecord& record, const HoldInput& input, const HoldSettings& settings);
// A write fault came on a page that a probe had protected.
void note_probe_hit(HoldRecord& record);

}  // namespace amasia::dsm::protocol
