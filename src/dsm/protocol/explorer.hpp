// SPDX-License-Identifier: Apache-2.0
// Enumerates every interleaving of a ClusterModel. Two questions:
//   explore_safety    every reachable state: does one violate what must always hold, or is one
//   stuck? explore_drain     when no thread begins anything new, does every schedule, fair or not,
//   come to
//                     an end with every access made? (The graph of what is left to do has no
//                     cycle, and ends only where nobody waits.) So every request is granted.
// For tests only.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <deque>
#include <set>
#include <string>
#include <vector>

#include "dsm/protocol/cluster_model.hpp"

namespace amasia::dsm::protocol {

// A set of 64-bit fingerprints, each with an index. Two states with one fingerprint would be
// taken for one: below 10^-5 for 10^7 states.
class FingerprintTable {
 public:
  static constexpr std::uint32_t kAbsent = ~std::uint32_t{0};

  // The index of the fingerprint; `added` says whether it is new.
  std::uint32_t insert(std::uint64_t fingerprint, bool& added) {
    if (size_ * 2 >= slots_.size()) grow();
    std::size_t at = fingerprint & (slots_.size() - 1);
    while (slots_[at].index != kAbsent) {
      if (slots_[at].fingerprint == fingerprint) {
        added = false;
        return slots_[at].index;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    added = true;
    slots_[at] = {fingerprint, size_};
    return size_++;
  }
  std::uint32_t size() const { return size_; }

 private:
  struct Slot {
    std::uint64_t fingerprint = 0;
    std::uint32_t index = kAbsent;
  };
  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& slot : old) {
      if (slot.index == kAbsent) continue;
      std::size_t at = slot.fingerprint & (slots_.size() - 1);
      while (slots_[at].index != kAbsent) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = slot;
    }
  }
  std::vector<Slot> slots_ = std::vector<Slot>(1 << 12);
  std::uint32_t size_ = 0;
};

inline std::uint64_t fingerprint_of(std::vector<std::uint8_t>& bytes) {
  while (bytes.size() % 8 != 0) bytes.push_back(0xff);
  std::uint64_t hash = 0x9e3779b97f4a7c15ULL ^ bytes.size();
  for (std::size_t i = 0; i < bytes.size(); i += 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes.data() + i, 8);
    hash = (hash ^ word) * 0xff51afd7ed558ccdULL;
    hash ^= hash >> 32;
    hash *= 0xc4ceb9fe1a85ec53ULL;
    hash ^= hash >> 29;
  }
  return hash;
}

struct Exploration {
  std::uint32_t states = 0;
  bool complete = false;                         // false: stopped at the limit or at a violation
  std::string violation;                         // empty: none
  std::string trace;                             // the actions that lead to it
  std::set<std::vector<std::uint8_t>> outcomes;  // of programs: all loaded values, thread by thread
};

template <int kNodes, int kPages, int kThreads>
class Explorer {
 public:
  using Model = ClusterModel<kNodes, kPages, kThreads>;

  explicit Explorer(const ModelSettings& settings, std::uint32_t limit = ~std::uint32_t{0})
      : settings_(settings), limit_(limit) {}

  // Thread i runs at node i % kNodes.
  void set_programs(std::vector<std::vector<Operation>> programs) {
    AMASIA_CHECK(programs.size() == kThreads, "one program a thread");
    programs_ = std::move(programs);
  }

  Exploration explore_safety() {
    Exploration result;
    std::deque<std::pair<Model, std::uint32_t>> frontier;
    visit(first(), FingerprintTable::kAbsent, {}, frontier);
    std::vector<Action> actions;
    while (!frontier.empty() && seen_.size() < limit_) {
      const auto [state, index] = frontier.front();
      frontier.pop_front();
      if (const char* wrong = inspect(state, result)) return failed(result, wrong, index, state);
      actions.clear();
      all_actions(state, false, actions);
      for (const Action& action : actions) {
        Model next = state;
        if (const char* wrong = perform(next, action)) {
          result.trace = describe(action) + "\n";
          return failed(result, wrong, index, next);
        }
        visit(next, index, action, frontier);
      }
    }
    result.states = seen_.size();
    result.complete = frontier.empty();
    return result;
  }

  Exploration explore_drain() {
    Exploration result;
    std::vector<Model> roots{first()};
    while (!roots.empty() && seen_.size() < limit_) {
      const Model root = roots.back();
      roots.pop_back();
      if (!drain_from(root, roots, result)) return result;
    }
    result.states = seen_.size();
    result.complete = roots.empty();
    return result;
  }

 private:
  struct Frame {
    Model state;
    std::uint32_t index;
    std::vector<Action> actions;
    std::size_t next = 0;
  };

  Model first() const {
    Model model;
    if (!programs_.empty()) model.clear_memory();
    return model;
  }

  std::uint32_t index_of(const Model& state, bool& added) {
    state.encode(bytes_);
    return seen_.insert(fingerprint_of(bytes_), added);
  }

  void visit(const Model& state, std::uint32_t parent, const Action& action,
             std::deque<std::pair<Model, std::uint32_t>>& frontier) {
    bool added = false;
    const std::uint32_t index = index_of(state, added);
    if (!added) return;
    steps_.push_back({parent, action});
    frontier.emplace_back(state, index);
  }

  // Depth first along what is left to do; what begins something new becomes a root.
  bool drain_from(const Model& root, std::vector<Model>& roots, Exploration& result) {
    std::vector<Frame> path;
    if (!enter(root, path, result)) return false;
    while (!path.empty()) {
      Frame& frame = path.back();
      if (frame.next == frame.actions.size()) {
        on_path_[frame.index] = false;
        add_roots(frame.state, roots);
        path.pop_back();
        continue;
      }
      Model next = frame.state;
      const Action action = frame.actions[frame.next++];
      if (const char* wrong = perform(next, action)) {
        path_failed(result, wrong, path, next);
        return false;
      }
      if (!enter(next, path, result)) return false;
    }
    return true;
  }

  bool enter(const Model& state, std::vector<Frame>& path, Exploration& result) {
    bool added = false;
    const std::uint32_t index = index_of(state, added);
    if (!added) {
      if (!on_path_[index]) return true;
      path_failed(result, "a cycle: work goes on for ever without an access being made", path,
                  state);
      return false;
    }
    on_path_.resize(seen_.size());
    on_path_[index] = true;
    path.push_back({state, index, {}, 0});
    all_actions(state, true, path.back().actions);
    const char* wrong = inspect(state, result);
    if (wrong == nullptr && path.back().actions.empty() && someone_waits(state))
      wrong = "a thread waits for ever";
    if (wrong != nullptr) path_failed(result, wrong, path, state);
    return wrong == nullptr;
  }

  void add_roots(const Model& state, std::vector<Model>& roots) {
    std::vector<Action> actions;
    all_actions(state, false, actions);
    for (const Action& action : actions) {
      if (action.kind != ActionKind::kAccess && action.kind != ActionKind::kPrefetch &&
          action.kind != ActionKind::kEvict && action.kind != ActionKind::kOffer &&
          action.kind != ActionKind::kGiveBack)
        continue;
      Model next = state;
      if (perform(next, action) != nullptr) continue;
      next.encode(bytes_);
      bool added = false;
      queued_.insert(fingerprint_of(bytes_), added);
      if (added) roots.push_back(next);
    }
  }

  const char* inspect(const Model& state, Exploration& result) {
    if (const char* wrong = state.find_violation(programs_.empty())) return wrong;
    if (!programs_.empty()) note_outcome(state, result);
    if (state.quiet() && someone_waits(state)) return "a thread waits for ever";
    return nullptr;
  }

  void note_outcome(const Model& state, Exploration& result) {
    std::vector<std::uint8_t> outcome;
    for (int i = 0; i < kThreads; ++i) {
      if (state.threads[i].next != programs_[i].size()) return;
      std::size_t loads = 0;
      for (const Operation& operation : programs_[i]) loads += operation.writes ? 0 : 1;
      for (std::size_t j = 0; j < loads; ++j) outcome.push_back(state.threads[i].loaded[j]);
    }
    result.outcomes.insert(outcome);
  }

  static bool someone_waits(const Model& state) {
    return std::any_of(state.threads.begin(), state.threads.end(), [](const ModelThread& thread) {
      return thread.phase == ModelThread::kWaits;
    });
  }

  void all_actions(const Model& state, bool drain_only, std::vector<Action>& actions) const {
    state.engine_actions(settings_, drain_only, actions);
    for (std::uint8_t i = 0; i < kThreads; ++i) {
      const ModelThread& thread = state.threads[i];
      if (thread.phase == ModelThread::kRetries) actions.push_back({ActionKind::kRetry, i});
      if (thread.phase != ModelThread::kRuns) continue;
      if (!programs_.empty()) {
        if (thread.next == programs_[i].size()) continue;
        const Operation& operation = programs_[i][thread.next];
        actions.push_back({ActionKind::kAccess, i, operation.page, operation.writes});
      } else if (!drain_only) {
        free_accesses(state, i, actions);
      }
    }
  }

  // With two threads a node, the first half of all reads and the other half writes.
  void free_accesses(const Model& state, std::uint8_t i, std::vector<Action>& actions) const {
    for (std::uint8_t page = 0; page < kPages; ++page)
      for (std::uint8_t writes : {0, 1}) {
        if (kThreads == 2 * kNodes && (i >= kNodes) != (writes != 0)) continue;
        if (writes == 0 && state.page_allows(i % kNodes, page, false)) continue;  // no change
        actions.push_back({ActionKind::kAccess, i, page, writes});
      }
  }

  const char* perform(Model& state, const Action& action) const {
    if (action.kind != ActionKind::kAccess && action.kind != ActionKind::kRetry)
      return state.perform(settings_, action);
    ModelThread& thread = state.threads[action.a];
    if (action.kind == ActionKind::kAccess) {
      thread.page = action.b;
      thread.writes = action.c != 0;
    }
    const int node = action.a % kNodes;
    if (!state.page_allows(node, thread.page, thread.writes)) {
      thread.phase = ModelThread::kWaits;
      state.nodes[node].fault_events[thread.page] |= thread.writes ? 2 : 1;
      return nullptr;
    }
    if (programs_.empty()) {
      if (thread.writes) state.mark_newest(node, thread.page);
    } else {
      access_by_program(state, action.a, node);
    }
    thread.phase = ModelThread::kRuns;
    thread.page = 0;
    thread.writes = false;
    return nullptr;
  }

  void access_by_program(Model& state, int i, int node) const {
    ModelThread& thread = state.threads[i];
    const Operation& operation = programs_[i][thread.next];
    std::uint8_t& cell = state.nodes[node].memory[operation.page];
    if (operation.writes) {
      cell = operation.value;
    } else {
      std::size_t place = 0;
      for (int k = 0; k < thread.next; ++k) place += programs_[i][k].writes ? 0 : 1;
      thread.loaded[place] = cell;
    }
    ++thread.next;
  }

  static std::string describe(const Action& action) {
    constexpr const char* kNames[] = {"effect",     "fault",    "deliver", "deliver and hold",
                                      "release",    "prefetch", "evict",   "offer",
                                      "give back", "given back", "access",  "retry"};
    char line[64];
    std::snprintf(line, sizeof line, "%s %d %d %d", kNames[static_cast<int>(action.kind)], action.a,
                  action.b, action.c);
    return line;
  }

  Exploration failed(Exploration& result, const char* wrong, std::uint32_t index,
                     const Model& state) {
    result.violation = wrong;
    while (index != FingerprintTable::kAbsent &&
           steps_[index].parent != FingerprintTable::kAbsent) {
      result.trace = describe(steps_[index].action) + "\n" + result.trace;
      index = steps_[index].parent;
    }
    result.trace += state.describe();
    result.states = seen_.size();
    return result;
  }

  void path_failed(Exploration& result, const char* wrong, const std::vector<Frame>& path,
                   const Model& state) const {
    result.violation = wrong;
    for (const Frame& frame : path)
      if (frame.next > 0) result.trace += describe(frame.actions[frame.next - 1]) + "\n";
    if (!path.empty()) result.trace = path.front().state.describe() + result.trace;
    result.trace += state.describe();
    result.states = seen_.size();
  }

  struct Step {
    std::uint32_t parent;
    Action action;
  };
  ModelSettings settings_;
  std::uint32_t limit_;
  std::vector<std::vector<Operation>> programs_;
  FingerprintTable seen_, queued_;
  std::vector<Step> steps_;
  std::vector<bool> on_path_;
  std::vector<std::uint8_t> bytes_;
};

}  // namespace amasia::dsm::protocol
