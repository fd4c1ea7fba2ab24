// SPDX-License-Identifier: Apache-2.0
// omp: OpenMP across nodes, above the program's own runtime. May use all layers below.
//
//   frame, native   where a thread stands; leaving managed stacks
//   node            what a node has, once for the process
//   code/           what the program's compiled code does, as far as sharing depends on it
//   region/         which nodes take part in a region, how they learn of it, what it cost
//   team/           what the threads of a region do together: single, reduction, cancellation, …
//   meeting/        how teams meet: barriers, on the board of a host and by message
//   work_sharing/   loops and sections across nodes, ordered and doacross ones among them
//   locks/          critical sections and locks between nodes
//   local_runtime   the program's own runtime as the team uses it, one implementation per ABI
//   real            how the ABI reaches that runtime's entry points
//   services        what the layer needs of memory, streams and job
//   abi/            the entry points: decode, call, encode
//   emulate/        several nodes in one process, for tests
//   launch/         the composition root of the preloaded library
// Invariants: a thread without a frame gets the next runtime's answer to everything; a thread with
// one never asks it for what concerns the team; what is not carried across nodes runs on one, and
// is counted with its reason.
#pragma once

#include "omp/frame.hpp"
#include "omp/launch/stack_pool.hpp"
#include "omp/launch/stack_switch.hpp"
#include "omp/node.hpp"
#include "omp/real.hpp"
#include "omp/services.hpp"
#include "omp/team/team.hpp"
