// SPDX-License-Identifier: Apache-2.0
// When the program's data come home in one go: as the last of the regions that were shared begins
// to stay on the origin, which would wait for each of their pages apart. Not while another region
// is shared, or about to be in this round of the program: its second execution tells what sharing
// costs once data lie where they are used. A region that ran once, before this round, does not
// count. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace amasia::omp {

class Gathering {
 public:
  // What is known of one region; lives as long as the object that it was added to.
  struct Region {
    std::uint64_t runs = 0;
    std::uint64_t latest = 0;  // counted over all regions
    bool shared = false;       // the latest
  };
  enum class Action : std::uint8_t { kNone, kGather, kStop };

  // Before its first run. Allocates.
  void add(const Region& region) { regions_.push_back(&region); }
  // Before each run: what to do now.
  Action on_run(Region& region, bool shared);

 private:
  std::vector<const Region*> regions_;
  std::uint64_t runs_ = 0;      // of all regions
  bool data_went_out_ = false;  // since the last kGather
  bool gathers_ = false;        // and has not been told to stop
};

}  // namespace amasia::omp
