/* SPDX-License-Identifier: Apache-2.0 */
/* A scheduling policy of your own for amasia-deviced: which task runs next, and on which device
   (docs/device_policies.md; paper: mcl-gpgpu2020, section 2.3).

     cc -shared -fPIC -o my_policy.so my_policy.c
     amasia-deviced --policy ./my_policy.so

   The shared object exports one function, amasia_device_policy_entry, that returns a table. The
   daemon calls what is in the table from one thread, never two calls at once. It keeps what
   occupies the devices, evicts buffers, and learns how long tasks take; the policy keeps a line of
   tasks and answers `next`. A call must not block, and should take microseconds: the whole node
   waits for it.

   A policy that answers with a task that is not queued, or a device where the task cannot start
   (ask `fits`), or with nothing although tasks are queued and nothing runs, is dismissed with a
   sentence in the daemon's log, and the built-in `fifo` goes on with all tasks.

   Structures only ever grow at their ends, and begin with their size: look at no member beyond. */
#ifndef AMASIA_DEVICE_POLICY_H
#define AMASIA_DEVICE_POLICY_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AMASIA_DEVICE_POLICY_ABI 1 /* a daemon refuses tables of another number */

enum amasia_policy_device_class {
  AMASIA_POLICY_CPU = 0,
  AMASIA_POLICY_GPU = 1,
  AMASIA_POLICY_ACCELERATOR = 2
};

/* Devices are numbered 0 .. 63, in the order in which they are announced; where no program has a
   device any more its number may be given to another one. A set of them is a mask: bit i is device
   i. */
typedef struct amasia_policy_device {
  size_t size;
  uint32_t device;
  uint32_t device_class; /* enum amasia_policy_device_class */
  uint64_t elements;     /* processing elements */
  uint64_t memory;       /* bytes that tasks may use */
  uint32_t depth;        /* tasks in flight at most */
  const char* name;      /* valid during the call */
} amasia_policy_device;

/* A task is known by its client and its number, which is the client's own. */
typedef struct amasia_policy_task {
  size_t size;
  uint32_t client;
  uint64_t task;
  uint64_t kernel;    /* the same for the same code, of all clients */
  uint64_t work;      /* work items */
  uint64_t bytes;     /* of device memory that it uses, all arguments */
  uint64_t possible;  /* devices where it can run: never answer with another */
  uint64_t preferred; /* devices of the class that its program favours; may be 0 */
  int32_t priority;   /* larger is sooner, if the policy cares */
  int64_t put_ns;     /* when it was put, on the clock of `now_ns` */
} amasia_policy_task;

typedef struct amasia_policy_choice {
  size_t size;
  uint32_t client;
  uint64_t task;
  uint32_t device;
} amasia_policy_choice;

/* Questions that `next` may ask, about tasks that are queued and devices. Unknown ones: 0 or -1. */
typedef struct amasia_policy_view {
  size_t size;
  const void* context; /* the first argument of each question */
  /* 1: the task can start there now. */
  int (*fits)(const void* context, uint32_t client, uint64_t task, uint32_t device);
  /* Bytes that would have to be copied there first. */
  uint64_t (*missing_bytes)(const void* context, uint32_t client, uint64_t task, uint32_t device);
  /* Nanoseconds that it runs there, as measured of its kernel; -1: never ran there. */
  int64_t (*run_ns)(const void* context, uint32_t client, uint64_t task, uint32_t device);
  /* Nanoseconds that copying so many bytes there takes. */
  int64_t (*copy_ns)(const void* context, uint64_t bytes, uint32_t device);
  /* When the device will be through with what was started there, on the clock of `now_ns`. */
  int64_t (*busy_until_ns)(const void* context, uint32_t device);
  /* Tasks in flight there. */
  uint32_t (*in_flight)(const void* context, uint32_t device);
} amasia_policy_view;

/* How a task ended that was chosen. */
typedef struct amasia_policy_end {
  size_t size;
  uint32_t client;
  uint64_t task;
  uint32_t device;
  int succeeded;
  int64_t run_ns;  /* of the kernel, 0: not known */
  int64_t copy_ns;
} amasia_policy_end;

typedef struct amasia_device_policy {
  size_t size;       /* sizeof(amasia_device_policy) */
  uint32_t abi;      /* AMASIA_DEVICE_POLICY_ABI */
  const char* name;  /* what `amasia top` shows */
  const char* description;

  /* A new state, or NULL with a sentence in `error` (a string of at most error_size bytes with its
     end). `options`: what stands behind the file's name in --policy FILE:OPTIONS, else "". */
  void* (*init)(const char* options, char* error, size_t error_size);
  void (*fini)(void* state);

  /* A device that may be chosen from now on; or, of a number that is known, what it is now. */
  void (*device)(void* state, const amasia_policy_device* device);
  /* A client came, or its weight changed; weight 0: it has gone, with its tasks. May be NULL. */
  void (*client)(void* state, uint32_t client, double weight);

  /* A task joins the line. */
  void (*put)(void* state, const amasia_policy_task* task);
  /* A task leaves the line: as chosen by `next`, or because it was withdrawn. */
  void (*remove)(void* state, uint32_t client, uint64_t task);
  /* The task to start now and its device: 1 with `choice` filled, or 0 for none. Is called again
     until it answers 0. A task that was chosen stays in the line until `remove`. */
  int (*next)(void* state, const amasia_policy_view* view, int64_t now_ns,
              amasia_policy_choice* choice);
  /* A task that was chosen ended. May be NULL. */
  void (*finish)(void* state, const amasia_policy_end* end);
  /* After `next` answered 0: when to ask again although nothing happens, or -1. May be NULL. */
  int64_t (*ask_again_at)(void* state);
} amasia_device_policy;

/* What the shared object exports. */
typedef const amasia_device_policy* (*amasia_device_policy_entry_function)(void);
#define AMASIA_DEVICE_POLICY_ENTRY "amasia_device_policy_entry"
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
const amasia_device_policy* amasia_device_policy_entry(void);

#ifdef __cplusplus
}
#endif

#endif
