/* SPDX-License-Identifier: Apache-2.0 */
/* For programs written for the Minos Computing Library: their `#include <minos.h>` finds this file
   through the Cflags of amasia-devices.pc. The interface stands in amasia/mcl.h; here is only what
   such programs also get from that name. */
#ifndef MINOS_H
#define MINOS_H

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

/* OpenCL's types and constants, where its headers are installed: nothing of ours needs them. */
#if !defined(RUST_BUILD) && defined(__has_include)
#if __has_include(<CL/cl.h>)
#ifndef CL_TARGET_OPENCL_VERSION
#define CL_TARGET_OPENCL_VERSION 300 /* which the header would choose, and say so each time */
#endif
#include <CL/cl.h>
#endif
#endif

#include <amasia/mcl.h>

#define CL_MAX_PLATFORMS 64
#define CL_MAX_DEVICES 64

#endif
