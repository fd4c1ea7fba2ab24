// SPDX-License-Identifier: Apache-2.0
// loops: which iterations of a work-sharing loop go where. Pure: values in, values out; no I/O,
// clock, thread or atomic, and no allocation but in what the origin keeps. May use `base`.
//
// A loop is first numbered (space.hpp): its iterations are 0 … count-1 in program order, whatever
// its bounds, types and increment. Everything else speaks of these numbers.
// Invariants: (a) the ranges handed out for one loop tile 0 … count-1, each number exactly once;
// (b) what one thread gets has rising numbers, but for the schedules that probe: those carry out
// only loops that need not be monotonic (carried_out()); (c) no arithmetic overflows for any count
// up to 2^64-1.
#pragma once

#include "base/base.hpp"
#include "loops/common_node.hpp"
#include "loops/common_sharing.hpp"
#include "loops/common_trial.hpp"
#include "loops/cost_spread.hpp"
#include "loops/cpu_limit.hpp"
#include "loops/dealer.hpp"
#include "loops/homeward.hpp"
#include "loops/midway.hpp"
#include "loops/pool.hpp"
#include "loops/probe_cache.hpp"
#include "loops/probe_dealer.hpp"
#include "loops/probe_decision.hpp"
#include "loops/report.hpp"
#include "loops/schedule.hpp"
#include "loops/sharing_model.hpp"
#include "loops/single_node.hpp"
#include "loops/space.hpp"
#include "loops/static_share.hpp"
#include "loops/trial_budget.hpp"
#include "loops/turns.hpp"
#include "loops/weights.hpp"
