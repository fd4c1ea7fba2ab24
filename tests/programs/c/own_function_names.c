// SPDX-License-Identifier: Apache-2.0
// Proves: a program may have exported functions of its own with names of the C library, which is
// what the runtime calls nevertheless.
#include <omp.h>

#include "expect.h"

static int calls;
#define OWN(NAME) \
  __attribute__((visibility("default"))) long NAME(long a) { return calls++, a + 1; }
OWN(write)
OWN(poll)
OWN(send)
OWN(recv)
OWN(connect)
OWN(ioctl)
OWN(epoll_wait)
OWN(epoll_ctl)
OWN(eventfd)

int main(void) {
  long sum = 0;
  int threads = 0;
#pragma omp parallel num_threads(4) reduction(+ : sum, threads)
  {
    threads++;
#pragma omp for
    for (long i = 0; i < 1000; i++) sum += i;
  }
  calls = 0;
  printf("%d %ld %ld\n", threads, sum, write(1) + poll(2) + send(3));
  expect(threads == 4 && sum == 499500 && calls == 3);
  return expect_result();
}
