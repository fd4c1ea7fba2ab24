// SPDX-License-Identifier: Apache-2.0
// os: one file for each facility of the kernel or the C library, each a thin, typed layer over the
// calls, and the only place that includes their headers; block_cache stands beside the heap. May
// use base. Invariants: every descriptor and mapping is owned by one object; a call that fails
// returns Result with errno's text (or errno itself where it must not allocate); nothing here knows
// what Amasia is.
#pragma once

#include "os/alarm.hpp"
#include "os/block_cache.hpp"
#include "os/clock.hpp"
#include "os/code_trap.hpp"
#include "os/cpu_quota.hpp"
#include "os/descriptor.hpp"
#include "os/event_poll.hpp"
#include "os/floating_point.hpp"
#include "os/free_memory.hpp"
#include "os/futex.hpp"
#include "os/interrupted_thread.hpp"
#include "os/interruption.hpp"
#include "os/loaded_objects.hpp"
#include "os/memory_map.hpp"
#include "os/mutex.hpp"
#include "os/network_namespace.hpp"
#include "os/numa.hpp"
#include "os/packet_socket.hpp"
#include "os/perf.hpp"
#include "os/path_socket.hpp"
#include "os/private_directory.hpp"
#include "os/process.hpp"
#include "os/process_barrier.hpp"
#include "os/random.hpp"
#include "os/runtime_stack.hpp"
#include "os/short_turns.hpp"
#include "os/signals.hpp"
#include "os/socket.hpp"
#include "os/spawn.hpp"
#include "os/syscall_trap.hpp"
#include "os/thread.hpp"
#include "os/userfaultfd.hpp"
#include "os/wakeup.hpp"
