/* SPDX-License-Identifier: Apache-2.0 */
/* One program, all of the C interface that needs no device but the host's cores. Prints what does
   not hold and ends with 1; prints "tasks: all is well" otherwise. Says on the standard error when
   it begins what, for the case that it does not come back. Nothing may depend on how soon a thread
   gets a core. */
#include <amasia/mcl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int wrong;
#define EXPECT(condition)                                                              \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      printf("%s:%d: %s (reason: %s)\n", __FILE__, __LINE__, #condition, mcl_reason()); \
      wrong = 1;                                                                       \
    }                                                                                  \
  } while (0)

static void run(const char* name, void (*check)(void)) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(stderr, "%lld.%03ld process %d: %s\n", (long long)now.tv_sec, now.tv_nsec / 1000000,
          getpid(), name);
  check();
}
#define RUN(check) run(#check, check)

static int saxpy(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  const float a = *(const float*)args[0];
  const float* x = args[1];
  float* y = args[2];
  if (nargs != 3) return 1;
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) y[i] += a * x[i];
  return 0;
}
static int add_one(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  long* v = args[0];
  (void)nargs;
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) ++v[i];
  return 0;
}
static int fails(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  (void)range, (void)args, (void)nargs;
  return 7;
}
static int sleeps(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  (void)range, (void)nargs;
  usleep(*(const int*)args[0]);
  return 0;
}
static atomic_int may_end;
static int stays(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  (void)range, (void)args, (void)nargs;
  while (!may_end) usleep(100);
  return 0;
}
/* Each work item of a group of eight writes the group's sum: through memory of the group. */
static int sums(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  const long* in = args[0];
  long* out = args[1];
  long* local = args[2];
  (void)nargs;
  if (range->end[0] - range->begin[0] != range->local[0]) return 2;
  local[0] = 0;
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) local[0] += in[i];
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) out[i] = local[0];
  return 0;
}

enum { kSize = 10000 };
static uint64_t whole[3] = {kSize, 1, 1}, one[3] = {1, 1, 1};

static mcl_handle* chain_link(long* v, mcl_handle** after, uint64_t count, uint64_t flags) {
  mcl_handle* task = mcl_task_create();
  EXPECT(mcl_task_set_kernel(task, "add_one", 1) == 0);
  EXPECT(mcl_task_set_arg(task, 0, v, kSize * sizeof *v,
                          MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT | flags) == 0);
  EXPECT(mcl_exec_with_dependencies(task, whole, NULL, MCL_TASK_ANY, count, after) == 0);
  return task;
}

static void check_saxpy(void) {
  float *x = malloc(kSize * sizeof *x), *y = malloc(kSize * sizeof *y), a = 2;
  for (int i = 0; i < kSize; ++i) x[i] = (float)i, y[i] = 1;
  mcl_handle* task = mcl_task_create();
  EXPECT(mcl_task_state(task) == MCL_STATE_CREATED);
  EXPECT(mcl_test(task) == MCL_REQ_ALLOCATED);
  EXPECT(mcl_task_set_kernel(task, "saxpy", 3) == 0);
  EXPECT(mcl_task_set_arg(task, 0, &a, sizeof a, MCL_ARG_SCALAR | MCL_ARG_INPUT) == 0);
  EXPECT(mcl_task_set_arg(task, 1, x, kSize * sizeof *x, MCL_ARG_BUFFER | MCL_ARG_INPUT) == 0);
  EXPECT(mcl_task_set_arg(task, 2, y, kSize * sizeof *y,
                          MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT) == 0);
  a = 99; /* it was copied */
  EXPECT(mcl_exec(task, whole, NULL, MCL_TASK_CPU) == 0);
  EXPECT(mcl_wait(task) == 0);
  EXPECT(task->status == MCL_REQ_COMPLETED && task->ret == MCL_RET_SUCCESS);
  EXPECT(mcl_task_state(task) == MCL_STATE_TERMINATED);
  EXPECT(mcl_task_device(task) >= 0);
  for (int i = 0; i < kSize; ++i) EXPECT(y[i] == 1 + 2 * (float)i);
  EXPECT(mcl_exec(task, whole, NULL, MCL_TASK_CPU) == -MCL_ERR_INVREQ);
  EXPECT(mcl_hdl_free(task) == 0);
  EXPECT(mcl_hdl_free(task) == -MCL_ERR_INVREQ);
  free(x);
  free(y);
}

static void check_dependencies(void) {
  enum { kChain = 100 };
  for (int resident = 0; resident < 2; ++resident) {
    long* v = calloc(kSize, sizeof *v);
    mcl_handle* chain[kChain];
    for (int i = 0; i < kChain; ++i) {
      chain[i] = chain_link(v, chain, (uint64_t)i,
                            resident ? MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC : 0);
    }
    EXPECT(mcl_wait_all() == 0);
    EXPECT(mcl_test_all() == 0);
    for (int i = 0; i < kSize; ++i) EXPECT(v[i] == kChain);
    for (int i = 0; i < kChain; ++i) {
      EXPECT(mcl_wait(chain[i]) == 0);
      mcl_hdl_free(chain[i]);
    }
    if (resident) EXPECT(mcl_unregister_buffer(v) == 0);
    free(v);
  }
}

static void check_failures(void) {
  long* v = calloc(kSize, sizeof *v);
  mcl_handle* bad = mcl_task_create();
  EXPECT(mcl_task_set_kernel(bad, "fails", 0) == 0);
  EXPECT(mcl_exec(bad, one, NULL, MCL_TASK_ANY) == 0);
  mcl_handle* next = chain_link(v, &bad, 1, 0);
  mcl_handle* last = chain_link(v, &next, 1, 0);
  EXPECT(mcl_wait(last) == -MCL_ERR_DEPEND);
  EXPECT(mcl_task_state(last) == MCL_STATE_FAILED && last->ret == MCL_RET_ERROR);
  EXPECT(mcl_wait(bad) == -MCL_ERR_EXEC);
  EXPECT(strstr(mcl_task_reason(bad), "returned 7") != NULL);
  EXPECT(strstr(mcl_task_reason(last), "returned 7") != NULL);
  EXPECT(mcl_task_error(next) == -MCL_ERR_DEPEND);
  mcl_handle* late = chain_link(v, &bad, 1, 0);
  EXPECT(mcl_wait(late) == -MCL_ERR_DEPEND);
  /* The reason of a long row of them is that of one. */
  for (int i = 0; i < 50; ++i) {
    mcl_handle* later = chain_link(v, &late, 1, 0);
    mcl_hdl_free(late);
    late = later;
  }
  EXPECT(mcl_wait(late) == -MCL_ERR_DEPEND);
  EXPECT(strstr(mcl_task_reason(late), "returned 7") != NULL);
  EXPECT(strlen(mcl_task_reason(late)) < 2 * strlen(mcl_task_reason(last)));
  EXPECT(v[0] == 0);
  mcl_hdl_free(bad), mcl_hdl_free(next), mcl_hdl_free(last), mcl_hdl_free(late);
  free(v);
}

struct told {
  atomic_int times;
  int error;
  char reason[200];
};
static void tell(void* context, int error, const char* reason) {
  struct told* told = context;
  told->error = error;
  snprintf(told->reason, sizeof told->reason, "%s", reason);
  told->times++;
}

/* Told of the end: of a task that ends well, of one that fails, of one that depends on it and is
   failed by the submission itself. mcl_wait_all returns after all that. */
static void check_told_of_ends(void) {
  struct told good = {0}, bad = {0}, late = {0};
  long* v = calloc(kSize, sizeof *v);
  mcl_handle *works = mcl_task_create(), *fails_now = mcl_task_create(), *after = mcl_task_create();
  EXPECT(mcl_task_set_kernel(works, "add_one", 1) == 0);
  EXPECT(mcl_task_set_arg(works, 0, v, kSize * sizeof *v,
                          MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT) == 0);
  EXPECT(mcl_task_on_end(works, tell, &good) == 0);
  EXPECT(mcl_exec(works, whole, NULL, MCL_TASK_ANY) == 0);
  EXPECT(mcl_task_on_end(works, tell, &good) == -MCL_ERR_INVREQ);
  EXPECT(mcl_task_set_kernel(fails_now, "fails", 0) == 0);
  EXPECT(mcl_task_on_end(fails_now, tell, &bad) == 0);
  EXPECT(mcl_exec(fails_now, one, NULL, MCL_TASK_ANY) == 0);
  EXPECT(mcl_wait_all() == 0);
  EXPECT(good.times == 1 && good.error == 0 && good.reason[0] == '\0');
  EXPECT(bad.times == 1 && bad.error == -MCL_ERR_EXEC && strstr(bad.reason, "returned 7"));
  EXPECT(mcl_task_set_kernel(after, "fails", 0) == 0);
  EXPECT(mcl_task_on_end(after, tell, &late) == 0);
  EXPECT(mcl_exec_with_dependencies(after, one, NULL, MCL_TASK_ANY, 1, &fails_now) == 0);
  EXPECT(late.times == 1 && late.error == -MCL_ERR_DEPEND && strstr(late.reason, "returned 7"));
  for (int i = 0; i < kSize; ++i) EXPECT(v[i] == 1);
  mcl_hdl_free(works), mcl_hdl_free(fails_now), mcl_hdl_free(after);
  EXPECT(mcl_task_on_end(works, tell, &good) == -MCL_ERR_INVREQ);
  free(v);
}

/* Who has freed the handle may end what the function works on. */
static atomic_int is_telling, has_told;
static void tell_slowly(void* context, int error, const char* reason) {
  (void)context, (void)error, (void)reason;
  is_telling = 1;
  usleep(20000);
  has_told = 1;
}
static void check_freed_while_told(void) {
  long v = 0;
  mcl_handle* task = mcl_task_create();
  EXPECT(mcl_task_set_kernel(task, "add_one", 1) == 0);
  EXPECT(mcl_task_set_arg(task, 0, &v, sizeof v,
                          MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT) == 0);
  EXPECT(mcl_task_on_end(task, tell_slowly, NULL) == 0);
  EXPECT(mcl_exec(task, one, NULL, MCL_TASK_ANY) == 0);
  while (!is_telling) usleep(100);
  EXPECT(mcl_hdl_free(task) == 0);
  EXPECT(has_told);
}

static void check_time_out(void) {
  mcl_handle* slow = mcl_task_create();
  EXPECT(mcl_task_set_kernel(slow, "stays", 0) == 0);
  EXPECT(mcl_exec(slow, one, NULL, MCL_TASK_ANY) == 0);
  EXPECT(mcl_wait_for(slow, 1000000) == -MCL_ERR_TIMEOUT);
  EXPECT(mcl_wait_for(slow, 0) == -MCL_ERR_TIMEOUT);
  EXPECT(mcl_test_all() == 1);
  may_end = 1;
  EXPECT(mcl_wait_for(slow, UINT64_MAX) == 0);
  EXPECT(mcl_test(slow) == MCL_REQ_COMPLETED);
  mcl_hdl_free(slow);
}

static void check_mistakes(void) {
  long v[8] = {0};
  uint64_t zero[3] = {1, 0, 1}, eight[3] = {8, 1, 1}, three[3] = {3, 1, 1};
  EXPECT(mcl_task_set_kernel(NULL, "add_one", 1) == -MCL_ERR_INVREQ);
  mcl_handle* task = mcl_task_create();
  EXPECT(mcl_task_set_kernel(task, "unheard of", 1) == -MCL_ERR_INVKER);
  EXPECT(mcl_exec(task, one, NULL, 0) == -MCL_ERR_INVKER);
  EXPECT(mcl_exec(task, zero, NULL, 0) == -MCL_ERR_INVPES);
  EXPECT(mcl_exec(task, eight, three, 0) == -MCL_ERR_INVPES);
  EXPECT(mcl_wait(task) == -MCL_ERR_INVTSK);
  EXPECT(mcl_task_set_kernel(task, "add_one", 1) == 0);
  EXPECT(mcl_task_set_arg(task, 1, v, sizeof v, MCL_ARG_BUFFER) == -MCL_ERR_INVARG);
  EXPECT(mcl_task_set_arg(task, 0, NULL, sizeof v, MCL_ARG_BUFFER) == -MCL_ERR_INVARG);
  EXPECT(mcl_task_set_arg(task, 0, v, sizeof v, MCL_ARG_BUFFER | MCL_ARG_SCALAR) ==
         -MCL_ERR_INVARG);
  EXPECT(mcl_exec(task, eight, NULL, 0) == -MCL_ERR_ARGCOUNT);
  EXPECT(mcl_task_set_arg(task, 0, v, sizeof v, MCL_ARG_BUFFER | MCL_ARG_OUTPUT) == 0);
  EXPECT(mcl_exec(task, zero, NULL, 0) == -MCL_ERR_INVPES);
  EXPECT(mcl_exec(task, eight, three, 0) == -MCL_ERR_INVPES);
  EXPECT(mcl_exec(task, eight, NULL, MCL_TASK_DF) == -MCL_ERR_INVDEV);
  EXPECT(strstr(mcl_reason(), "add_one") != NULL);
  EXPECT(mcl_task_set_arg(task, 0, v, (size_t)1 << 60, MCL_ARG_BUFFER) == 0);
  EXPECT(mcl_exec(task, eight, NULL, 0) == -MCL_ERR_DEVMEM);
  EXPECT(mcl_hdl_free(task) == 0);
  EXPECT(mcl_test(task) == -MCL_ERR_INVREQ);
  EXPECT(mcl_prg_load("/nowhere/kernels.so", NULL, MCL_PRG_HOST) == -MCL_ERR_INVPRG);
  EXPECT(mcl_prg_load("/proc/self/exe", NULL, MCL_PRG_CUDA) == -MCL_ERR_INVPRG);
  EXPECT(strstr(mcl_reason(), "CUDA") != NULL);
  for (int error = 0; error <= MCL_ERR_LAST; ++error) {
    EXPECT(mcl_strerror(-error) == mcl_strerror(error) && strlen(mcl_strerror(error)) > 5);
  }
  EXPECT(mcl_unregister_buffer(v) == -MCL_ERR_RESDATA);
  EXPECT(mcl_register_buffer(v, sizeof v, MCL_ARG_BUFFER) == 0);
  EXPECT(mcl_register_buffer(v + 4, sizeof v, MCL_ARG_BUFFER) == -MCL_ERR_RESDATA);
  EXPECT(mcl_invalidate_buffer(v) == 0);
  EXPECT(mcl_unregister_buffer(v) == 0);
}

static void check_parts_and_transfers(void) {
  long *in = malloc(kSize * sizeof *in), *out = calloc(kSize, sizeof *out);
  uint64_t group[3] = {8, 1, 1};
  for (int i = 0; i < kSize; ++i) in[i] = i;
  EXPECT(mcl_register_buffer(in, kSize * sizeof *in, MCL_ARG_BUFFER | MCL_ARG_RESIDENT) == 0);
  mcl_transfer* transfer = mcl_transfer_create(1, 1, 0);
  EXPECT(mcl_transfer_set_arg(transfer, 0, in, kSize * sizeof *in, 0, MCL_ARG_INPUT) == 0);
  EXPECT(mcl_transfer_exec(transfer, MCL_TASK_ANY) == 0);
  EXPECT(mcl_transfer_wait(transfer) == 0);
  EXPECT(mcl_transfer_test(transfer) == MCL_REQ_COMPLETED);
  EXPECT(mcl_transfer_free(transfer) == 0);
  mcl_handle* task = mcl_task_create();
  EXPECT(mcl_task_set_kernel(task, "sums", 3) == 0);
  EXPECT(mcl_task_set_arg(task, 0, in, kSize * sizeof *in,
                          MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_INPUT) == 0);
  EXPECT(mcl_task_set_arg(task, 1, out, kSize * sizeof *out, MCL_ARG_BUFFER | MCL_ARG_OUTPUT) ==
         0);
  EXPECT(mcl_task_set_arg(task, 2, NULL, sizeof *in, MCL_ARG_LOCAL) == 0);
  EXPECT(mcl_exec(task, whole, group, MCL_TASK_ANY) == 0);
  EXPECT(mcl_wait(task) == 0);
  for (int i = 0; i < kSize; ++i) EXPECT(out[i] == 8L * (i / 8 * 8) + 28);
  mcl_hdl_free(task);
  /* A part of a registered buffer, at an odd offset. */
  task = mcl_task_create();
  uint64_t five[3] = {5, 1, 1};
  EXPECT(mcl_task_set_kernel(task, "add_one", 1) == 0);
  EXPECT(mcl_task_set_arg_buffer(task, 0, in, 2 * sizeof *in, (kSize - 1) * sizeof *in,
                                 MCL_ARG_BUFFER | MCL_ARG_RESIDENT) == -MCL_ERR_INVARG);
  EXPECT(strstr(mcl_reason(), "are not within the buffer") != NULL);
  EXPECT(mcl_task_set_arg_buffer(task, 0, in, 5 * sizeof *in, 3 * sizeof *in,
                                 MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC) == 0);
  EXPECT(mcl_exec(task, five, NULL, MCL_TASK_ANY) == 0);
  EXPECT(mcl_unregister_buffer(in) == -MCL_ERR_RESDATA || mcl_test(task) == MCL_REQ_COMPLETED);
  EXPECT(mcl_wait(task) == 0);
  mcl_hdl_free(task);
  mcl_unregister_buffer(in);
  for (int i = 0; i < 20; ++i) EXPECT(in[i] == i + (i >= 3 && i < 8));
  free(in);
  free(out);
}

static void check_many(void) {
  enum { kMany = 3000 };
  static mcl_handle* tasks[kMany];
  for (int i = 0; i < kMany; ++i) {
    tasks[i] = mcl_task_create();
    EXPECT(mcl_null(tasks[i]) == 0);
  }
  EXPECT(mcl_wait_all() == 0);
  for (int i = 0; i < kMany; ++i) {
    EXPECT(mcl_test(tasks[i]) == MCL_REQ_COMPLETED);
    mcl_hdl_free(tasks[i]);
  }
}

/* Makes the buffer after another thread has begun to look for it. */
static void* make_late(void* name) {
  usleep(20000);
  return mcl_get_shared_buffer(name, 100, MCL_SHARED_MEM_NEW);
}
/* A thread that gets no core for a second makes it too late. That does not happen all the time. */
static const char* find_late(void** made, void** found) {
  static char names[][8] = {"late 1", "late 2", "late 3", "late 4", "late 5"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
    pthread_t thread;
    EXPECT(pthread_create(&thread, NULL, make_late, names[i]) == 0);
    *found = mcl_get_shared_buffer(names[i], 100, 0);
    EXPECT(pthread_join(thread, made) == 0 && *made != NULL && *made != *found);
    if (*made == NULL) return NULL;
    if (*found != NULL) return names[i];
    mcl_free_shared_buffer(*made);
  }
  return NULL;
}
static void check_shared_buffer(void) {
  void *made = NULL, *found = NULL;
  EXPECT(mcl_get_shared_buffer("of nobody", 8, 0) == NULL);
  const char* const name = find_late(&made, &found);
  EXPECT(name != NULL);
  if (name == NULL) return;
  EXPECT(mcl_invalidate_buffer(made) == 0 && mcl_register_buffer(made, 100, 0) == 0);
  memset(made, 5, 100);
  EXPECT(((char*)found)[99] == 5);
  EXPECT(mcl_get_shared_buffer(name, 200, 0) == NULL); /* it is smaller: no wait */
  EXPECT(mcl_get_shared_buffer("huge", (size_t)1 << 50, MCL_SHARED_MEM_NEW) == NULL);
  EXPECT(strstr(mcl_reason(), "cannot have 1125899906842624 bytes of shared memory") != NULL);
  mcl_free_shared_buffer(made);
  mcl_free_shared_buffer(found);
}

/* Parts of a shared buffer are parts of one buffer from the start: the second one, beyond the
   first, does not find it in use and too small. */
static void check_parts_of_a_shared_buffer(void) {
  enum { kHalf = 50 };
  uint64_t half[3] = {kHalf, 1, 1};
  int microseconds = 20000;
  long* v = mcl_get_shared_buffer("parts", 2 * kHalf * sizeof *v, MCL_SHARED_MEM_NEW);
  mcl_handle *slow = mcl_task_create(), *parts[2];
  EXPECT(v != NULL);
  if (v == NULL) return;
  EXPECT(mcl_task_set_kernel(slow, "sleeps", 1) == 0);
  EXPECT(mcl_task_set_arg(slow, 0, &microseconds, sizeof microseconds, MCL_ARG_SCALAR) == 0);
  EXPECT(mcl_exec(slow, one, NULL, MCL_TASK_ANY) == 0);
  for (int i = 0; i < 2; ++i) {
    parts[i] = mcl_task_create();
    EXPECT(mcl_task_set_kernel(parts[i], "add_one", 1) == 0);
    EXPECT(mcl_task_set_arg_buffer(parts[i], 0, v, kHalf * sizeof *v,
                                   (off_t)(i * kHalf * sizeof *v),
                                   MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC |
                                       MCL_ARG_SHARED | MCL_ARG_INPUT | MCL_ARG_OUTPUT) == 0);
    EXPECT(mcl_exec_with_dependencies(parts[i], half, NULL, MCL_TASK_ANY, 1, &slow) == 0);
  }
  EXPECT(mcl_wait(parts[0]) == 0 && mcl_wait(parts[1]) == 0 && mcl_wait(slow) == 0);
  for (int i = 0; i < 2 * kHalf; ++i) EXPECT(v[i] == 1);
  mcl_hdl_free(slow), mcl_hdl_free(parts[0]), mcl_hdl_free(parts[1]);
  mcl_free_shared_buffer(v);
}

/* More resident arguments than a few: each task adds 1 to all of them. */
static int add_to_all(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  for (uint64_t a = 0; a < nargs; ++a) {
    for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) ++((long*)args[a])[i];
  }
  return 0;
}
static void check_many_resident_arguments(void) {
  enum { kArguments = 100, kItems = 8, kTasks = 3 };
  static long v[kArguments][kItems];
  uint64_t items[3] = {kItems, 1, 1};
  mcl_handle* tasks[kTasks];
  EXPECT(mcl_prg_add_host("add_to_all", add_to_all) == 0);
  for (int t = 0; t < kTasks; ++t) {
    tasks[t] = mcl_task_create();
    EXPECT(mcl_task_set_kernel(tasks[t], "add_to_all", kArguments) == 0);
    for (uint64_t a = 0; a < kArguments; ++a) {
      EXPECT(mcl_task_set_arg(tasks[t], a, v[a], sizeof v[a],
                              MCL_ARG_BUFFER | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC |
                                  MCL_ARG_INPUT | MCL_ARG_OUTPUT) == 0);
    }
    EXPECT(mcl_exec_with_dependencies(tasks[t], items, NULL, MCL_TASK_ANY, (uint64_t)t, tasks) ==
           0);
  }
  EXPECT(mcl_wait_all() == 0);
  for (int t = 0; t < kTasks; ++t) mcl_hdl_free(tasks[t]);
  for (int a = 0; a < kArguments; ++a) {
    for (int i = 0; i < kItems; ++i) EXPECT(v[a][i] == kTasks);
    EXPECT(mcl_unregister_buffer(v[a]) == 0);
  }
}

/* Not RESIDENT, but INVALID: the host's bytes, however many, of a buffer that is registered. */
static void check_invalid_argument(void) {
  long* v = calloc(kSize, sizeof *v);
  EXPECT(mcl_register_buffer(v, 8 * sizeof *v, MCL_ARG_BUFFER | MCL_ARG_RESIDENT) == 0);
  mcl_handle* task = chain_link(v, NULL, 0, MCL_ARG_INVALID);
  EXPECT(mcl_wait(task) == 0);
  for (int i = 0; i < kSize; ++i) EXPECT(v[i] == 1);
  mcl_hdl_free(task);
  EXPECT(mcl_unregister_buffer(v) == 0);
  free(v);
}

/* A child of fork has no threads of ours, so no session either; it may begin one of its own. */
static void check_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    EXPECT(mcl_wait_all() == -MCL_ERR_NOINIT);
    EXPECT(mcl_task_create() == NULL);
    EXPECT(mcl_finit() == -MCL_ERR_NOINIT);
    EXPECT(mcl_init(1, 0) == 0);
    EXPECT(mcl_prg_add_host("add_one", add_one) == 0);
    RUN(check_many);
    EXPECT(mcl_finit() == 0);
    fflush(stdout);
    _exit(wrong);
  }
  int status = -1;
  EXPECT(waitpid(child, &status, 0) == child && status == 0);
  RUN(check_many);
}

int main(void) {
  setvbuf(stdout, NULL, _IOLBF, 0); /* what was said before a crash counts */
  EXPECT(mcl_wait_all() == -MCL_ERR_NOINIT);
  EXPECT(mcl_init(0, 0) == -MCL_ERR_INVARG);
  if (mcl_init(2, 0) != 0) {
    printf("mcl_init: %s\n", mcl_reason());
    return 1;
  }
  EXPECT(mcl_init(2, 0) == 1);
  EXPECT(mcl_get_ndev() >= 1);
  mcl_dev_info device;
  EXPECT(mcl_get_dev(mcl_get_ndev(), &device) == -MCL_ERR_INVDEV);
  EXPECT(mcl_get_dev(0, &device) == 0);
  EXPECT(device.pes >= 1 && device.wisize[0] >= 1);
  free(device.wisize);
  EXPECT(mcl_prg_add_host("saxpy", saxpy) == 0);
  EXPECT(mcl_prg_add_host("add_one", add_one) == 0);
  EXPECT(mcl_prg_add_host("fails", fails) == 0);
  EXPECT(mcl_prg_add_host("sleeps", sleeps) == 0);
  EXPECT(mcl_prg_add_host("stays", stays) == 0);
  EXPECT(mcl_prg_add_host("sums", sums) == 0);
  EXPECT(mcl_set_timeout(UINT64_MAX) == 0); /* who runs the test limits its time */
  RUN(check_saxpy);
  RUN(check_dependencies);
  RUN(check_failures);
  RUN(check_told_of_ends);
  RUN(check_freed_while_told);
  RUN(check_time_out);
  RUN(check_mistakes);
  RUN(check_parts_and_transfers);
  RUN(check_many_resident_arguments);
  RUN(check_invalid_argument);
  RUN(check_shared_buffer);
  RUN(check_parts_of_a_shared_buffer);
  RUN(check_many);
  RUN(check_child);
  EXPECT(mcl_finit() == 0);
  EXPECT(mcl_finit() == -MCL_ERR_NOINIT);
  EXPECT(mcl_init(1, 0) == 0); /* again */
  RUN(check_many);
  EXPECT(mcl_finit() == 0);
  if (!wrong) printf("tasks: all is well\n");
  return wrong;
}
