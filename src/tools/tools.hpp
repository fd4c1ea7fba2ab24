// SPDX-License-Identifier: Apache-2.0
// tools: the `amasia` command. May use base, os, fabric, launch, machine and devices; not the
// runtime's layers, which define symbols of the C library. Invariants: a user's mistake is one
// sentence and exit code 2; a command leaves no process, no shared memory and no file behind,
// however it ends, but those that it is asked for.
#pragma once

#include "tools/calibrate_command.hpp"
#include "tools/devices_command.hpp"
#include "tools/doctor.hpp"
#include "tools/explain_command.hpp"
#include "tools/machine_command.hpp"
#include "tools/report_command.hpp"
#include "tools/run_command.hpp"
