// SPDX-License-Identifier: Apache-2.0
// fabric: messages between the nodes of a job. Depends on base and os. Back ends: `ucx` (processes,
// on one host or several), `loopback` (N nodes in one process, for tests and emulation), `sim` (N
// nodes in virtual time, seeded). Over each: `slow_link`, which delays messages. Bootstraps: a
// key-value space over a socket, which the launcher serves by itself or on behalf of PMIx.
//
// Invariants, held by the tests on every back end:
//  F1  From one node to another, messages are delivered in the order in which send() was entered,
//      each once, for as long as neither is lost.
//  F2  Nothing is delivered from a peer before it has proved that it knows the job's secret.
//  F3  A frame that is malformed is never delivered: its sender is lost, with a sentence.
//  F4  After arm() returned true, whatever is to be polled makes wait_descriptor() readable.
//  F5  send() never waits for a peer.
//  F6  Handlers of one fabric run one at a time. Only runtime memory is touched.
#pragma once

#include "fabric/bootstrap.hpp"
#include "fabric/loopback.hpp"
#include "fabric/messages.hpp"
#include "fabric/pmix.hpp"
#include "fabric/sim.hpp"
#include "fabric/slow_link.hpp"
#include "fabric/ucx.hpp"
#include "fabric/ucx_inventory.hpp"
