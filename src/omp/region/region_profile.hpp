// SPDX-License-Identifier: Apache-2.0
// What an earlier run of the program found out about each region (--profile): how fast nodes were,
// so that it begins with shares that fit it, or that it is best alone. What runs once is shared by
// that only: a static loop has its bounds before it begins, and may be uneven. Pure.
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
  // How long it has yet to take on the origin alone until sharing it is tried again, ns; 0: it was
  // not alone.
  double until_retried(std::string_view site) const;

 private:
  struct Found {
    std::vector<double> speeds;
    double until_retried = 0;
  };
  const Found* find(std::string_view site) const;

  std::unordered_map<std::string, Found> found_;
};

}  // namespace amasia::omp
