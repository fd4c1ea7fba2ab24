// SPDX-License-Identifier: Apache-2.0
// How fast nodes were in each region in an earlier run of the program (--profile), so that a region
// begins with shares that fit it. What runs once is shared by them alone: a static loop has its
// bounds before it begins, and may be uneven. Pure.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/base.hpp"

namespace amasia::omp {

class RegionProfile {
 public:
  RegionProfile() = default;
  // `earlier` is what --stats wrote. Error: it is of another number of nodes.
  static Result<RegionProfile> make(const base::JobStatistics& earlier, std::size_t nodes);

  // How fast a core of each node was, relative; by node; 0: it had lost its part. Empty: nothing is
  // known of the region.
  std::span<const double> core_speeds(std::string_view site) const;

 private:
  std::unordered_map<std::string, std::vector<double>> speeds_;
};

}  // namespace amasia::omp
