// SPDX-License-Identifier: Apache-2.0
// Proves: who asks where its stack lies, as interpreters and collectors of garbage do, is told
// bounds in which its variables are: main, a thread, each thread of a region, and who asks of main
// from elsewhere. So do the C library's own end of main's stack, and the mapping that it is in.
#define _GNU_SOURCE
#include <omp.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/resource.h>

#include "expect.h"

extern void *__libc_stack_end;

static int lies_within(pthread_t thread, const void *address) {
  pthread_attr_t attributes;
  void *low;
  size_t size;
  expect(pthread_getattr_np(thread, &attributes) == 0);
  expect(pthread_attr_getstack(&attributes, &low, &size) == 0);
  expect(pthread_attr_destroy(&attributes) == 0);
  const uintptr_t begin = (uintptr_t)low;
  return (uintptr_t)address >= begin && (uintptr_t)address < begin + size;
}

static int own_stack_is_told(void) {
  int mine = 0;
  return lies_within(pthread_self(), &mine);
}

struct of_main {
  pthread_t thread;
  const void *address;
};

static void *body(void *argument) {
  const struct of_main *const of_main = argument;
  expect(own_stack_is_told());
  expect(lies_within(of_main->thread, of_main->address));
  return NULL;
}

// Where the mapping that has the address in it ends, as the system lists it.
static uintptr_t mapping_end(uintptr_t address) {
  FILE *const maps = fopen("/proc/self/maps", "r");
  expect(maps != NULL);
  unsigned long begin = 0, end = 0;
  while (fscanf(maps, "%lx-%lx%*[^\n]", &begin, &end) == 2) {
    if (address >= begin && address < end) break;
    end = 0;
  }
  fclose(maps);
  return end;
}

int main(void) {
  int mine = 0;
  struct rlimit limit;
  expect(getrlimit(RLIMIT_STACK, &limit) == 0);
  const uintptr_t end = (uintptr_t)__libc_stack_end;
  expect(end > (uintptr_t)&mine && end - (uintptr_t)&mine < limit.rlim_cur);
  const uintptr_t mapped = mapping_end(end);
  expect(mapped > end && mapped - (uintptr_t)&mine < limit.rlim_cur);
  expect(own_stack_is_told());

  pthread_t thread;
  struct of_main of_main = {pthread_self(), &mine};
  expect(pthread_create(&thread, NULL, body, &of_main) == 0);
  expect(pthread_join(thread, NULL) == 0);

  int told[64] = {0};
#pragma omp parallel
  told[omp_get_thread_num()] = own_stack_is_told();
  for (int i = 0; i < omp_get_max_threads(); i++) expect(told[i]);
  expect(own_stack_is_told());
  return expect_result();
}
