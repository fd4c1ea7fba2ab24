// SPDX-License-Identifier: Apache-2.0
// launch: what `amasia run` and the processes under it say to each other: the messages, the client
// that the runtime library uses to become a node, the board on which nodes publish what they are
// doing, and the statistics that a run leaves and another one may begin with. Depends on base and
// os, so that the launcher need not link the runtime (which defines malloc and main wrappers) and
// the runtime need not link the launcher.
//
// Invariants:
//  L1  A command is started once, as it was typed. Only the process that asks to be the origin gets
//      peers, and they are started as its executable: wrappers and shells never run twice.
//  L2  Nothing is sent to a node on its connection after the answer to its join: any event there
//      means that the launcher is gone.
//  L3  A process that is not a node is not changed by the preloaded library.
// The messages and their order are in docs/protocols/launch.md.
#pragma once

#include "launch/board.hpp"
#include "launch/join.hpp"
#include "launch/messages.hpp"
#include "launch/open_files.hpp"
#include "launch/openmp_runtime.hpp"
#include "launch/report.hpp"
#include "launch/statistics_file.hpp"
