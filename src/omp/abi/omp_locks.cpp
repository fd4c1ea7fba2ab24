// SPDX-License-Identifier: Apache-2.0
// The omp_*_lock calls and their Fortran names. With several nodes a lock is its address: the
// variable, which other nodes see too, is never looked at.
#include "omp/locks/lock_service.hpp"

#include <cstdint>

#include "omp/abi/omp_api.hpp"

namespace amasia::omp {
namespace {
using Call = Real<void(void*)>;
using HintCall = Real<void(void*, std::uint32_t)>;
using TestCall = Real<std::int32_t(void*)>;

// A call more is felt: programs take locks of a few nanoseconds.
[[gnu::always_inline]] inline void acquire(LockService& service, void* lock) {
  service.acquire(lock_key(lock));
}
[[gnu::always_inline]] inline void release(LockService& service, void* lock) {
  service.release(lock_key(lock));
}

// What tells owners of nest locks apart beside their thread: libgomp's are tasks, and a thread that
// begins a nested region is another one; libomp's are threads.
std::uint32_t owning_region() {
  return abi_of_runtime() == Abi::kGomp ? static_cast<std::uint32_t>(region_level()) : 0;
}
void acquire_nested(LockService& service, void* lock) {
  service.acquire_nested(lock_key(lock), owning_region());
}
std::int32_t try_acquire(LockService& service, void* lock) {
  return service.try_acquire(lock_key(lock)) ? 1 : 0;
}
std::int32_t try_acquire_nested(LockService& service, void* lock) {
  return static_cast<std::int32_t>(service.try_acquire_nested(lock_key(lock), owning_region()));
}
void release_nested(LockService& service, void* lock) { service.release_nested(lock_key(lock)); }
void forget(LockService& service, void* lock) { service.forget(lock_key(lock)); }
// A lock needs no state before it is used. What an earlier one at its address had is dropped when
// that one is destroyed.
void begin(LockService&, void*) {}

}  // namespace

// One of the calls under its C and its Fortran name, both of which take the lock's address.
#define AMASIA_LOCK_CALL(NAME, ACTION)                          \
  AMASIA_ENTRY void NAME(void* lock) {                          \
    static constinit Call real{#NAME};                          \
    LockService* const service = current_locks();               \
    return service != nullptr ? ACTION(*service, lock) : real(lock); \
  }
#define AMASIA_LOCK(NAME, ACTION)  \
  AMASIA_LOCK_CALL(NAME, ACTION)   \
  AMASIA_LOCK_CALL(NAME##_, ACTION)
AMASIA_LOCK(omp_init_lock, begin)
AMASIA_LOCK(omp_init_nest_lock, begin)
AMASIA_LOCK(omp_destroy_lock, forget)
AMASIA_LOCK(omp_destroy_nest_lock, forget)
AMASIA_LOCK(omp_set_lock, acquire)
AMASIA_LOCK(omp_unset_lock, release)
AMASIA_LOCK(omp_set_nest_lock, acquire_nested)
AMASIA_LOCK(omp_unset_nest_lock, release_nested)

#define AMASIA_HINT_LOCK(NAME)                                   \
  AMASIA_ENTRY void NAME(void* lock, std::uint32_t hint) {       \
    static constinit HintCall real{#NAME};                       \
    if (current_locks() == nullptr) real(lock, hint);            \
  }                                                              \
  AMASIA_ENTRY void NAME##_(void* lock, const std::uint32_t* hint) { \
    static constinit HintCall real{#NAME};                       \
    if (current_locks() == nullptr) real(lock, *hint);           \
  }
AMASIA_HINT_LOCK(omp_init_lock_with_hint)
AMASIA_HINT_LOCK(omp_init_nest_lock_with_hint)

#define AMASIA_TEST_LOCK(NAME, ACTION)                               \
  AMASIA_ENTRY std::int32_t NAME(void* lock) {                       \
    static constinit TestCall real{#NAME};                           \
    LockService* const service = current_locks();                    \
    return service != nullptr ? ACTION(*service, lock) : real(lock); \
  }
AMASIA_TEST_LOCK(omp_test_lock, try_acquire)
AMASIA_TEST_LOCK(omp_test_lock_, try_acquire)
AMASIA_TEST_LOCK(omp_test_nest_lock, try_acquire_nested)
AMASIA_TEST_LOCK(omp_test_nest_lock_, try_acquire_nested)

}  // namespace amasia::omp
