// SPDX-License-Identifier: Apache-2.0
#include "amasia/openshmem.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>

#include "modules/openshmem/state.hpp"

namespace amasia::openshmem {

library::library(tasks::runtime& workers) : workers_(workers) { workers_.attach(*this); }
library::~library() { workers_.detach(*this); }

void library::initialise(tasks::module_host& host) {
  int provided = SHMEM_THREAD_SINGLE;
  shmem_init_thread(SHMEM_THREAD_FUNNELED, &provided);
  if (provided < SHMEM_THREAD_FUNNELED) {
    shmem_finalize();
    throw std::runtime_error(
        "openshmem: the library gives SHMEM_THREAD_SINGLE (needed is SHMEM_THREAD_FUNNELED)");
  }
  pe_ = shmem_my_pe();
  pes_ = shmem_n_pes();
  host_ = &host;
  state_ = std::make_unique<State>();
  state_->pe = pe_;
  state_->pes = pes_;
  constexpr std::size_t kWork = State::kReduced / 2 + 1 + SHMEM_REDUCE_MIN_WRKDATA_SIZE;
  state_->heard = allocate_array<long>(State::kMostRounds);
  state_->sync = allocate_array<long>(SHMEM_SYNC_SIZE);
  state_->work = allocate_array<double>(kWork);
  std::fill_n(state_->sync, SHMEM_SYNC_SIZE, SHMEM_SYNC_VALUE);
  shmem_barrier_all();
}

void library::finalise() noexcept {
  state_.reset();
  shmem_finalize();  // frees the symmetric memory
}

void* library::allocate(std::size_t bytes) {
  void* const block = shmem_malloc(std::max<std::size_t>(bytes, 1));
  if (block == nullptr) throw std::bad_alloc();
  std::memset(block, 0, bytes);
  shmem_barrier_all();  // nobody puts what another then zeroes
  return block;
}
void library::release(void* block) { shmem_free(block); }

template <typename T, typename Body>
future<T> library::call(Body body) {
  tasks::promise<T> result;
  auto value = result.get_future();
  host_->call([body = std::move(body), result = std::move(result),
               held = host_->hold_scope()]() mutable {
    if constexpr (std::is_void_v<T>) {
      body();
      result.put();
    } else {
      result.put(body());
    }
  });
  return value;
}

void library::must_be_pe(int pe) const {
  if (pe >= 0 && pe < pes_) return;
  throw std::out_of_range("openshmem: there is no PE " + std::to_string(pe) + "; there are " +
                          std::to_string(pes_) + ", from 0");
}

future<void> library::put(void* to, const void* from, std::size_t bytes, int pe) {
  must_be_pe(pe);
  return call<void>([=] { shmem_putmem(to, from, bytes, pe); });
}
future<void> library::quiet() {
  return call<void>([] { shmem_quiet(); });
}
future<void> library::fence() {
  return call<void>([] { shmem_fence(); });
}

// Completed together by the next poll: one round trip for all that tasks asked for meanwhile.
future<void> library::get(void* to, const void* from, std::size_t bytes, int pe) {
  must_be_pe(pe);
  Ending ending{{}, host_->hold_scope()};
  auto value = ending.result.get_future();
  host_->call([this, to, from, bytes, pe, ending = std::move(ending)]() mutable {
    shmem_getmem_nbi(to, from, bytes, pe);
    state_->gets.push_back(std::move(ending));
    host_->poll_me();
  });
  return value;
}

namespace {

int number_of(compare how) {
  switch (how) {
    case compare::equal:
      return SHMEM_CMP_EQ;
    case compare::not_equal:
      return SHMEM_CMP_NE;
    case compare::greater:
      return SHMEM_CMP_GT;
    case compare::less_or_equal:
      return SHMEM_CMP_LE;
    case compare::less:
      return SHMEM_CMP_LT;
    case compare::greater_or_equal:
      return SHMEM_CMP_GE;
  }
  return SHMEM_CMP_EQ;
}

// Of the 8 bytes around a word of 4: Open MPI 4.1 writes 8 bytes over the 4 of its result when it
// compares and swaps 4 (atomic/ucx), which ends the program.
template <typename T>
T compare_swap_word(T* word, T expected, T value, int pe) {
  if constexpr (sizeof(T) == sizeof(long)) {
    auto* const as_long = reinterpret_cast<long*>(word);
    return static_cast<T>(shmem_long_atomic_compare_swap(as_long, static_cast<long>(expected),
                                                         static_cast<long>(value), pe));
  } else {
    const auto address = reinterpret_cast<std::uintptr_t>(word);
    auto* const around = reinterpret_cast<unsigned long*>(address & ~std::uintptr_t{7});
    const unsigned shift = (address & 4) != 0 ? 32 : 0;
    const unsigned long mine = static_cast<unsigned long>(static_cast<std::uint32_t>(value))
                               << shift;
    unsigned long seen = shmem_ulong_atomic_fetch(around, pe);
    for (;;) {
      const T before = static_cast<T>(static_cast<std::uint32_t>(seen >> shift));
      if (before != expected) return before;
      const unsigned long other = seen & ~(0xFFFFFFFFUL << shift);
      const unsigned long now =
          shmem_ulong_atomic_compare_swap(around, seen, other | mine, pe);
      if (now == seen) return before;
      seen = now;
    }
  }
}

}  // namespace

#define AMASIA_WORD(T, type)                                                              \
  template <>                                                                             \
  future<T> library::fetch(const T* word, int pe) {                                       \
    must_be_pe(pe);                                                                       \
    return call<T>([=] { return shmem_##type##_atomic_fetch(word, pe); });                \
  }                                                                                       \
  template <>                                                                             \
  future<T> library::fetch_add(T* word, T more, int pe) {                                 \
    must_be_pe(pe);                                                                       \
    return call<T>([=] { return shmem_##type##_atomic_fetch_add(word, more, pe); });      \
  }                                                                                       \
  template <>                                                                             \
  future<T> library::swap(T* word, T value, int pe) {                                     \
    must_be_pe(pe);                                                                       \
    return call<T>([=] { return shmem_##type##_atomic_swap(word, value, pe); });          \
  }                                                                                       \
  template <>                                                                             \
  future<T> library::compare_swap(T* word, T expected, T value, int pe) {                 \
    must_be_pe(pe);                                                                       \
    return call<T>(                                                                       \
        [=] { return compare_swap_word(word, expected, value, pe); });                    \
  }                                                                                       \
  template <>                                                                             \
  future<void> library::add(T* word, T more, int pe) {                                    \
    must_be_pe(pe);                                                                       \
    return call<void>([=] { shmem_##type##_atomic_add(word, more, pe); });                \
  }                                                                                       \
  template <>                                                                             \
  future<void> library::set(T* word, T value, int pe) {                                   \
    must_be_pe(pe);                                                                       \
    return call<void>([=] { shmem_##type##_atomic_set(word, value, pe); });               \
  }                                                                                       \
  template <>                                                                             \
  future<void> library::wait_until(const T* word, compare how, T value) {                 \
    Ending ending{{}, host_->hold_scope()};                                               \
    auto there = ending.result.get_future();                                              \
    host_->call([this, word, how, value, ending = std::move(ending)]() mutable {          \
      const auto is_true = [word = const_cast<T*>(word), how, value] {                    \
        return shmem_##type##_test(word, number_of(how), value) != 0;                     \
      };                                                                                  \
      if (is_true()) return ending.succeed();                                             \
      state_->waiting.push_back({is_true, std::move(ending)});                            \
      host_->poll_me();                                                                   \
    });                                                                                   \
    return there;                                                                         \
  }

AMASIA_WORD(int, int)
AMASIA_WORD(long, long)
AMASIA_WORD(long long, longlong)
AMASIA_WORD(unsigned int, uint)
AMASIA_WORD(unsigned long, ulong)
AMASIA_WORD(unsigned long long, ulonglong)
#undef AMASIA_WORD

bool State::barrier_is_over() {
  if (round < 0) {
    ++barrier;
    round = 0;
    shmem_quiet();
    if (pes > 1) shmem_long_p(&heard[0], barrier, (pe + 1) % pes);
  }
  while ((1 << round) < pes) {
    if (shmem_long_test(&heard[round], SHMEM_CMP_GE, barrier) == 0) return false;
    ++round;
    if ((1 << round) < pes) {
      shmem_long_p(&heard[round], barrier, (pe + (1 << round)) % pes);
    }
  }
  round = -1;
  return true;
}

bool State::advance_collectives() {
  bool some = false;
  while (!collectives.empty() && barrier_is_over()) {
    Collective first = std::move(collectives.front());
    collectives.pop_front();
    if (first.body) first.body();
    first.ending.succeed();
    some = true;
  }
  return some;
}

template <typename Body>
future<void> library::collective(Body body) {
  Ending ending{{}, host_->hold_scope()};
  auto over = ending.result.get_future();
  host_->call([this, body = std::move(body), ending = std::move(ending)]() mutable {
    state_->collectives.push_back({std::move(body), std::move(ending)});
    state_->advance_collectives();
    if (!state_->collectives.empty()) host_->poll_me();
  });
  return over;
}

future<void> library::barrier() { return collective(std::function<void()>()); }

// The library's collectives count words; bytes are left to puts, and a barrier of the library's,
// which does not wait for long: all PEs are in it.
future<void> library::broadcast(void* to, const void* from, std::size_t bytes, int root) {
  must_be_pe(root);
  return collective([=, this] {
    if (pe_ == root) {
      for (int pe = 0; pe < pes_; ++pe) shmem_putmem_nbi(to, from, bytes, pe);
    }
    shmem_barrier_all();
  });
}
future<void> library::collect(void* to, const void* from, std::size_t bytes_of_each) {
  return collective([=, this] {
    char* const mine = static_cast<char*>(to) + static_cast<std::size_t>(pe_) * bytes_of_each;
    for (int n = 0; n < pes_; ++n) {
      shmem_putmem_nbi(mine, from, bytes_of_each, (pe_ + n) % pes_);
    }
    shmem_barrier_all();
  });
}
future<void> library::alltoall(void* to, const void* from, std::size_t bytes_of_each) {
  return collective([=, this] {
    char* const mine = static_cast<char*>(to) + static_cast<std::size_t>(pe_) * bytes_of_each;
    for (int n = 0; n < pes_; ++n) {
      const auto pe = static_cast<std::size_t>((pe_ + n) % pes_);
      shmem_putmem_nbi(mine, static_cast<const char*>(from) + pe * bytes_of_each, bytes_of_each,
                       static_cast<int>(pe));
    }
    shmem_barrier_all();
  });
}

// In parts, for which the work array is large enough; it and pSync are used again after a barrier.
#define AMASIA_REDUCTION(T, type)                                                              \
  template <>                                                                                  \
  future<void> library::reduce(reduction how, T* to, const T* from, std::size_t count) {       \
    return collective([=, this] {                                                              \
      auto* const work = reinterpret_cast<T*>(state_->work);                                   \
      long* const sync = state_->sync;                                                         \
      for (std::size_t done = 0; done < count; done += State::kReduced) {                      \
        const int part = static_cast<int>(std::min(State::kReduced, count - done));            \
        if (done != 0) shmem_barrier_all();                                                    \
        switch (how) {                                                                         \
          case reduction::sum:                                                                 \
            shmem_##type##_sum_to_all(to + done, from + done, part, 0, 0, pes_, work, sync);   \
            break;                                                                             \
          case reduction::least:                                                               \
            shmem_##type##_min_to_all(to + done, from + done, part, 0, 0, pes_, work, sync);   \
            break;                                                                             \
          case reduction::greatest:                                                            \
            shmem_##type##_max_to_all(to + done, from + done, part, 0, 0, pes_, work, sync);   \
            break;                                                                             \
        }                                                                                      \
      }                                                                                        \
    });                                                                                        \
  }
AMASIA_REDUCTION(int, int)
AMASIA_REDUCTION(long, long)
AMASIA_REDUCTION(long long, longlong)
AMASIA_REDUCTION(float, float)
AMASIA_REDUCTION(double, double)
#undef AMASIA_REDUCTION

tasks::poll_result library::poll() noexcept {
  bool some = false;
  if (!state_->gets.empty()) {
    shmem_quiet();
    for (Ending& ending : std::exchange(state_->gets, {})) ending.succeed();
    some = true;
  }
  auto& waiting = state_->waiting;
  std::vector<Ending> over;
  std::erase_if(waiting, [&](Waiting& one) {
    if (!one.is_true()) return false;
    over.push_back(std::move(one.ending));
    return true;
  });
  for (Ending& ending : over) ending.succeed();
  some = some || !over.empty();
  some = state_->advance_collectives() || some;
  if (waiting.empty() && state_->collectives.empty()) return tasks::poll_result::nothing_left;
  return some ? tasks::poll_result::some_completed : tasks::poll_result::none_completed;
}

}  // namespace amasia::openshmem
