// SPDX-License-Identifier: Apache-2.0
// machine: what is known of the nodes and of the links between them. May use base and os.
//
//   identity          what a job's nodes and links are, to tell whether measurements are of them
//   calibration       what was measured of each node, and the file that it is kept in
//   break_even        from which ratio of work to transfers on it pays to share; pure
//   platform          places, and where workers look for tasks; its file
//   topology          from what a machine is made of to its platform; a picture of that
//   arithmetic        the operations that the speed of a core is told in
// Invariants: values that leave parse_calibrations() and load() are finite, positive where they
// divide, and one per node; a file that is not understood is never overwritten.
#pragma once

#include "machine/arithmetic.hpp"
#include "machine/break_even.hpp"
#include "machine/calibration.hpp"
#include "machine/calibration_file.hpp"
#include "machine/identity.hpp"
#include "machine/platform.hpp"
#include "machine/topology.hpp"
