// SPDX-License-Identifier: Apache-2.0
// Whether a program's threads may go on as other threads in the middle of a region
// (homecoming.hpp), by the names that it takes from others. Its compiled code keeps the number by
// which libomp knows a thread, and tells it in each call: those calls that are ours do not use it,
// since they ask which thread is there. And it may keep who a thread is, or where its errno is,
// which compilers take to be the same throughout a function.
#pragma once

#include <span>
#include <string_view>

#include "omp/launch/objects.hpp"

namespace amasia::omp {

// By the names that one object takes from others. What it has of a thread's own matters only where
// its functions come to barriers. Pure.
bool lets_threads_move(std::span<const std::string_view> imports);

// Whether those are among them that return an address of the thread's own, which a thread that
// moves must not keep (own_addresses.hpp). Pure.
bool may_keep_own_addresses(std::span<const std::string_view> imports);

// Both of a program: whether each of its objects lets threads move, and whether one of them may
// keep such an address. Reads their memory.
struct MovableThreads {
  bool may_move = true;
  bool may_keep_own_addresses = false;
};
MovableThreads movable_threads(const ObjectTable& objects);

}  // namespace amasia::omp
