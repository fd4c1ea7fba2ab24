// SPDX-License-Identifier: Apache-2.0
// Where the pages are whose home is here and for which other nodes have asked, so that they can be
// asked back all together. By blocks, since data go in runs. Guarded by the engine's lock.
#pragma once

#include <cstdint>
#include <optional>

#include "base/base.hpp"
#include "dsm/address_space.hpp"
#include "os/os.hpp"

namespace amasia::dsm {

class LentPages {
 public:
  static constexpr PageCount kBlock = 512;  // pages, aligned

  static Result<LentPages> make(PageCount page_limit);

  // Another node has asked for these.
  void note(PageRun run);
  // A block with such pages, in the order of addresses, round and round; forgets it. nullopt: there
  // is none. At most a look at each word, 64 KiB for a TiB of memory.
  std::optional<PageRun> take();

 private:
  void note_block(std::uint64_t block);

  os::ReservedArray<std::uint64_t> words_;  // a bit for each block
  std::uint64_t hand_ = 0;                  // the word where take() goes on
  std::uint64_t count_ = 0;                 // bits that are set
  std::uint64_t last_ = 0;                  // 1 + the block noted last, which most notes are of
};

}  // namespace amasia::dsm
