// SPDX-License-Identifier: Apache-2.0
// What executions take although their shares are balanced, since times vary from one to the next:
// the slowest node decides, and it is not always the same; and what a node that is kept from its
// core takes longer is not in its own times. Pure.
//
// Node i does the part w_i of the work in t_i, which varies while the shares stay, as the elapsed
// time does. Shares can be mended by the means, not by what each execution would have wanted:
//   expected = mean elapsed  -  (max (mean t_i) - 1 / sum (w_i / mean t_i))
// which is what executions take, less what balanced shares would spare. (An execution's own
// 1 / sum (w_i / t_i) promises what only shares that are known afterwards would give.)
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "base/base.hpp"

namespace amasia::loops {

class Variation {
 public:
  struct Part {
    double work = 0;  // w_i; 0: it took no part
    double time = 0;  // t_i, in ns
  };
  // The shares have changed, and with them the times: what was expected before still is, until
  // enough executions tell anew, since it is that of balanced shares.
  void restart() { runs_ = 0; }
  // After an execution; by node, the same nodes each time since restart().
  void note(std::span<const Part> parts, double elapsed);
  // As above, in ns; 0: too few executions tell.
  double expected() const { return expected_; }

 private:
  static constexpr std::uint32_t kEnough = 4;
  static constexpr std::uint32_t kRemembered = 16;  // executions; what is older counts less
  // One execution that takes longer for reasons of its own counts for so many at most; more where
  // that is nothing rare.
  static constexpr double kMostOnce = 2, kMostAtOnce = 4;

  double mean(double before, double latest, double most) const;
  void expect();

  std::uint32_t runs_ = 0;
  double expected_ = 0;
  double elapsed_ = 0;
  std::uint32_t since_long_ = kRemembered;  // executions
  std::array<double, base::kMaxNodes> work_{}, time_{};
};

}  // namespace amasia::loops
