/* SPDX-License-Identifier: Apache-2.0 */
/* A program in a storm (storm_test.py): others are killed around it, and so are its daemons.
   storm_client until-told SEED     rounds of checked work until its standard input ends
   storm_client rounds SEED N       so many rounds
   storm_client for-ever SEED       the same without end, holding all that a program can hold
   A task may fail for one reason only: the daemon ended while the task was in its hands, or a task
   that it depends on has failed so. One that failed never ran: each buffer has counted exactly the
   tasks that succeeded. Prints "storm: R rounds, T tasks, F lost" and ends with 0. */
#include <amasia/mcl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kSize = 300, kBuffers = 6, kMostTasks = 48 };
/* Far above what anything takes under load: what is not done then hangs. */
static const uint64_t kLimit = 100 * 1000000000ULL;
static uint64_t whole[3] = {kSize, 1, 1};
static long buffers[kBuffers][kSize], expected[kBuffers];
static mcl_handle* tasks[kMostTasks];
static int adds_to[kMostTasks];
static uint64_t random_state;
static long all_tasks, lost_tasks;

static unsigned pick(unsigned below) { /* splitmix64 */
  uint64_t z = (random_state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return (unsigned)((z ^ (z >> 31)) % below);
}

static int add_one(const mcl_host_range* range, void* const* args, uint64_t nargs) {
  long* v = args[0];
  for (uint64_t i = range->begin[0]; i < range->end[0]; ++i) ++v[i];
  if (nargs > 1 && *(const int*)args[1] > 0) usleep((unsigned)*(const int*)args[1]);
  return 0;
}

static int complain(const char* what, long number) {
  printf("storm: %s %ld (%s)\n", what, number, mcl_reason());
  return 1;
}

/* Odd buffers stay on devices; of those, 1 comes back with each task, 3 and 5 when asked for. */
static uint64_t flags_of(int buffer) {
  const uint64_t flags = MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT;
  if (buffer % 2 == 0) return flags;
  if (buffer == 1) return flags | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC;
  return MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_RESIDENT | MCL_ARG_DYNAMIC;
}

/* Task `i` comes after the last one of its buffer and now and then after any other. */
static int submit(int i, int* last, uint64_t properties) {
  const int buffer = (int)pick(kBuffers);
  int microseconds = pick(8) == 0 ? (int)pick(2000) : 0;
  mcl_handle* after[2];
  uint64_t count = 0;
  adds_to[i] = buffer;
  tasks[i] = mcl_task_create_with_props(properties);
  if (tasks[i] == NULL) return complain("no task", i);
  if (last[buffer] >= 0) after[count++] = tasks[last[buffer]];
  if (i > 0 && pick(4) == 0) after[count++] = tasks[pick((unsigned)i)];
  if (mcl_task_set_kernel(tasks[i], "add_one", 2) != 0 ||
      mcl_task_set_arg(tasks[i], 0, buffers[buffer], sizeof buffers[buffer], flags_of(buffer)) !=
          0 ||
      mcl_task_set_arg(tasks[i], 1, &microseconds, sizeof microseconds, MCL_ARG_SCALAR) != 0 ||
      mcl_task_set_priority(tasks[i], (int)pick(3)) != 0 ||
      mcl_exec_with_dependencies(tasks[i], whole, NULL, MCL_TASK_ANY, count, after) != 0) {
    return complain("cannot be submitted: task", i);
  }
  last[buffer] = i;
  return 0;
}

/* The task's end, in any order. */
static int collect(int i, int* lost) {
  const int result = mcl_wait_for(tasks[i], kLimit);
  if (result == 0) {
    ++expected[adds_to[i]];
  } else if (result != -MCL_ERR_SRVCOMM && (result != -MCL_ERR_DEPEND)) {
    return complain(mcl_strerror(result), i);
  } else {
    if (strlen(mcl_task_reason(tasks[i])) < 10) return complain("no reason for", i);
    *lost += result == -MCL_ERR_SRVCOMM ? 1 : 0;
    ++lost_tasks;
  }
  ++all_tasks;
  return mcl_hdl_free(tasks[i]) == 0 ? 0 : complain("cannot be freed:", i);
}

static int is_right(int buffer) {
  if (flags_of(buffer) & MCL_ARG_RESIDENT) {
    const int result = mcl_unregister_buffer(buffers[buffer]); /* brings its bytes back */
    if (result != 0 && result != -MCL_ERR_RESDATA) return complain("cannot come back: ", buffer);
  }
  for (int i = 0; i < kSize; ++i) {
    if (buffers[buffer][i] == expected[buffer]) continue;
    printf("storm: buffer %d has %ld at %d after %ld tasks\n", buffer, buffers[buffer][i], i,
           expected[buffer]);
    return 1;
  }
  return 0;
}

static int round_of_work(uint64_t properties) {
  int last[kBuffers], order[kMostTasks], lost = 0;
  const long lost_before = lost_tasks;
  const int count = 1 + (int)pick(kMostTasks);
  memset(last, -1, sizeof last);
  for (int i = 0; i < count; ++i) {
    if (submit(i, last, properties) != 0) return 1;
    const int other = (int)pick((unsigned)i + 1);
    order[i] = order[other];
    order[other] = i;
  }
  if (pick(4) == 0 && mcl_wait_all() != 0) return complain("wait_all", 0);
  for (int i = 0; i < count; ++i) {
    if (collect(order[i], &lost) != 0) return 1;
  }
  if (lost_tasks != lost_before && lost == 0) return complain("nothing was lost, and failed:", 0);
  for (int buffer = 0; buffer < kBuffers; ++buffer) {
    if (pick(3) == 0 || (flags_of(buffer) & MCL_ARG_RESIDENT) == 0) {
      if (is_right(buffer) != 0) return 1;
    }
  }
  return 0;
}

static int is_told(void) {
  struct pollfd input = {0, POLLIN, 0};
  return poll(&input, 1, 0) > 0;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const int until_told = strcmp(argv[1], "until-told") == 0;
  const int for_ever = strcmp(argv[1], "for-ever") == 0;
  const long rounds = until_told || for_ever ? -1 : atol(argv[3]);
  char name[32];
  random_state = strtoull(argv[2], NULL, 10);
  int started;
  /* A daemon that ends while we come is another one's turn; some end in a row. */
  for (int i = 0; (started = mcl_init(1 + pick(3), 0)) == -MCL_ERR_SRVCOMM && i < 50;) ++i;
  if (started != 0) return complain("mcl_init", started);
  if (mcl_prg_add_host("add_one", add_one) != 0) return complain("no kernel", 0);
  if (for_ever) {
    snprintf(name, sizeof name, "held %u", pick(3));
    mcl_get_shared_buffer(name, 4096, MCL_SHARED_MEM_NEW); /* the daemon may be gone */
    printf("ready\n");
    fflush(stdout);
  }
  int result = 0;
  long done = 0;
  for (; result == 0 && done != rounds && !(until_told && is_told()); ++done) {
    result = round_of_work(0);
  }
  for (int buffer = 0; result == 0 && buffer < kBuffers; ++buffer) result = is_right(buffer);
  if (result != 0) return result;
  if (mcl_finit() != 0) return complain("mcl_finit", 0);
  printf("storm: %ld rounds, %ld tasks, %ld lost\n", done, all_tasks, lost_tasks);
  return 0;
}
