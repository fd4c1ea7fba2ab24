// SPDX-License-Identifier: Apache-2.0
// devices: the accelerators of one node, shared by several programs (paper: mcl-gpgpu2020). May use
// base, os and machine. What programs see is include/amasia/mcl.h (C), minos.h (the same names as
// the original library) and devices.hpp (C++); this header is for the other layers.
//
// Words
//   device     what runs kernels: a GPU, the CPU as an OpenCL device, the host's threads. Seen by
//              several programs it is still one device: it has an identity (ids.hpp).
//   class      CPU, GPU, accelerator: what a program may ask for. It never names a device.
//   program    code that a back end can load: source, SPIR-V, binary, built-in. Has kernels.
//              (A program of the user's, a process, is called a client.)
//   task       one kernel, arguments, sizes: created, armed, put, granted, run, finished or failed.
//   buffer     memory of the user's that is an argument. A *resident* buffer keeps its copies on
//              devices between tasks; a copy is *valid* where it has the newest bytes.
//   daemon     amasia-deviced, one a user and node: decides which task runs next, where (policy/),
//              for all clients. It loads no driver and sees neither kernels nor data.
//   client     a process that links libamasia-devices.so: keeps the task graph, kernels and data,
//              and runs what the daemon grants (backends/), in its own process.
//   to put     a task is put to the daemon when all that it depends on has finished.
//   to grant   the daemon's answer: run that task on this device now.
//   back end   one folder below backends/ (host, opencl, cuda): enumerates devices, loads programs,
//              copies, launches.
//
//   ids.hpp     DeviceId, ClientId, keys, classes, device descriptions: the shared vocabulary
//   wire/       records of 64 bytes in rings of shared memory; packets on a Unix socket
//   policy/     pure: order, placement, eviction, fairness; plug-in ABI
//   trace/      pure: tasks that ended, as text that Perfetto opens
//   daemon/     pure state (step), then the server around it
//   client/     pure task graph and residency, then connection, workers, the C API
//   backends/   what touches hardware
//
// Invariants: no lock and no pointer crosses a process; the daemon believes no field that a client
// can write; the end of any client, at any moment, gives back all it held; the end of the daemon
// fails the tasks that wait for a grant and nothing else; who has nothing to do sleeps in the
// kernel.
#pragma once

// For the module `cuda` of tasks: GPUs without daemon or client.
#include "devices/backends/built_programs.hpp"
#include "devices/backends/cuda/cuda_device.hpp"
#include "devices/backends/cuda/planted_driver.hpp"  // for its tests
#include "devices/client/observe.hpp"
#include "devices/ids.hpp"
#include "devices/policy/policy.hpp"
#include "devices/trace/trace.hpp"
