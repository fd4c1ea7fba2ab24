// SPDX-License-Identifier: Apache-2.0
// A node that may use less CPU time than its cores have. What it does in one execution tells
// little: all is done before that time is used up, as fast as on whole cores, or has to wait for
// the next period. What it can do again and again is a matter of arithmetic. Pure.
#pragma once

#include "base/base.hpp"

namespace amasia::loops {

struct CpuLimit {
  double cores = 0;  // CPU time in an equal time, for all threads of the node together; 0: no limit
  Nanos period = 0;  // what is not used in one is lost

  bool holds() const { return cores > 0; }
};

// How long an execution takes at least, on average over many, that uses `cpu` of CPU time, with
// `rest` between it and the one before, in which the node used none. 0 without a limit.
Nanos sustained_time(const CpuLimit& limit, Nanos cpu, Nanos rest);

}  // namespace amasia::loops
