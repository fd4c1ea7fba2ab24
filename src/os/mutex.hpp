// SPDX-License-Identifier: Apache-2.0
// A lock that clang's thread-safety analysis understands (std::mutex of libstdc++ is not
// annotated).
#pragma once

#include <pthread.h>

#if defined(__clang__)
#define AMASIA_THREAD_ATTRIBUTE(x) __attribute__((x))
#else
#define AMASIA_THREAD_ATTRIBUTE(x)
#endif
#define AMASIA_GUARDED_BY(x) AMASIA_THREAD_ATTRIBUTE(guarded_by(x))
#define AMASIA_REQUIRES(...) AMASIA_THREAD_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define AMASIA_EXCLUDES(...) AMASIA_THREAD_ATTRIBUTE(locks_excluded(__VA_ARGS__))

namespace amasia::os {

// Spins a little before it sleeps, since what it guards is short and a wake-up costs 10 µs and
// more.
class AMASIA_THREAD_ATTRIBUTE(capability("mutex")) Mutex {
 public:
  Mutex() {
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&mutex_, &attributes);
    pthread_mutexattr_destroy(&attributes);
  }
  ~Mutex() { pthread_mutex_destroy(&mutex_); }
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() AMASIA_THREAD_ATTRIBUTE(acquire_capability()) { pthread_mutex_lock(&mutex_); }
  bool try_lock() AMASIA_THREAD_ATTRIBUTE(try_acquire_capability(true)) {
    return pthread_mutex_trylock(&mutex_) == 0;
  }
  void unlock() AMASIA_THREAD_ATTRIBUTE(release_capability()) { pthread_mutex_unlock(&mutex_); }

 private:
  pthread_mutex_t mutex_;
};

class AMASIA_THREAD_ATTRIBUTE(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) AMASIA_THREAD_ATTRIBUTE(acquire_capability(mutex))
      : mutex_(mutex) {
    mutex_.lock();
  }
  ~MutexLock() AMASIA_THREAD_ATTRIBUTE(release_capability()) { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

}  // namespace amasia::os
