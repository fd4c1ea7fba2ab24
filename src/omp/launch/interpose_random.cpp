// SPDX-License-Identifier: Apache-2.0
// rand, random and drand48 on all nodes. Their state is each C library's own, so the nodes would
// all draw the same numbers, whatever the program has seeded. Drawing from one state would take a
// page from node to node for each number. So the origin draws what it draws in a plain run and
// writes seeds into the shared page, and the others begin from a seed of their own, made of that
// one and the node, before a region. Threads of a plain run get the numbers in any order, too.
#include <cstdint>
#include <cstdlib>

#include "omp/launch/process.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

constinit Real<void(unsigned)> real_srandom{"srandom"};
constinit Real<void(long)> real_srand48{"srand48"};
constinit Real<unsigned short*(unsigned short*)> real_seed48{"seed48"};
constinit Real<char*(unsigned, char*, std::size_t)> real_initstate{"initstate"};

// Which seed this node has followed last; its main thread's. None yet: unlike any count.
constexpr std::uint32_t kNone = UINT32_MAX;
std::uint32_t followed = kNone;
std::uint32_t followed48 = kNone;

// Also by constructors, before there is a node.
void tell_others(RandomSeed& seed, std::uint64_t value) {
  if (process.space.self() != base::kOrigin || os::is_in_runtime_section()) return;
  seed.value = value;
  seed.changes = (seed.changes + 1) % kNone;
}

// Like splitmix64: seeds and nodes that follow each other give numbers that have nothing in common.
std::uint64_t seed_of_node(std::uint64_t seed) {
  std::uint64_t x = seed + (std::uint64_t{process.space.self().value} << 48);
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace

void adopt_random_seeds() noexcept {
  const SharedPage& page = shared_page();
  if (has_changed(page.random.changes, followed)) {
    real_srandom(static_cast<unsigned>(seed_of_node(page.random.value)));
  }
  if (has_changed(page.random48.changes, followed48)) {
    std::uint64_t seed = seed_of_node(page.random48.value);
    unsigned short words[3];
    for (unsigned short& word : words) word = static_cast<unsigned short>(seed), seed >>= 16;
    real_seed48(words);
  }
}

}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT void srandom(unsigned seed) noexcept {
  real_srandom(seed);
  if (process.managed) tell_others(shared_page().random, seed);
}

AMASIA_EXPORT void srand(unsigned seed) noexcept { srandom(seed); }

AMASIA_EXPORT char* initstate(unsigned seed, char* state, std::size_t size) noexcept {
  char* const before = real_initstate(seed, state, size);
  if (process.managed && before != nullptr) tell_others(shared_page().random, seed);
  return before;
}

AMASIA_EXPORT void srand48(long seed) noexcept {
  real_srand48(seed);
  if (process.managed) tell_others(shared_page().random48, static_cast<std::uint64_t>(seed));
}

AMASIA_EXPORT unsigned short* seed48(unsigned short* words) noexcept {
  // Read first: what it returns, which may be passed back, is overwritten.
  const std::uint64_t value = words[0] | std::uint64_t{words[1]} << 16 |
                              std::uint64_t{words[2]} << 32;
  unsigned short* const before = real_seed48(words);
  if (process.managed) tell_others(shared_page().random48, value);
  return before;
}
