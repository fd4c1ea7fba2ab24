/* SPDX-License-Identifier: Apache-2.0 */
/* A program written for the Minos Computing Library, as far as includes and names go. */
#include <minos.h>

int main(void) {
  mcl_handle* task = NULL;
  if (mcl_init(1, 0x0) != 0 || (task = mcl_task_create()) == NULL) return 1;
  if (mcl_null(task) != 0 || mcl_wait(task) != 0 || task->ret != MCL_RET_SUCCESS) return 1;
  printf("%" PRIu64 "\n", task->status);
  return mcl_hdl_free(task) != 0 || mcl_finit() != 0;
}
