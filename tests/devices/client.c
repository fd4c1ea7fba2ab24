/* SPDX-License-Identifier: Apache-2.0 */
/* A program that others kill, or whose daemon they kill.
   client work N     N rounds of checked work; prints "client: N rounds" and ends with 0.
   client for-ever   the same without end, with everything that a program can hold.
   client lost       prints "ready", waits for a line (the daemon is killed meanwhile), expects that
                     the tasks that it has put fail with MCL_ERR_SRVCOMM, and that later ones work.
   client idle       prints "ready" and waits for a line.
   client shared NAME PROCESS TASK   waits for the other's task and checks its shared buffer. */
#include <amasia/mcl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSize = 500 };
static uint64_t whole[3] = {kSize, 1, 1}, one[3] = {1, 1, 1};

static int add_one(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  long* v = args[0];
  (void)nargs;
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) ++v[i];
  return 0;
}
static int sleeps(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  (void)range, (void)nargs;
  usleep(*(const int*)args[0]);
  return 0;
}

static int complain(const char* what, long number) {
  printf("client: %s %ld (%s)\n", what, number, mcl_reason());
  return 1;
}

static int round_of_work(long* v, int resident) {
  enum { kTasks = 4 };
  mcl_handle* tasks[kTasks];
  long before = v[0];
  for (int i = 0; i < kTasks; ++i) {
    tasks[i] = mcl_task_create();
    if (tasks[i] == NULL || mcl_task_set_kernel(tasks[i], "add_one", 1) != 0 ||
        mcl_task_set_arg(tasks[i], 0, v, kSize * sizeof *v,
                         MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT |
                             (resident ? MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC : 0)) != 0 ||
        mcl_exec_with_dependencies(tasks[i], whole, NULL, MCL_TASK_ANY, i > 0,
                                   i > 0 ? &tasks[i - 1] : NULL) != 0) {
      return complain("task cannot be submitted:", i);
    }
  }
  for (int i = kTasks - 1; i >= 0; --i) {
    const int result = mcl_wait_for(tasks[i], UINT64_MAX);
    if (result != 0) return complain(mcl_strerror(result), i);
    mcl_hdl_free(tasks[i]);
  }
  for (int i = 0; i < kSize; ++i) {
    if (v[i] != before + kTasks) return complain("wrong number", v[i]);
  }
  return 0;
}

static int work(long rounds) {
  // Tasks may be left in them where a round fails.
  static long v[kSize], kept[kSize];
  for (long i = 0; rounds < 0 || i < rounds; ++i) {
    if (round_of_work(v, 0) != 0 || round_of_work(kept, 1) != 0) return 1;
  }
  mcl_unregister_buffer(kept);
  printf("client: %ld rounds\n", rounds);
  return 0;
}

static mcl_handle* slow_task(int microseconds) {
  mcl_handle* task = mcl_task_create();
  mcl_task_set_kernel(task, "sleeps", 1);
  mcl_task_set_arg(task, 0, &microseconds, sizeof microseconds, MCL_ARG_SCALAR);
  if (mcl_exec(task, one, NULL, MCL_TASK_ANY) != 0) complain("slow task", microseconds);
  return task;
}

static int lost(void) {
  enum { kTasks = 64 };
  mcl_handle* tasks[kTasks];
  char line[8];
  int failed = 0, ended = 0;
  for (int i = 0; i < kTasks; ++i) tasks[i] = slow_task(50000);
  printf("ready\n");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  for (int i = 0; i < kTasks; ++i) {
    const int result = mcl_wait_for(tasks[i], UINT64_MAX);
    failed += result == -MCL_ERR_SRVCOMM && strlen(mcl_task_reason(tasks[i])) > 10;
    ended += result == 0;
    mcl_hdl_free(tasks[i]);
  }
  if (failed == 0 || failed + ended != kTasks) return complain("tasks failed:", failed);
  return work(3);
}

static int shared(const char* name, int process, int task) {
  long* v = mcl_get_shared_buffer(name, kSize * sizeof *v, 0);
  if (v == NULL) return complain("no shared buffer", 0);
  if (mcl_wait_shared_hdl(process, (uint32_t)task) != 0) return complain("shared task", task);
  if (mcl_test_shared_hdl(process, (uint32_t)task) != MCL_REQ_COMPLETED) return complain("test", 0);
  for (int i = 0; i < kSize; ++i) {
    if (v[i] != 1) return complain("wrong shared number", v[i]);
  }
  if (mcl_wait_shared_hdl(process, 4711) != -MCL_ERR_INVREQ) return complain("unknown task", 0);
  mcl_free_shared_buffer(v);
  printf("client: shared\n");
  return 0;
}

/* Makes a shared buffer, says who and which, and submits the task when told to. */
static int sharing(const char* name) {
  char line[8];
  long* v = mcl_get_shared_buffer(name, kSize * sizeof *v, MCL_SHARED_MEM_NEW);
  mcl_handle* task = mcl_task_create_with_props(MCL_HDL_SHARED);
  if (v == NULL || task == NULL) return complain("cannot share", 0);
  if (mcl_get_shared_buffer("of nobody", 8, 0) != NULL) return complain("found", 0);
  mcl_task_set_kernel(task, "add_one", 1);
  mcl_task_set_arg(task, 0, v, kSize * sizeof *v,
                   MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT | MCL_ARG_SHARED);
  printf("ready %d %u\n", getpid(), mcl_task_get_sharing_id(task));
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  if (mcl_exec(task, whole, NULL, MCL_TASK_ANY) != 0 || mcl_wait(task) != 0) {
    return complain("task", 0);
  }
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  mcl_free_shared_buffer(v); /* others find it as long as this process stays */
  printf("freed\n");
  fflush(stdout);
  if (fgets(line, sizeof line, stdin) == NULL) return 1;
  mcl_hdl_free(task);
  return 0;
}

int main(int argc, char** argv) {
  const char* what = argc > 1 ? argv[1] : "";
  int result = 2;
  if (mcl_init(2, 0) != 0) {
    printf("mcl_init: %s\n", mcl_reason());
    return 1;
  }
  mcl_prg_add_host("add_one", add_one);
  mcl_prg_add_host("sleeps", sleeps);
  if (strcmp(what, "work") == 0) result = work(atol(argv[2]));
  if (strcmp(what, "for-ever") == 0) {
    void* held = mcl_get_shared_buffer("held", 4096, MCL_SHARED_MEM_NEW);
    if (held == NULL) complain("held", 0);
    mcl_task_create_with_props(MCL_HDL_SHARED);
    printf("ready\n");
    fflush(stdout);
    result = work(-1);
  }
  if (strcmp(what, "lost") == 0) result = lost();
  if (strcmp(what, "idle") == 0) {
    work(1);
    printf("ready\n");
    fflush(stdout);
    result = getchar() == EOF;
  }
  if (strcmp(what, "shared") == 0) result = shared(argv[2], atoi(argv[3]), atoi(argv[4]));
  if (strcmp(what, "sharing") == 0) result = sharing(argv[2]);
  mcl_finit();
  return result;
}
