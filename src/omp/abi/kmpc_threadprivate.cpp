// SPDX-License-Identifier: Apache-2.0
// kmpc entry points of threadprivate variables that the runtime keeps.
#include "omp/abi/kmpc.hpp"
#include "omp/team/threadprivate.hpp"

namespace amasia::omp::kmpc {
namespace {

using Construct = void* (*)(void*);
using CopyConstruct = void* (*)(void*, void*);
using Destroy = void (*)(void*);

constinit Real<void*(ident_t*, std::int32_t, void*, std::size_t)> real_threadprivate{
    "__kmpc_threadprivate"};
constinit Real<void*(ident_t*, std::int32_t, void*, std::size_t, void***)> real_cached{
    "__kmpc_threadprivate_cached"};
constinit Real<void(ident_t*, void*, Construct, CopyConstruct, Destroy)> real_register{
    "__kmpc_threadprivate_register"};

// The origin's threads use the next runtime's copies, and its main thread the original.
bool on_other_node() {
  const Node* const node = current_node();
  return node != nullptr && node->self() != base::kOrigin;
}

}  // namespace

AMASIA_ENTRY void* __kmpc_threadprivate(ident_t* place, std::int32_t gtid, void* original,
                                        std::size_t size) {
  if (on_other_node()) return threadprivate_copy(original, size);
  return real_threadprivate(place, gtid, original, size);
}

// `cache` is in managed memory, and used by the origin only.
AMASIA_ENTRY void* __kmpc_threadprivate_cached(ident_t* place, std::int32_t gtid, void* original,
                                               std::size_t size, void*** cache) {
  if (on_other_node()) return threadprivate_copy(original, size);
  return real_cached(place, gtid, original, size, cache);
}

AMASIA_ENTRY void __kmpc_threadprivate_register(ident_t* place, void* original, Construct construct,
                                                CopyConstruct copy_construct, Destroy destroy) {
  register_threadprivate(original, {construct, copy_construct, destroy});
  real_register(place, original, construct, copy_construct, destroy);
}

}  // namespace amasia::omp::kmpc
