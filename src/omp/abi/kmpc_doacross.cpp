// SPDX-License-Identifier: Apache-2.0
// kmpc entry points of doacross loops.
#include <span>
#include <vector>

#include "omp/abi/kmpc.hpp"
#include "omp/work_sharing/doacross.hpp"

namespace amasia::omp::kmpc {
namespace {

using Gtid = std::int32_t;

// One loop of the nest: for (i = lower; step > 0 ? i <= upper : i >= upper; i += step).
struct Dimension {
  std::int64_t lower;
  std::int64_t upper;
  std::int64_t step;
};

constinit Real<void(ident_t*, Gtid, std::int32_t, const Dimension*)> real_init{
    "__kmpc_doacross_init"};
constinit Real<void(ident_t*, Gtid, const std::int64_t*)> real_wait{"__kmpc_doacross_wait"};
constinit Real<void(ident_t*, Gtid, const std::int64_t*)> real_post{"__kmpc_doacross_post"};
constinit Real<void(ident_t*, Gtid)> real_fini{"__kmpc_doacross_fini"};

// As many values as the nest has loops.
std::span<const std::int64_t> values_of(const ThreadFrame& frame, const std::int64_t* values) {
  return {values, Doacross::depth(frame)};
}

}  // namespace

AMASIA_ENTRY void __kmpc_doacross_init(ident_t* place, Gtid gtid, std::int32_t count,
                                       const Dimension* dimensions) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_init(place, gtid, count, dimensions);
  std::vector<loops::Space> nest;
  for (const Dimension& it : std::span(dimensions, static_cast<std::size_t>(count))) {
    nest.push_back(loops::space_through(it.lower, it.upper, it.step));
  }
  frame->team->node().doacross()->begin(*frame, nest);
}

AMASIA_ENTRY void __kmpc_doacross_wait(ident_t* place, Gtid gtid, const std::int64_t* values) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_wait(place, gtid, values);
  frame->team->node().doacross()->wait(*frame, values_of(*frame, values));
}

AMASIA_ENTRY void __kmpc_doacross_post(ident_t* place, Gtid gtid, const std::int64_t* values) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_post(place, gtid, values);
  frame->team->node().doacross()->post(*frame, values_of(*frame, values));
}

AMASIA_ENTRY void __kmpc_doacross_fini(ident_t* place, Gtid gtid) {
  ThreadFrame* const frame = current_frame();
  if (frame == nullptr) return real_fini(place, gtid);
  frame->team->node().doacross()->end(*frame);
}

}  // namespace amasia::omp::kmpc
