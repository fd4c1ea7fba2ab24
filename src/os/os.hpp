// SPDX-License-Identifier: Apache-2.0
// os: one file for each kernel facility, each a thin, typed layer over the system calls, and the
// only place that includes their headers. May use base. Invariants: every descriptor and mapping is
// owned by one object; a call that fails returns Result with errno's text; nothing here knows what
// Amasia is.
#pragma once
