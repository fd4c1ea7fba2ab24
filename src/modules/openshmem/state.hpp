// SPDX-License-Identifier: Apache-2.0
// What is outstanding. All of it belongs to the thread of run().
//
// OpenSHMEM's collectives block. A worker that waited in one for a PE that is still busy would keep
// its own tasks, which that PE may need, from running. So each begins with a barrier made of puts
// and polls (dissemination: in round r a PE tells the one 2^r further on, and hears from the one
// 2^r before it); the library's collective is called when all PEs have come.
//
//   heard[r]   symmetric, written by one other PE: the number of the last barrier in whose round r
//              it was. Numbers grow, and a PE that is one barrier ahead has said all of this one:
//              so a word that is written twice before it is read has lost nothing.
#pragma once

#include <shmem.h>

#include <deque>
#include <functional>
#include <vector>

#include "amasia/openshmem.hpp"

namespace amasia::openshmem {

struct Ending {
  tasks::promise<void> result;
  tasks::hold held;
  void succeed() {
    result.put();
    held.release();
  }
};

struct Waiting {
  std::function<bool()> is_true;  // also lets the library make progress
  Ending ending;
};

struct Collective {
  std::function<void()> body;  // when all are there
  Ending ending;
};

struct State {
  static constexpr int kMostRounds = 32;
  static constexpr std::size_t kReduced = 1024;  // elements in one call of the library

  int pe = 0;
  int pes = 0;
  long* heard = nullptr;
  long* sync = nullptr;  // pSync; used again only after a barrier
  double* work = nullptr;

  std::vector<Ending> gets;
  std::vector<Waiting> waiting;
  std::deque<Collective> collectives;
  long barrier = 0;  // of collectives.front(): its number
  int round = -1;    // not begun

  // One step as far as it goes: true when some collective was completed.
  bool advance_collectives();
  bool barrier_is_over();
};

}  // namespace amasia::openshmem
