/* SPDX-License-Identifier: Apache-2.0 */
/* What a program may ask when it runs under `amasia run`. No program needs to. There is nothing to
   link with: the functions are looked up, for instance
       dlsym(RTLD_DEFAULT, "amasia_thread_state")
   which finds nothing where the program runs by itself. */
#ifndef AMASIA_H
#define AMASIA_H

#ifdef __cplusplus
extern "C" {
#endif

/* Of the calling thread. The counters only grow: take differences. */
struct amasia_thread_state_t {
  unsigned node;             /* on which node it runs */
  unsigned nodes;            /* how many the job has */
  unsigned long long faults; /* pages that it found missing, or could not write to */
  long long stall_ns;        /* how long it waited for them, and for calls' way to node 0 */
};

/* 1, or 0 where this process is not a node. */
int amasia_thread_state(struct amasia_thread_state_t* state);

/* The job's nodes and links as JSON (docs/calibration.md), on node 0, outside of regions; else
   NULL. Valid for ever. */
const char* amasia_identity(void);

#ifdef __cplusplus
}
#endif

#endif
