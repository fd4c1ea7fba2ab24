// SPDX-License-Identifier: Apache-2.0
#include "dsm/fill_around.hpp"

#include <bit>

namespace amasia::dsm {

std::uint64_t FillAround::on_fault(PageIndex page) {
  ++faults_;
  const std::uint64_t number = page.value / kBlock;
  const std::uint64_t bit = std::uint64_t{1} << (page.value % kBlock);
  Block& block = blocks_[number % kBlocks];
  const bool known = block.last_fault != 0 && block.number == number &&
                     faults_ - block.last_fault <= kMemory;
  if (!known) block = Block{.number = number};
  if ((block.waited_for & bit) != 0) block.waited_for = 0;
  block.waited_for |= bit;
  block.last_fault = faults_;
  if (std::popcount(block.waited_for) != block.enough) return 0;
  block.enough = kAgain;
  return ~block.waited_for;
}

}  // namespace amasia::dsm
