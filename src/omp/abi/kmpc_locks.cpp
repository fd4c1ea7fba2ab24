// SPDX-License-Identifier: Apache-2.0
// kmpc entry points of locks and critical sections. A lock is its address: the word there, which
// would hold state of one node, is never touched. That holds for all threads of a job, in regions
// or not, since a lock may be set in one place and tested in another.
#include "omp/abi/kmpc.hpp"
#include "omp/locks/lock_service.hpp"

namespace amasia::omp::kmpc {
namespace {

using Place = ident_t*;
using Gtid = std::int32_t;
using LockCall = Real<void(Place, Gtid, void**)>;
using HintCall = Real<void(Place, Gtid, void**, std::uintptr_t)>;
using TestCall = Real<std::int32_t(Place, Gtid, void**)>;

constinit Real<void(Place, Gtid, Critical*)> real_critical{"__kmpc_critical"};
constinit Real<void(Place, Gtid, Critical*, std::uint32_t)> real_critical_with_hint{
    "__kmpc_critical_with_hint"};
constinit Real<void(Place, Gtid, Critical*)> real_end_critical{"__kmpc_end_critical"};
constinit Real<void()> real_atomic_start{"__kmpc_atomic_start"};
constinit Real<void()> real_atomic_end{"__kmpc_atomic_end"};
constinit LockCall real_init_lock{"__kmpc_init_lock"};
constinit LockCall real_init_nest_lock{"__kmpc_init_nest_lock"};
constinit HintCall real_init_lock_with_hint{"__kmpc_init_lock_with_hint"};
constinit HintCall real_init_nest_lock_with_hint{"__kmpc_init_nest_lock_with_hint"};
constinit LockCall real_destroy_lock{"__kmpc_destroy_lock"};
constinit LockCall real_destroy_nest_lock{"__kmpc_destroy_nest_lock"};
constinit LockCall real_set_lock{"__kmpc_set_lock"};
constinit LockCall real_set_nest_lock{"__kmpc_set_nest_lock"};
constinit LockCall real_unset_lock{"__kmpc_unset_lock"};
constinit LockCall real_unset_nest_lock{"__kmpc_unset_nest_lock"};
constinit TestCall real_test_lock{"__kmpc_test_lock"};
constinit TestCall real_test_nest_lock{"__kmpc_test_nest_lock"};

}  // namespace

AMASIA_ENTRY void __kmpc_critical(Place place, Gtid gtid, Critical* name) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_critical(place, gtid, name);
  service->acquire(lock_key(name));
}

AMASIA_ENTRY void __kmpc_critical_with_hint(Place place, Gtid gtid, Critical* name,
                                            std::uint32_t hint) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_critical_with_hint(place, gtid, name, hint);
  service->acquire(lock_key(name));
}

AMASIA_ENTRY void __kmpc_end_critical(Place place, Gtid gtid, Critical* name) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_end_critical(place, gtid, name);
  service->release(lock_key(name));
}

AMASIA_ENTRY void __kmpc_atomic_start() {
  LockService* const service = current_locks();
  if (service == nullptr) return real_atomic_start();
  service->acquire(kGompAtomic);
}

AMASIA_ENTRY void __kmpc_atomic_end() {
  LockService* const service = current_locks();
  if (service == nullptr) return real_atomic_end();
  service->release(kGompAtomic);
}

AMASIA_ENTRY void __kmpc_init_lock(Place place, Gtid gtid, void** lock) {
  if (current_locks() == nullptr) real_init_lock(place, gtid, lock);
}

AMASIA_ENTRY void __kmpc_init_nest_lock(Place place, Gtid gtid, void** lock) {
  if (current_locks() == nullptr) real_init_nest_lock(place, gtid, lock);
}

AMASIA_ENTRY void __kmpc_init_lock_with_hint(Place place, Gtid gtid, void** lock,
                                             std::uintptr_t hint) {
  if (current_locks() == nullptr) real_init_lock_with_hint(place, gtid, lock, hint);
}

AMASIA_ENTRY void __kmpc_init_nest_lock_with_hint(Place place, Gtid gtid, void** lock,
                                                  std::uintptr_t hint) {
  if (current_locks() == nullptr) real_init_nest_lock_with_hint(place, gtid, lock, hint);
}

AMASIA_ENTRY void __kmpc_destroy_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_destroy_lock(place, gtid, lock);
  service->forget(lock_key(lock));
}

AMASIA_ENTRY void __kmpc_destroy_nest_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_destroy_nest_lock(place, gtid, lock);
  service->forget(lock_key(lock));
}

AMASIA_ENTRY void __kmpc_set_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_set_lock(place, gtid, lock);
  service->acquire(lock_key(lock));
}

AMASIA_ENTRY void __kmpc_set_nest_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_set_nest_lock(place, gtid, lock);
  service->acquire_nested(lock_key(lock));
}

AMASIA_ENTRY void __kmpc_unset_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_unset_lock(place, gtid, lock);
  service->release(lock_key(lock));
}

AMASIA_ENTRY void __kmpc_unset_nest_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_unset_nest_lock(place, gtid, lock);
  service->release_nested(lock_key(lock));
}

AMASIA_ENTRY std::int32_t __kmpc_test_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_test_lock(place, gtid, lock);
  return service->try_acquire(lock_key(lock)) ? 1 : 0;
}

AMASIA_ENTRY std::int32_t __kmpc_test_nest_lock(Place place, Gtid gtid, void** lock) {
  LockService* const service = current_locks();
  if (service == nullptr) return real_test_nest_lock(place, gtid, lock);
  return static_cast<std::int32_t>(service->try_acquire_nested(lock_key(lock)));
}

}  // namespace amasia::omp::kmpc
