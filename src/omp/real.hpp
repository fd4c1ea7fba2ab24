// SPDX-License-Identifier: Apache-2.0
// The next definition of an entry point that we interpose: the program's own runtime.
//
// RTLD_NEXT finds it when the program was linked with the runtime. A runtime that came in by an
// RTLD_LOCAL dlopen (Python modules, plug-ins) is not in that order: then all loaded objects are
// asked, in load order, but for our own. Lookups are cached once they succeed, never when they
// fail: the runtime may be loaded later.
#pragma once

#include <atomic>

namespace amasia::omp {

// The address of `name` in the next object that defines it, or nullptr. `version`: nullptr for the
// default one. Any thread; allocates in the loader, so not in signal handlers.
void* find_real(const char* name, const char* version = nullptr);
// The same, but ends the process with a sentence that names the entry point when it is not there.
void* need_real(const char* name);

// A cached pointer. Constant-initialised, so that it works before any constructor has run:
//   static constinit Real<void(ident_t*, int)> real{"__kmpc_barrier"};   real(loc, gtid);
template <typename Signature>
class Real;
template <typename Result, typename... Arguments>
class Real<Result(Arguments...)> {
 public:
  using Pointer = Result (*)(Arguments...);
  constexpr explicit Real(const char* name) : name_(name) {}
  // nullptr when no loaded runtime has it.
  Pointer find() {
    // Relaxed: the pointer is to code, which the loader made visible to all threads.
    void* found = cached_.load(std::memory_order_relaxed);
    if (found == nullptr) {
      found = find_real(name_);
      cached_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Pointer>(found);
  }
  Pointer get() {
    void* found = cached_.load(std::memory_order_relaxed);
    if (__builtin_expect(found == nullptr, 0)) {
      found = need_real(name_);
      cached_.store(found, std::memory_order_relaxed);
    }
    return reinterpret_cast<Pointer>(found);
  }
  Result operator()(Arguments... arguments) { return get()(arguments...); }

 private:
  const char* const name_;
  std::atomic<void*> cached_{nullptr};
};

}  // namespace amasia::omp
