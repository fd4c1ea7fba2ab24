/* SPDX-License-Identifier: Apache-2.0 */
/* What a user's first program looks like: built with nothing but what is installed. */
#include <amasia/mcl.h>
#include <stdio.h>

enum { kSize = 1000 };

static int saxpy(const mcl_host_range* part, void* const* args, uint64_t count) {
  const float *x = args[0], a = *(const float*)args[2];
  float* y = args[1];
  for (uint64_t i = part->begin[0]; i < part->end[0]; ++i) y[i] += a * x[i];
  return count != 3;
}

int main(void) {
  static float x[kSize], y[kSize];
  const uint64_t both = MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_OUTPUT;
  uint64_t size[3] = {kSize, 1, 1};
  float a = 2, sum = 0;
  for (int i = 0; i < kSize; ++i) x[i] = 1, y[i] = 3;
  if (mcl_init(2, 0) != 0 || mcl_prg_add_host("saxpy", saxpy) != 0) {
    printf("%s\n", mcl_reason());
    return 1;
  }
  mcl_handle* task = mcl_task_create();
  mcl_task_set_kernel(task, "saxpy", 3);
  mcl_task_set_arg(task, 0, x, sizeof x, MCL_ARG_BUFFER | MCL_ARG_INPUT);
  mcl_task_set_arg(task, 1, y, sizeof y, both);
  mcl_task_set_arg(task, 2, &a, sizeof a, MCL_ARG_SCALAR);
  if (mcl_exec(task, size, NULL, MCL_TASK_ANY) != 0 || mcl_wait(task) != 0) {
    printf("%s%s\n", mcl_reason(), mcl_task_reason(task));
    return 1;
  }
  for (int i = 0; i < kSize; ++i) sum += y[i];
  printf("sum %g\n", (double)sum);
  mcl_hdl_free(task);
  return mcl_finit() != 0;
}
