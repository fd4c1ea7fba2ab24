/* SPDX-License-Identifier: Apache-2.0 */
/* Accelerators of a node, shared by several programs: tasks that name no device (docs/devices.md).
   The interface of the Minos Computing Library (GPGPU'20, table 1), with what its public library
   (pnnl/mcl 0.6) has gained since: same names, values and signatures, so that its programs compile
   unchanged (their `#include <minos.h>` finds amasia/compat/minos.h). What Amasia adds is marked
   "Amasia:".

   Words
     task     one execution of a kernel over a range of work items, on a device that the daemon
              chooses. A handle stands for it from mcl_task_create to mcl_hdl_free.
     buffer   a range of the program's own memory. It is copied to a device and back as its flags
              say. The program keeps it alive and does not write it from mcl_exec until the end.
     resident a buffer whose copies on devices outlive the task, and are used again.

   Rules for all functions
     Threads  Any thread may call any function at any time between mcl_init and mcl_finit. Two
              threads do not use one handle at once, but for mcl_wait and mcl_test. A child of fork
              that wants to use the library calls mcl_init itself; where its parent had done so, it
              has no devices of OpenCL and CUDA, whose drivers do not outlive a fork.
     Blocking mcl_init, mcl_finit, mcl_prg_load, mcl_wait*, mcl_transfer_wait, mcl_hdl_free of a
              running task and mcl_get_shared_buffer wait, asleep. Nothing else waits for a device
              or another program.
     Errors   0 is success. A failure is -MCL_ERR_*, or NULL where a pointer is returned; then
              mcl_reason() has a sentence that names what was wrong. Errors of a task that was
              submitted arrive with its end: mcl_wait, handle->ret, mcl_task_error.
     Units    Sizes and offsets are in bytes, times in nanoseconds, work sizes in work items. */
#ifndef AMASIA_MCL_H
#define AMASIA_MCL_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AMASIA_MCL_VERSION 0x0006 /* of the interface that is followed: 0.6 */

#define MCL_NULL 0x00
#define MCL_DEV_DIMS 0x03 /* dimensions of a range: arrays of work sizes have three entries */
#define MCL_TASK_NAME_LEN 0x40 /* as in the original; no limit here, but traces cut names at 48 */
#define MCL_TIMEOUT 10000000000L /* ns that mcl_wait waits, but for mcl_set_timeout */

/* mcl_init */
#define MCL_START_SCHED 0x01 /* accepted and without effect, as in the original */
#define MCL_STOP_SCHED 0x02
#define MCL_SET_BIND_WORKERS 0x01 /* each worker thread is bound to a core of its own */

/* handle->status, and what mcl_test returns. A task that failed is COMPLETED too, with
   ret == MCL_RET_ERROR: loops that wait for COMPLETED end, as they do with the original.
   mcl_task_state has the paper's four states, with FAILED. */
#define MCL_REQ_COMPLETED 0x00UL
#define MCL_REQ_ALLOCATED 0x01UL  /* created, not submitted */
#define MCL_REQ_PENDING 0x02UL    /* submitted; waits for others, or for a device */
#define MCL_REQ_INPROGRESS 0x03UL /* has a device; is being prepared, inputs are copied */
#define MCL_REQ_EXECUTING 0x04UL  /* its kernel runs */
#define MCL_REQ_FINISHING 0x05UL  /* outputs are copied back */

/* handle->ret; meaningful once the status is MCL_REQ_COMPLETED */
#define MCL_RET_UNDEFINED 0x00UL
#define MCL_RET_SUCCESS 0x01UL
#define MCL_RET_ERROR 0x02UL

/* Device classes, for mcl_exec and mcl_transfer_exec. Strict: the task runs on a device of one of
   the classes named, or fails with MCL_ERR_INVDEV. None named means any. Values are OpenCL's. */
#define MCL_TASK_NONE 0x00
#define MCL_TASK_CPU 0x02
#define MCL_TASK_GPU 0x04
#define MCL_TASK_FPGA 0x08
#define MCL_TASK_DF 0x10
#define MCL_TASK_PROTEUS 0x10
#define MCL_TASK_ANY (MCL_TASK_CPU | MCL_TASK_GPU | MCL_TASK_FPGA | MCL_TASK_DF)
#define MCL_TASK_DFT_FLAGS MCL_TASK_ANY
#define MCL_TASK_TYPE_MASK 0xff
#define MCL_FLAG_NO_RES 0x100 /* place the task as if nothing were resident anywhere */
/* The paper's names, and its softer wish (2.4): any class named, preferably this one. */
#define MCL_CPU MCL_TASK_CPU
#define MCL_GPU MCL_TASK_GPU
#define MCL_ANY MCL_TASK_ANY
#define MCL_FAV_CPU (MCL_TASK_CPU << 16)
#define MCL_FAV_GPU (MCL_TASK_GPU << 16)
#define MCL_FAV_FPGA (MCL_TASK_FPGA << 16)
#define MCL_FAV_MASK (MCL_TASK_TYPE_MASK << 16)

/* Kinds of program, for mcl_prg_load and mcl_task_init: exactly one. */
#define MCL_PRG_NONE 0x01
#define MCL_PRG_SRC 0x02     /* OpenCL C source */
#define MCL_PRG_IR 0x04      /* SPIR-V */
#define MCL_PRG_BIN 0x08     /* a device's own binary: of OpenCL, or cubin, fatbin, PTX for CUDA */
#define MCL_PRG_GRAPH 0x10   /* a graph for an OpenCL device's built-in kernel "dataflow" */
#define MCL_PRG_BUILTIN 0x20 /* built into an OpenCL device; the path is a list of names, a;b;c */
#define MCL_PRG_CUDA 0x40    /* Amasia: CUDA C++ source; kernels are extern "C" */
#define MCL_PRG_HOST 0x80    /* Amasia: a shared object; kernels are functions, mcl_host_kernel */
#define MCL_PRG_MASK 0xff

/* Arguments. Exactly one of SCALAR, BUFFER, LOCAL. */
#define MCL_ARG_INPUT 0x001    /* BUFFER: copied to the device, unless it is there and valid */
#define MCL_ARG_OUTPUT 0x002   /* BUFFER: copied back when the kernel has ended */
#define MCL_ARG_SCALAR 0x004   /* the value is copied now; the address may be reused at once */
#define MCL_ARG_BUFFER 0x008
#define MCL_ARG_RESIDENT 0x010 /* copies on devices stay; read only, unless DYNAMIC */
#define MCL_ARG_INVALID 0x020  /* the host's bytes are newer, the size may have changed; without
                                  RESIDENT this task alone takes them, and copies are stale */
#define MCL_ARG_RDONLY 0x040   /* kernels only read it */
#define MCL_ARG_WRONLY 0x080   /* kernels only write it */
#define MCL_ARG_LOCAL 0x100    /* memory of a work group of `size` bytes; the address is NULL */
#define MCL_ARG_DONE 0x200     /* RESIDENT: copies on devices are freed after it */
#define MCL_ARG_DYNAMIC 0x400  /* RESIDENT: kernels write it; its newest copy moves */
#define MCL_ARG_REWRITE 0x800  /* RESIDENT: the host's bytes are newer, the size is the same */

/* Buffers and handles of several processes. Always there; the original has them as an option. */
#define MCL_SHARED_MEM 1
#define MCL_ARG_SHARED 0x1000
#define MCL_SHARED_MEM_NEW 0x2000     /* mcl_get_shared_buffer makes the buffer */
#define MCL_SHARED_MEM_DEL_OLD 0x4000 /* ... after removing an older one of the same name */
#define MCL_HDL_SHARED 0x01

/* mcl_dev_info.status */
#define MCL_DEV_NONE 0x00
#define MCL_DEV_READY 0x01     /* idle */
#define MCL_DEV_ALLOCATED 0x02 /* runs tasks and takes more */
#define MCL_DEV_ERROR 0x03     /* failed; gets no tasks */
#define MCL_DEV_FULL 0x04      /* takes no more at present */

/* Functions return these negated; mcl_strerror has a sentence for each. */
#define MCL_ERR_INVARG 0x01   /* an argument of the call is not allowed */
#define MCL_ERR_MEMALLOC 0x02 /* no memory on the host */
#define MCL_ERR_INVREQ 0x03   /* no such handle: freed, or submitted already, or never created */
#define MCL_ERR_INVPES 0x04   /* a work size is 0, or local does not divide global */
#define MCL_ERR_INVKER 0x05   /* the task has no kernel, or no program loaded has that kernel */
#define MCL_ERR_INVDEV 0x06   /* no device of the classes asked for can run the task */
#define MCL_ERR_SRVCOMM 0x07  /* no daemon, or it ended while the task was in its hands */
#define MCL_ERR_INVTSK 0x08   /* not a task that can do this now */
#define MCL_ERR_MEMCOPY 0x09  /* a copy to or from the device failed */
#define MCL_ERR_EXEC 0x0a     /* the kernel could not be started, or failed */
#define MCL_ERR_INVPRG 0x0b   /* the program cannot be read, or does not build (reason: the log) */
#define MCL_ERR_RESDATA 0x0c  /* not a buffer that is registered, or it is in use */
/* Amasia: */
#define MCL_ERR_TIMEOUT 0x0d  /* mcl_wait waited its time; the task goes on */
#define MCL_ERR_DEPEND 0x0e   /* a task that this one depends on failed */
#define MCL_ERR_ARGCOUNT 0x0f /* more or fewer arguments set than the kernel has */
#define MCL_ERR_ARGSIZE 0x10  /* an argument's size is not what the kernel takes */
#define MCL_ERR_DEVMEM 0x11   /* more memory than any allowed device has */
#define MCL_ERR_VERSION 0x12  /* the daemon is of another version */
#define MCL_ERR_SOCKET 0x13   /* the daemon's socket: path too long, not allowed to this user, or
                                 of a file that is no socket */
#define MCL_ERR_SHMEM 0x14    /* shared memory is full or refused */
#define MCL_ERR_NOINIT 0x15   /* mcl_init was not called, or failed, or mcl_finit was called */
#define MCL_ERR_QUOTA 0x16    /* beyond what the daemon grants one program */
#define MCL_ERR_LAST MCL_ERR_QUOTA

/* As in the original: the size of a device's name and vendor. */
#ifndef CL_MAX_TEXT
#define CL_MAX_TEXT 256
#endif

typedef struct mcl_device_info {
  uint64_t id;
  char name[CL_MAX_TEXT];
  char vendor[CL_MAX_TEXT];
  uint64_t type;     /* MCL_TASK_CPU, MCL_TASK_GPU, ... */
  uint64_t status;   /* MCL_DEV_* */
  uint64_t mem_size; /* bytes of its global memory */
  uint64_t pes;      /* processing elements that the daemon hands out */
  uint64_t ndims;    /* dimensions of a range, the length of wisize */
  uint64_t wgsize;   /* work items of a work group at most */
  size_t* wisize;    /* at most, per dimension; allocated by mcl_get_dev, the caller frees it */
} mcl_dev_info;

/* The library writes status and ret; the program only reads them, and owns no other field. */
typedef struct mcl_handle_struct {
  uint64_t cmd;
  uint32_t rid;    /* the task's number in this process */
  uint64_t status; /* MCL_REQ_* */
  uint64_t flags;  /* MCL_HDL_SHARED */
  int ret;         /* MCL_RET_* */
} mcl_handle;

typedef struct mcl_transfer_struct {
  uint64_t nargs;
  void** args;
  uint64_t* sizes;
  uint64_t* offsets;
  uint64_t* flags;
  uint64_t ncopies;
  mcl_handle** handles;
} mcl_transfer;

/* ---- Start and end ---- */

/* Connects this process to the daemon, starting one if none runs, and starts `num_workers` (at
   least 1) threads that run its tasks; more, where more devices run kernels in the threads that
   submit them (PoCL's basic). `flags`: 0 or MCL_SET_BIND_WORKERS. Returns 1 where the
   library is started already; -MCL_ERR_INVARG, -MCL_ERR_SRVCOMM, -MCL_ERR_VERSION, -MCL_ERR_SOCKET,
   -MCL_ERR_SHMEM, -MCL_ERR_MEMALLOC. Paper: table 1, 2.2 (workers). */
int mcl_init(uint64_t num_workers, uint64_t flags);

/* Waits for all tasks, frees what is resident, ends the workers and leaves the daemon. Handles and
   shared buffers that are left are void. mcl_init may follow. -MCL_ERR_NOINIT. */
int mcl_finit(void);

/* ---- Devices ---- */

/* Devices of this node, whichever back end they are of. 0 before mcl_init. */
uint32_t mcl_get_ndev(void);

/* Fills `devinfo` for device `devid` in 0 .. mcl_get_ndev()-1, else -MCL_ERR_INVDEV. The caller
   frees devinfo->wisize with free(). Load and status are of the moment. */
int mcl_get_dev(uint32_t devid, mcl_dev_info* devinfo);

/* ---- Programs ---- */

/* Reads the file `prg_path` (MCL_PRG_BUILTIN: a list of names) once and builds it with the
   compiler's options `copts` (may be NULL) for one device of each back end that takes programs of
   the kind `flags`, MCL_PRG_* (0: source); other devices build it when they first run a kernel of
   it. Its kernels can be named from now on; a kernel that several programs have is taken from the
   one loaded first that the task's device can run. Builds are kept on disk
   (docs/device_backends.md).
   -MCL_ERR_INVPRG: not readable, no device for this kind, or it does not build; mcl_reason() then
   holds the compiler's log. */
int mcl_prg_load(char* prg_path, char* copts, unsigned long flags);

/* Amasia: a kernel that runs on the host's cores, called for parts of the range by several threads
   at once, with args in the order in which they were set: a buffer's address, the address of a copy
   of a scalar, the address of memory of the work group for MCL_ARG_LOCAL. A part is made of whole
   work groups where the task has a local size; with LOCAL arguments it is one group. Returns 0, or
   anything else to fail the task with MCL_ERR_EXEC. It must not call this library. */
typedef struct mcl_host_range {
  uint64_t begin[MCL_DEV_DIMS]; /* this part: begin <= i < end, the task's offset included */
  uint64_t end[MCL_DEV_DIMS];
  uint64_t global[MCL_DEV_DIMS]; /* the task: work sizes and offset as given to mcl_exec */
  uint64_t local[MCL_DEV_DIMS];  /* 0 where none was given */
  uint64_t offset[MCL_DEV_DIMS];
} mcl_host_range;
typedef int (*mcl_host_kernel)(const mcl_host_range* range, void* const* args, uint64_t nargs);

/* Amasia: makes `function` the kernel `name` of the host's devices. The name is copied. */
int mcl_prg_add_host(const char* name, mcl_host_kernel function);

/* ---- Tasks ---- */

/* A new task, or NULL. It is used for one execution and freed with mcl_hdl_free.
   `props`: 0 or MCL_HDL_SHARED, for mcl_task_get_sharing_id. */
mcl_handle* mcl_task_create(void);
mcl_handle* mcl_task_create_with_props(uint64_t props);

/* mcl_prg_load (flags: MCL_PRG_*, source if none), mcl_task_create and mcl_task_set_kernel. */
mcl_handle* mcl_task_init(char* prg_path, char* kname, uint64_t nargs, char* copts,
                          unsigned long flags);

/* The kernel that the task runs and how many arguments will be set. -MCL_ERR_INVKER where no
   program has it, -MCL_ERR_ARGCOUNT where it is known to take another number. Finds the kernel in
   the programs that mcl_prg_load has built, at the first call for it. */
int mcl_task_set_kernel(mcl_handle* hdl, char* kname, uint64_t nargs);

/* Argument `argid` (0 .. nargs-1): `size` bytes at `addr`, with MCL_ARG_* flags. */
int mcl_task_set_arg(mcl_handle* hdl, uint64_t argid, void* addr, size_t size, uint64_t flags);

/* The same for `size` bytes at `offset` of the buffer whose address is `addr`, which was registered
   or used before. Any offset and size within it are allowed (the original: multiples of 1024).
   -MCL_ERR_INVARG beyond the end of a buffer that was registered. */
int mcl_task_set_arg_buffer(mcl_handle* hdl, uint64_t argid, void* addr, size_t size, off_t offset,
                            uint64_t flags);

/* Amasia: of two tasks that could start, the one with the higher priority does (default 0; any
   value; a task that waits long gains on others). Before mcl_exec. */
int mcl_task_set_priority(mcl_handle* hdl, int priority);

/* Amasia: has `function(context, error, reason)` called once at the task's end: error 0 and reason
   "", or -MCL_ERR_* and a sentence or the compiler's log, valid during the call. A thread of the
   library's calls it, or the one that submits, with locks held: it may not wait, nor call this
   library, but another thread may mcl_hdl_free from then on. mcl_hdl_free, mcl_wait_all and
   mcl_finit return after it. Before mcl_exec; not called where that returns an error. For
   transfers: on handles[i]. */
typedef void (*mcl_end_function)(void* context, int error, const char* reason);
int mcl_task_on_end(mcl_handle* hdl, mcl_end_function function, void* context);

/* Submits the task and returns at once. Arrays have MCL_DEV_DIMS entries, unused dimensions 1:
   work items; of a work group (NULL: the back end chooses); offset of the first (NULL: 0).
   `flags`: classes (MCL_TASK_*), MCL_FAV_*, MCL_FLAG_NO_RES. The task starts when all
   `ndependencies` tasks of `dep_list` have ended; if one of them fails it fails with MCL_ERR_DEPEND
   (dep_list may be reused at once, its handles may be freed).
   -MCL_ERR_INVARG, INVPES, INVREQ, INVKER, INVDEV, ARGCOUNT, ARGSIZE, DEVMEM, SRVCOMM, QUOTA: then
   nothing was submitted, and the task may be put right. */
int mcl_exec(mcl_handle* hdl, uint64_t* global_work_dims, uint64_t* local_work_dims,
             uint64_t flags);
int mcl_exec2(mcl_handle* hdl, uint64_t* global_work_dims, uint64_t* local_work_dims,
              uint64_t* offset, uint64_t flags);
int mcl_exec_with_dependencies(mcl_handle* hdl, uint64_t* global_work_dims,
                               uint64_t* local_work_dims, uint64_t flags, uint64_t ndependencies,
                               mcl_handle** dep_list);
int mcl_exec2_with_dependencies(mcl_handle* hdl, uint64_t* global_work_dims,
                                uint64_t* local_work_dims, uint64_t* offsets, uint64_t flags,
                                uint64_t ndependencies, mcl_handle** dep_list);

/* Submits a task without a kernel: it goes through the daemon and ends. */
int mcl_null(mcl_handle* hdl);

/* Waits, asleep, until the task has ended: 0, or the error of a task that failed; or
   -MCL_ERR_TIMEOUT after the time set by mcl_set_timeout (MCL_TIMEOUT), when the task goes on and
   may be waited for again. Many threads may wait for one task. */
int mcl_wait(mcl_handle* hdl);

/* Amasia: the same with a time of its own; 0 does not wait, UINT64_MAX waits without end. */
int mcl_wait_for(mcl_handle* hdl, uint64_t timeout_ns);

/* Amasia: the time of mcl_wait, mcl_wait_shared_hdl and mcl_transfer_wait in this process. */
int mcl_set_timeout(uint64_t timeout_ns);

/* Waits without time-out until this process has no task that was submitted and has not ended. 0,
   also where tasks failed; -MCL_ERR_NOINIT. */
int mcl_wait_all(void);

/* The status, MCL_REQ_*, or -MCL_ERR_*. Never waits. */
int mcl_test(mcl_handle* hdl);

/* Paper, 2.1: how many tasks of this process were submitted and have not ended. Never waits. */
int mcl_test_all(void);

/* Frees the handle; a task that was submitted is waited for first. The handle may not be used
   again: it is recognised, most often, and refused with -MCL_ERR_INVREQ. */
int mcl_hdl_free(mcl_handle* hdl);

/* ---- Amasia: states and reasons ---- */

/* The paper's states (2.2). */
enum mcl_state {
  MCL_STATE_CREATED = 0,
  MCL_STATE_RUNNABLE = 1, /* submitted, does not run */
  MCL_STATE_EXECUTING = 2,
  MCL_STATE_TERMINATED = 3,
  MCL_STATE_FAILED = 4
};
int mcl_task_state(mcl_handle* hdl); /* enum mcl_state, or -MCL_ERR_INVREQ */
int mcl_task_error(mcl_handle* hdl); /* 0, or why it failed: -MCL_ERR_* */
int mcl_task_device(mcl_handle* hdl); /* where it ran or runs, or -MCL_ERR_INVTSK before */

/* Why it failed, as a sentence, with the compiler's log where it did not build; "" if it did not
   fail. Valid until mcl_hdl_free. */
const char* mcl_task_reason(mcl_handle* hdl);

/* The reason of the last call that failed in this thread; "" if none. Valid until the next. */
const char* mcl_reason(void);

/* A sentence for an error code, of either sign. Valid for ever; never NULL. */
const char* mcl_strerror(int error);

/* ---- Transfers: tasks that only move buffers ---- */

/* `nargs` buffers onto `ncopies` devices (a hint; at least 1). NULL on failure. */
mcl_transfer* mcl_transfer_create(uint64_t nargs, uint64_t ncopies, uint64_t flags);
/* As mcl_task_set_arg_buffer; MCL_ARG_BUFFER | MCL_ARG_RESIDENT are implied. MCL_ARG_DONE frees the
   copies on devices, MCL_ARG_OUTPUT brings the newest bytes back. */
int mcl_transfer_set_arg(mcl_transfer* t_hdl, uint64_t idx, void* addr, size_t size, off_t offset,
                         uint64_t flags);
int mcl_transfer_exec(mcl_transfer* t_hdl, uint64_t flags);
int mcl_transfer_wait(mcl_transfer* t_hdl);
int mcl_transfer_test(mcl_transfer* t_hdl); /* MCL_REQ_COMPLETED or MCL_REQ_INPROGRESS */
int mcl_transfer_free(mcl_transfer* t_hdl);

/* ---- Buffers ---- */

/* Makes `size` bytes at `buffer` known, so that tasks can use parts of one copy of it.
   `flags`: MCL_ARG_BUFFER | MCL_ARG_RESIDENT, and DYNAMIC, RDONLY, WRONLY. -MCL_ERR_RESDATA where
   it overlaps another one. */
int mcl_register_buffer(void* buffer, size_t size, uint64_t flags);

/* Frees its copies on devices and forgets it. -MCL_ERR_RESDATA: not known, or a task uses it. */
int mcl_unregister_buffer(void* buffer);

/* Copies on devices are void: the host's bytes are newer. The buffer stays known. */
int mcl_invalidate_buffer(void* buffer);

/* ---- Between processes of one user ---- */

/* A number by which another process names this task; handles made with MCL_HDL_SHARED have 0, 1, 2
   ... in the order of their creation. (uint32_t)-1 for another handle. */
uint32_t mcl_task_get_sharing_id(mcl_handle* hdl);

/* As mcl_test and mcl_wait, for the task `hdl_id` of process `pid`; -MCL_ERR_INVREQ where there is
   none (yet). */
int mcl_test_shared_hdl(pid_t pid, uint32_t hdl_id);
int mcl_wait_shared_hdl(pid_t pid, uint32_t hdl_id);

/* Memory of `size` bytes that processes of one user find by `name` (at most 63 bytes, no '/').
   `flags`: MCL_SHARED_MEM_NEW makes it, else it must be there with at least that size, or appear
   within a second; DEL_OLD; MCL_ARG_DYNAMIC and other MCL_ARG_*. The whole is registered, as by
   mcl_register_buffer. NULL on failure. */
void* mcl_get_shared_buffer(const char* name, size_t size, int flags);

/* Unmaps it. It goes when nobody has it mapped and the process that made it has called mcl_finit or
   ended: until then others find it, with what is in it. Made again meanwhile, it is new. */
void mcl_free_shared_buffer(void* address);

#ifdef __cplusplus
}
#endif

#endif
