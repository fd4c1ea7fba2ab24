/* SPDX-License-Identifier: Apache-2.0 */
/* A region in which the last thread says that it is there and then does what the first argument
   says, while all others wait for it:
   stay: nothing more; lock: the same, and has the lock that they want; crash: touches nothing;
   talk: the same, having just written much; begin: the same, having written a part of a line;
   abort: aborts; assert: says so and aborts; raise: sends itself SIGTERM;
   kill: SIGKILL; exit, quick, _exit: ends with 7; leave: lets the first thread call _exit(5);
   busy: computes, and lets the first thread call exit(5); start: tries to start programs in several
   ways, says what came of it, and ends with 7. */
#define _GNU_SOURCE
#undef NDEBUG  // the program asserts, however it is built
#include <assert.h>
#include <errno.h>
#include <omp.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void start_programs(void) {
  errno = 0;
  int result = system("exit 3");
  printf("system %d %s\n", result, strerrorname_np(errno));
  printf("a shell: %d\n", system(NULL) != 0);
  pid_t child = -1;
  char* const arguments[] = {"true", NULL};
  result = posix_spawnp(&child, "true", NULL, NULL, arguments, environ);
  printf("posix_spawnp %s\n", strerrorname_np(result));
  result = posix_spawn(&child, "/bin/true", NULL, NULL, arguments, environ);
  printf("posix_spawn %s\n", strerrorname_np(result));
  errno = 0;
  const pid_t borrowing = vfork();
  if (borrowing == 0) _exit(0);
  printf("vfork %d %s\n", borrowing < 0, strerrorname_np(errno));
  fflush(stdout);
}

int main(int count, char** values) {
  const char* what = count > 1 ? values[1] : "stay";
  const int locks = strcmp(what, "lock") == 0;
  const int crashes = strcmp(what, "crash") == 0;
  const int talks = strcmp(what, "talk") == 0;
  const int begins = strcmp(what, "begin") == 0;
  const int busy = strcmp(what, "busy") == 0;
  int there = 0;
  omp_lock_t lock;
  omp_init_lock(&lock);
#pragma omp parallel
  {
    if (omp_get_thread_num() == omp_get_num_threads() - 1) {
      if (locks) omp_set_lock(&lock);
      __atomic_store_n(&there, 1, __ATOMIC_SEQ_CST);
      for (int i = 0; talks && i < 2000; i++) {
        fprintf(i % 2 == 0 ? stdout : stderr, "line %d\n", i);
        fflush(stdout);
      }
      for (int i = 0; begins && i < 2; i++) {
        fputs(i == 0 ? "half" : " a line", stdout);
        fflush(stdout);
        usleep(200000);
      }
      if (crashes || talks || begins) *(volatile int*)0 = 1;
      if (strcmp(what, "abort") == 0) abort();
      if (strcmp(what, "assert") == 0) assert(!"so it is");
      if (strcmp(what, "raise") == 0) raise(SIGTERM);
      if (strcmp(what, "kill") == 0) kill(getpid(), SIGKILL);
      if (strcmp(what, "start") == 0) start_programs();
      if (strcmp(what, "exit") == 0 || strcmp(what, "start") == 0) exit(7);
      if (strcmp(what, "quick") == 0) quick_exit(7);
      if (strcmp(what, "_exit") == 0) _exit(7);
      if (busy) {
        printf("computes\n");  // stays in the stream's buffer
        __atomic_store_n(&there, 2, __ATOMIC_SEQ_CST);
      }
      while (busy) continue;
      for (;;) pause();
    }
    while (!__atomic_load_n(&there, __ATOMIC_SEQ_CST)) usleep(1000);
    if (omp_get_thread_num() == 0) {
      puts("in a region");
      fflush(stdout);
      if (strcmp(what, "leave") == 0) _exit(5);
      while (busy && __atomic_load_n(&there, __ATOMIC_SEQ_CST) != 2) usleep(1000);
      if (busy) exit(5);
    }
    if (locks) omp_set_lock(&lock);
#pragma omp barrier
  }
  return 0;
}
