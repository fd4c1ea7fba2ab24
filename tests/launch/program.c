/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is linked to an OpenMP runtime and does what its arguments say, one after another:
   print TEXT, cat, args, exit N, kill N, sleep SECONDS, spawn COMMAND (and go on), run COMMAND,
   exec PROGRAM, count-interrupts (until SIGTERM), parallel. */
#include <omp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t interrupts, terminated;

static void on_signal(int number) {
  if (number == SIGINT) ++interrupts;
  if (number == SIGTERM) terminated = 1;
}

static void count_interrupts(void) {
  signal(SIGINT, on_signal);
  signal(SIGTERM, on_signal);
  puts("counting");
  fflush(stdout);
  while (!terminated) usleep(1000);
  printf("interrupts %d\n", (int)interrupts);
}

static void copy_input(void) {
  int byte;
  while ((byte = getchar()) != EOF) putchar(byte);
}

int main(int count, char** values) {
  for (int i = 1; i < count; ++i) {
    const char* what = values[i];
    const char* value = i + 1 < count ? values[i + 1] : "";
    if (strcmp(what, "cat") == 0) {
      copy_input();
    } else if (strcmp(what, "parallel") == 0) {
      int sum = 0;
#pragma omp parallel reduction(+ : sum)
      sum += 1;
      printf("threads %s\n", sum > 0 ? "yes" : "no");
    } else if (strcmp(what, "count-interrupts") == 0) {
      count_interrupts();
    } else {
      ++i;
      fflush(stdout);
      if (strcmp(what, "print") == 0) puts(value);
      if (strcmp(what, "exit") == 0) exit(atoi(value));
      if (strcmp(what, "kill") == 0) raise(atoi(value));
      if (strcmp(what, "sleep") == 0) sleep((unsigned)atoi(value));
      if (strcmp(what, "run") == 0 && system(value) < 0) perror("system");
      if (strcmp(what, "exec") == 0) execlp("sh", "sh", "-c", value, (char*)0);
      if (strcmp(what, "spawn") == 0 && fork() == 0) {
        execlp("sh", "sh", "-c", value, (char*)0);
        _exit(127);
      }
    }
    fflush(stdout);
  }
  return 0;
}
