// SPDX-License-Identifier: Apache-2.0
// pthread_key_create and what goes with it. The program's keys are the job's (thread_keys.hpp);
// those of runtimes, and those that constructors made on each node alike, stay the C library's.
#include <pthread.h>
#include <threads.h>

#include <cerrno>

#include "omp/launch/process.hpp"
#include "omp/launch/thread_keys.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

// The C library's own are below.
constexpr pthread_key_t kFirstShared = PTHREAD_KEYS_MAX;

constinit Real<int(pthread_key_t*, KeyDestructor)> real_create{"pthread_key_create"};
constinit Real<int(pthread_key_t)> real_delete{"pthread_key_delete"};
constinit Real<void*(pthread_key_t)> real_get{"pthread_getspecific"};
constinit Real<int(pthread_key_t, const void*)> real_set{"pthread_setspecific"};

// Made when the thread first sets a value, ended by `end_key`'s destructor.
thread_local ThreadValues* thread_values __attribute__((tls_model("initial-exec"))) = nullptr;
pthread_key_t end_key = 0;  // of the C library; its value is thread_values

KeyTable& table() { return *shared_page().keys; }

void end_thread(void* values) {
  static_cast<ThreadValues*>(values)->destroy(table());
  real_set(end_key, nullptr);  // a destructor of the program may have set a value
  delete thread_values;
  thread_values = nullptr;
}

// Before any thread could be in the loader, or in malloc, while it asks for one of these.
__attribute__((constructor(102))) void find_entry_points() {
  real_delete.get();
  real_get.get();
  real_set.get();
  if (process.managed) real_create(&end_key, end_thread);
}

int set_shared(std::uint32_t key, const void* value) {
  if (thread_values == nullptr) {
    if (value == nullptr) return table().generation(key).has_value() ? 0 : EINVAL;
    thread_values = new ThreadValues;
  }
  if (real_get(end_key) == nullptr) real_set(end_key, thread_values);
  return thread_values->set(table(), key, const_cast<void*>(value)) ? 0 : EINVAL;
}

int create(pthread_key_t* key, KeyDestructor destructor, const void* caller) {
  const bool shared = process.node.load(std::memory_order_acquire) != nullptr &&
                      !os::is_in_runtime_section() && !process.objects.allocates_privately(caller);
  if (!shared) return real_create(key, destructor);
  const auto made = table().create(destructor);
  if (!made.has_value()) return EAGAIN;
  *key = kFirstShared + *made;
  return 0;
}

}  // namespace

void make_key_table() noexcept {
  if (process.node.load(std::memory_order_acquire) == nullptr) return;
  auto* const table = static_cast<KeyTable*>(process.heap.allocate_zeroed(1, sizeof(KeyTable)));
  AMASIA_CHECK(table != nullptr, "the heap is empty when main begins");
  shared_page().keys = table;
}

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int pthread_key_create(pthread_key_t* key, void (*destructor)(void*)) noexcept {
  return create(key, destructor, __builtin_return_address(0));
}

AMASIA_EXPORT int pthread_key_delete(pthread_key_t key) noexcept {
  if (key < kFirstShared) return real_delete(key);
  return table().remove(key - kFirstShared) ? 0 : EINVAL;
}

AMASIA_EXPORT void* pthread_getspecific(pthread_key_t key) noexcept {
  if (key < kFirstShared) return real_get(key);
  return thread_values != nullptr ? thread_values->get(table(), key - kFirstShared) : nullptr;
}

AMASIA_EXPORT int pthread_setspecific(pthread_key_t key, const void* value) noexcept {
  return key < kFirstShared ? real_set(key, value) : set_shared(key - kFirstShared, value);
}

AMASIA_EXPORT int tss_create(tss_t* key, tss_dtor_t destructor) {
  return create(key, destructor, __builtin_return_address(0)) == 0 ? thrd_success : thrd_error;
}

AMASIA_EXPORT void tss_delete(tss_t key) { pthread_key_delete(key); }

AMASIA_EXPORT void* tss_get(tss_t key) { return pthread_getspecific(key); }

AMASIA_EXPORT int tss_set(tss_t key, void* value) {
  return pthread_setspecific(key, value) == 0 ? thrd_success : thrd_error;
}
