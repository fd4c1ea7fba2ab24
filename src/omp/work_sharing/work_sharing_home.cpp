// SPDX-License-Identifier: Apache-2.0
// Threads come home out of a loop that is handed out. Each node's pool goes with them as it is: so
// numbers rise for each thread as before, and who comes from one node takes nothing from another.
#include "omp/node.hpp"
#include "omp/work_sharing/work_sharing_state.hpp"

namespace amasia::omp {

bool WorkSharing::may_depart(std::uint32_t region, std::uint64_t loops) {
  const std::lock_guard lock(loops_mutex_);
  NodeLoop* const loop = find(region, loops - 1);
  if (loop == nullptr) return true;
  const std::lock_guard pool_lock(loop->mutex);
  return !loop->pool.asking();
}

std::uint64_t WorkSharing::left_at_home(std::uint32_t region, std::uint64_t loops) {
  const std::lock_guard lock(loops_mutex_);
  std::uint64_t left = 0;
  if (NodeLoop* const loop = find(region, loops - 1); loop != nullptr) {
    const std::lock_guard pool_lock(loop->mutex);
    left += loop->pool.left();
  }
  const std::lock_guard global_lock(global_mutex_);
  const auto found = region == global_region_ ? global_.find(loops - 1) : global_.end();
  return found == global_.end() ? left : left + found->second.dealer.remaining();
}

LoopRest WorkSharing::depart(std::uint32_t region, std::uint64_t loops) {
  forget(region, loops);
  const std::lock_guard lock(loops_mutex_);
  NodeLoop* const loop = find(region, loops - 1);
  if (loop == nullptr) return {};
  const LoopRest rest{loops - 1, loop->threads_here, loop->pool};
  drop(*loop);
  return rest;
}

void* WorkSharing::adopt(std::uint32_t region, const LoopRest& rest) {
  const std::lock_guard lock(loops_mutex_);
  NodeLoop& loop = open_another();
  loop.want = {};
  loop.want.body.region = region;
  loop.want.body.number = rest.number;
  loop.function = loop.code = nullptr;
  loop.pool = rest.pool;
  loop.pool.end();
  loop.news = {};
  loop.threads_here = static_cast<std::uint32_t>(rest.threads);
  return &loop;
}

bool WorkSharing::is_remembered(std::uint32_t region, std::uint64_t loops) {
  const std::lock_guard lock(loops_mutex_);
  return latest_.region == region && latest_.number + 1 == loops && latest_.key != 0;
}

void WorkSharing::forget(std::uint32_t region, std::uint64_t loops) {
  const std::lock_guard lock(loops_mutex_);
  if (latest_.region == region && latest_.number + 1 == loops) known_.erase(latest_.key);
}

}  // namespace amasia::omp
