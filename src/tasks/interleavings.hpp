// SPDX-License-Identifier: Apache-2.0
// Runs a few threads that share memory in every order that can matter, on the code itself: a core
// that is written against an Atomics policy is given ModelAtomics, whose accesses are steps. Each
// thread is a fiber that stops before each of its steps; the explorer picks who goes on, and goes
// through all picks, depth first, each time from the start.
//
// Memory is that of x86: a store goes into its thread's buffer, and from there to memory at any
// later time, in order, as a step of its own; a load sees the thread's own buffer first; updates
// and sequentially consistent stores wait until the buffer is empty. Weaker machines are left to
// the orders that the code names, which ThreadSanitizer checks.
//
// Two steps that touch different variables, or only read, may be exchanged: of orders that differ
// in such only, one is run to its end (Godefroid's sleep sets), so none that matters is left out.
// For tests only.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "base/base.hpp"
#include "tasks/atomics.hpp"
#include "tasks/fiber.hpp"

namespace amasia::tasks::model {

enum class Kind : std::uint8_t {
  kLoad,
  kStore,
  kUpdate,
  kFence,
  kBarrier,
  kSleep,
  kFlush,
  kNothing
};

struct Step {
  Kind kind = Kind::kNothing;
  std::uint32_t variable = 0;
  bool operator==(const Step&) const = default;
};

// Of different threads.
inline bool may_be_exchanged(const Step& one, const Step& other) {
  if (one.kind == Kind::kBarrier || other.kind == Kind::kBarrier) return false;
  // A store goes no further than its thread's buffer: kFlush takes it to memory.
  const auto is_private = [](Kind kind) { return kind == Kind::kFence || kind == Kind::kStore; };
  if (is_private(one.kind) || is_private(other.kind)) return true;
  return one.variable != other.variable || (one.kind == Kind::kLoad && other.kind == Kind::kLoad);
}

// One run of the threads. Variables name themselves in the order in which they are made.
class Trial {
 public:
  struct Variable {
    std::uint64_t value = 0;
    std::uint32_t name = 0;
  };

  static Trial*& current() {
    static thread_local Trial* run = nullptr;
    return run;
  }

  void add_thread(std::function<void()> body) { bodies_.push_back(std::move(body)); }
  void at_end(std::function<std::string()> check) { check_ = std::move(check); }
  // What is wrong with it that this thread sleeps at the end; without, that it does.
  void at_rest(std::function<std::string(std::uint32_t thread)> check) {
    rest_check_ = std::move(check);
  }
  std::uint32_t next_name() { return names_++; }

  // Begins; after that perform() until enabled() is empty.
  void start() {
    for (std::uint32_t index = 0; index < bodies_.size(); ++index) {
      threads_.push_back(std::make_unique<Thread>());
      Thread& thread = *threads_.back();
      thread.run = this;
      thread.body = &bodies_[index];
      thread.stack = std::make_unique_for_overwrite<char[]>(kStack);
      thread.fiber = std::make_unique<Fiber>(thread.stack.get(), kStack, &Trial::enter, &thread);
      resume(index);  // to its first step
    }
  }
  // Threads 0.. n-1, then their buffers n .. 2n-1.
  std::uint32_t processes() const { return 2 * static_cast<std::uint32_t>(threads_.size()); }
  bool enabled(std::uint32_t process) const {
    const std::uint32_t count = static_cast<std::uint32_t>(threads_.size());
    if (process >= count) return !threads_[process - count]->buffer.empty();
    const Thread& thread = *threads_[process];
    if (thread.ended || thread.asleep) return false;
    return thread.step.kind == Kind::kLoad || thread.step.kind == Kind::kStore ||
           thread.buffer.empty();
  }
  Step step_of(std::uint32_t process) const {
    const std::uint32_t count = static_cast<std::uint32_t>(threads_.size());
    if (process < count) return threads_[process]->step;
    return {Kind::kFlush, threads_[process - count]->buffer.front().first->name};
  }
  std::uint32_t thread_of(std::uint32_t process) const {
    return process % static_cast<std::uint32_t>(threads_.size());
  }
  void perform(std::uint32_t process) {
    const std::uint32_t count = static_cast<std::uint32_t>(threads_.size());
    if (process < count) return resume(process);
    auto& buffer = threads_[process - count]->buffer;
    buffer.front().first->value = buffer.front().second;
    buffer.pop_front();
  }
  // "" if all threads ended and the scenario is content.
  std::string outcome() const {
    for (std::uint32_t index = 0; index < threads_.size(); ++index) {
      if (threads_[index]->ended) continue;
      if (!rest_check_) return "thread " + std::to_string(index) + " never wakes";
      if (std::string wrong = rest_check_(index); !wrong.empty()) return wrong;
    }
    return check_ ? check_() : std::string();
  }

  // What the atomics call; outside of the threads they act at once.
  std::uint64_t load(const Variable& variable) {
    if (running_ != nullptr) {
      stop({Kind::kLoad, variable.name});
      const auto& buffer = running_->buffer;
      for (auto entry = buffer.rbegin(); entry != buffer.rend(); ++entry) {
        if (entry->first == &variable) return entry->second;
      }
    }
    return variable.value;
  }
  void store(Variable& variable, std::uint64_t value) {
    if (running_ == nullptr) {
      variable.value = value;
    } else {
      stop({Kind::kStore, variable.name});
      running_->buffer.emplace_back(&variable, value);
    }
  }
  void before_update(const Variable& variable) {
    if (running_ != nullptr) stop({Kind::kUpdate, variable.name});
  }
  void fence() {
    if (running_ != nullptr) stop({Kind::kFence, 0});
  }
  void barrier() {
    if (running_ == nullptr) return;
    stop({Kind::kBarrier, 0});
    for (auto& thread : threads_) {
      for (auto& [variable, value] : thread->buffer) variable->value = value;
      thread->buffer.clear();
    }
  }
  void sleep_while(const Variable& variable, std::uint64_t value) {
    stop({Kind::kSleep, variable.name});
    if (variable.value != value) return;
    running_->asleep = true;
    running_->bed = &variable;
    leave();
  }
  void wake(const Variable& variable) {
    if (running_ != nullptr) stop({Kind::kUpdate, variable.name});
    for (auto& thread : threads_) {
      if (thread->asleep && thread->bed == &variable) {
        thread->asleep = false;
        thread->step = {Kind::kFence, 0};  // it has only to go on
        return;
      }
    }
  }

 private:
  static constexpr std::size_t kStack = 64 * 1024;
  struct Thread {
    Trial* run = nullptr;
    const std::function<void()>* body = nullptr;
    std::unique_ptr<char[]> stack;
    std::unique_ptr<Fiber> fiber;
    Step step;
    bool ended = false;
    bool asleep = false;
    const Variable* bed = nullptr;
    std::deque<std::pair<Variable*, std::uint64_t>> buffer;
  };
  static void enter(void* argument) {
    Thread& self = *static_cast<Thread*>(argument);
    (*self.body)();
    self.ended = true;
    self.run->leave();
  }
  void resume(std::uint32_t thread) {
    running_ = threads_[thread].get();
    home_.switch_to(*running_->fiber);
    running_ = nullptr;
  }
  void leave() { running_->fiber->switch_to(home_); }
  void stop(Step step) {
    running_->step = step;
    leave();
  }

  Fiber home_;
  std::vector<std::function<void()>> bodies_;
  std::function<std::string()> check_;
  std::function<std::string(std::uint32_t)> rest_check_;
  std::vector<std::unique_ptr<Thread>> threads_;
  Thread* running_ = nullptr;
  std::uint32_t names_ = 0;
};

template <Bug kBug = Bug::kNone>
struct ModelAtomics {
  static constexpr bool has(Bug bug) { return bug == kBug; }

  template <typename T>
  class Atomic {
    static_assert(sizeof(T) <= 8 && std::is_trivially_copyable_v<T>);

   public:
    Atomic() : Atomic(T{}) {}
    Atomic(T value) : variable_{bits(value), Trial::current()->next_name()} {}
    T load(std::memory_order) const { return value(Trial::current()->load(variable_)); }
    void store(T value, std::memory_order order) {
      if (order == std::memory_order_seq_cst) {
        exchange(value, order);
      } else {
        Trial::current()->store(variable_, bits(value));
      }
    }
    T exchange(T next, std::memory_order) {
      return update([&](T) { return next; });
    }
    T fetch_add(T more, std::memory_order) {
      return update([&](T old) { return static_cast<T>(old + more); });
    }
    T fetch_or(T more, std::memory_order) {
      return update([&](T old) { return static_cast<T>(old | more); });
    }
    T fetch_and(T kept, std::memory_order) {
      return update([&](T old) { return static_cast<T>(old & kept); });
    }
    bool compare_exchange_strong(T& expected, T next, std::memory_order, std::memory_order) {
      const T wanted = expected;
      expected = update([&](T old) { return bits(old) == bits(wanted) ? next : old; });
      return bits(expected) == bits(wanted);
    }
    bool compare_exchange_weak(T& expected, T next, std::memory_order one,
                               std::memory_order other) {
      return compare_exchange_strong(expected, next, one, other);
    }
    Trial::Variable& variable() const { return const_cast<Trial::Variable&>(variable_); }

   private:
    static std::uint64_t bits(T value) {
      std::uint64_t out = 0;
      std::memcpy(&out, &value, sizeof(T));
      return out;
    }
    static T value(std::uint64_t bits) {
      T out;
      std::memcpy(&out, &bits, sizeof(T));
      return out;
    }
    template <typename Change>
    T update(Change change) {
      Trial::current()->before_update(variable_);
      const T old = value(variable_.value);
      variable_.value = bits(change(old));
      return old;
    }
    Trial::Variable variable_;
  };

  static void sleep_while(const Atomic<std::uint32_t>& word, std::uint32_t value) {
    Trial::current()->sleep_while(word.variable(), value);
  }
  static void wake(const Atomic<std::uint32_t>& word) { Trial::current()->wake(word.variable()); }
};

struct Exploration {
  std::uint64_t runs = 0;  // that went to their end
  std::string violation;   // "": none
  std::string order;       // who acted, in the run that showed it
  bool complete = false;
};

// `scenario` makes the shared memory and adds the threads, each time anew.
class Explorer {
 public:
  explicit Explorer(std::function<void(Trial&)> scenario, std::uint64_t most_runs = 500'000)
      : scenario_(std::move(scenario)), most_runs_(most_runs) {}

  Exploration explore() {
    Exploration result;
    do {
      if (result.runs >= most_runs_) return result;
      run_once(result);
      if (!result.violation.empty()) return result;
    } while (turn_to_next());
    result.complete = true;
    return result;
  }

  // For what has too many orders: `runs` of them, by chance. The same seed, the same orders.
  Exploration sample(std::uint64_t seed, std::uint64_t runs) {
    Exploration result;
    std::mt19937_64 random(seed);
    random_ = &random;
    while (result.runs < runs && result.violation.empty()) {
      path_.clear();
      run_once(result);
    }
    random_ = nullptr;
    return result;
  }

 private:
  static constexpr std::size_t kMostSteps = 2000;
  struct Sleeper {
    std::uint32_t process;
    Step step;
  };
  struct Choice {
    std::uint32_t chosen = 0;
    Step step;
    std::vector<Sleeper> asleep;  // what need not be done first here
    std::vector<Sleeper> others;  // enabled, and not yet tried
    std::uint32_t threads = 0;
  };

  void run_once(Exploration& result) {
    Trial run;
    Trial::current() = &run;
    scenario_(run);
    run.start();
    std::size_t depth = 0;
    for (;; ++depth) {
      if (depth >= kMostSteps) {
        result.violation = "it does not come to an end";
        break;
      }
      if (depth == path_.size() && !choose(run)) break;
      run.perform(path_[depth].chosen);
    }
    bool over = true;
    for (std::uint32_t process = 0; process < run.processes(); ++process) {
      over = over && !run.enabled(process);
    }
    if (over && result.violation.empty()) {
      ++result.runs;
      result.violation = run.outcome();
    }
    if (!result.violation.empty()) {
      for (const Choice& choice : path_) result.order += std::to_string(choice.chosen) + " ";
    }
    Trial::current() = nullptr;
  }

  // False: nothing is left to be done here that would not only repeat another order.
  bool choose(Trial& run) {
    Choice choice;
    choice.threads = run.processes() / 2;
    if (!path_.empty() && random_ == nullptr) choice.asleep = still_asleep(path_.back());
    for (std::uint32_t process = 0; process < run.processes(); ++process) {
      if (!run.enabled(process)) continue;
      const auto same = [&](const Sleeper& sleeper) { return sleeper.process == process; };
      if (std::any_of(choice.asleep.begin(), choice.asleep.end(), same)) continue;
      choice.others.push_back({process, run.step_of(process)});
    }
    if (random_ != nullptr && !choice.others.empty()) {
      std::swap(choice.others.front(), choice.others[(*random_)() % choice.others.size()]);
    }
    if (!take_other(choice)) return false;
    path_.push_back(std::move(choice));
    return true;
  }
  static bool take_other(Choice& choice) {
    if (choice.others.empty()) return false;
    choice.chosen = choice.others.front().process;
    choice.step = choice.others.front().step;
    choice.others.erase(choice.others.begin());
    return true;
  }
  static std::vector<Sleeper> still_asleep(const Choice& last) {
    std::vector<Sleeper> kept;
    for (const Sleeper& sleeper : last.asleep) {
      // A thread and its buffer are never exchanged: what it loads depends on what is in there.
      if (sleeper.process % last.threads == last.chosen % last.threads) continue;
      if (may_be_exchanged(sleeper.step, last.step)) kept.push_back(sleeper);
    }
    return kept;
  }
  bool turn_to_next() {
    while (!path_.empty()) {
      Choice& last = path_.back();
      last.asleep.push_back({last.chosen, last.step});
      if (take_other(last)) return true;
      path_.pop_back();
    }
    return false;
  }

  const std::function<void(Trial&)> scenario_;
  const std::uint64_t most_runs_;
  std::vector<Choice> path_;
  std::mt19937_64* random_ = nullptr;
};

}  // namespace amasia::tasks::model
