// SPDX-License-Identifier: Apache-2.0
// Proves: memory of OpenMP's predefined allocators is shared by the threads of all nodes, whoever
// has allocated it, and may be resized and freed by whichever thread.
#include <omp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "expect.h"

enum { kThreads = 6, kEach = 3000 };

static void fill_by_all(long* block) {
#pragma omp parallel num_threads(kThreads)
  {
    const int me = omp_get_thread_num();
    for (int i = 0; i < kEach; i++) block[me * kEach + i] += me * kEach + i;
  }
}

static void expect_filled(const long* block, long times) {
  for (long i = 0; i < kThreads * kEach; i++) expect(block[i] == times * i);
}

int main(void) {
  const size_t bytes = kThreads * kEach * sizeof(long);
  const omp_allocator_handle_t kinds[] = {omp_null_allocator,      omp_default_mem_alloc,
                                          omp_large_cap_mem_alloc, omp_const_mem_alloc,
                                          omp_high_bw_mem_alloc,   omp_low_lat_mem_alloc};
  for (unsigned k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
    long* block = omp_alloc(bytes, kinds[k]);
    memset(block, 0, bytes);
    fill_by_all(block);
    expect_filled(block, 1);
    block = omp_realloc(block, 2 * bytes, kinds[k], kinds[k]);
    fill_by_all(block);
    expect_filled(block, 2);
    omp_free(block, kinds[k]);
  }
  long* zeroed = omp_calloc(kThreads * kEach, sizeof(long), omp_default_mem_alloc);
  fill_by_all(zeroed);
  expect_filled(zeroed, 1);
  omp_free(zeroed, omp_null_allocator);
  long* aligned = omp_aligned_calloc(4096, kThreads * kEach, sizeof(long), omp_default_mem_alloc);
  expect((uintptr_t)aligned % 4096 == 0);
  fill_by_all(aligned);
  expect_filled(aligned, 1);
  omp_free(aligned, omp_default_mem_alloc);

  // Allocated by each thread, written by its neighbour, freed by the next one.
  long* blocks[kThreads] = {0};
#pragma omp parallel num_threads(kThreads)
  {
    const int me = omp_get_thread_num();
    blocks[me] = omp_aligned_alloc(64, sizeof(long), omp_thread_mem_alloc);
    *blocks[me] = me;
#pragma omp barrier
    *blocks[(me + 1) % kThreads] += 100;
#pragma omp barrier
#pragma omp critical
    expect(*blocks[(me + 2) % kThreads] == 100 + (me + 2) % kThreads);
#pragma omp barrier
    omp_free(blocks[(me + 2) % kThreads], omp_null_allocator);
  }
  expect(omp_alloc(0, omp_default_mem_alloc) == NULL);
  omp_free(NULL, omp_default_mem_alloc);

  // The allocate clause: a private variable of one thread that the threads of its region share.
  long last = 0, total = 0;
#pragma omp parallel num_threads(kThreads) firstprivate(last) \
    allocate(omp_default_mem_alloc : last) reduction(+ : total)
  {
    last += omp_get_thread_num();
    total += last;
  }
  expect(total == kThreads * (kThreads - 1) / 2);
  printf("%ld\n", total);
  return expect_result();
}
