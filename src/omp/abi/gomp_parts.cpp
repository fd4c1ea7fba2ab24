// SPDX-License-Identifier: Apache-2.0
#include "omp/abi/gomp_parts.hpp"

#include "omp/team/team.hpp"

namespace amasia::omp::gomp {
namespace {

// While the function is executed its thread may go on as one of another node (homecoming.hpp). So
// nothing that was read of its frame may be kept from one call to the next: these are not to be
// inlined.
[[gnu::noinline]] void begin_parts() {
  ThreadFrame& frame = *current_frame();
  const Team& team = *frame.team;
  const NumberedParts& parts = team.numbered();
  const loops::Space space{0, 1, parts.threads};
  if (parts.stay) {
    frame.parts.part = team.static_share(frame, space);
  } else {
    team.node().work_sharing()->begin_static(frame, space,
                                             {team.function(), nullptr, parts.iterations});
  }
}

[[gnu::noinline]] bool has_number(ThreadFrame& frame) {
  loops::Iterations& part = frame.parts.part;
  return !part.empty() ||
         (!frame.team->numbered().stay && next_iterations(frame, frame.parts.part));
}

// The next thread that it is to stand in for. May wait for a message.
[[gnu::noinline]] bool next_number() {
  ThreadFrame& frame = *current_frame();
  ThreadParts& parts = frame.parts;
  parts.inside = false;
  if (!has_number(frame)) {
    parts = {};
    return false;
  }
  parts.inside = true;
  parts.number = static_cast<std::uint32_t>(parts.part.begin++);
  return true;
}

[[gnu::noinline]] void enter(void* data) {
  reinterpret_cast<Outline>(current_frame()->team->outlined().function)(data);
}

}  // namespace

void execute_parts(void* data) {
  begin_parts();
  while (next_number()) enter(data);
}

}  // namespace amasia::omp::gomp
