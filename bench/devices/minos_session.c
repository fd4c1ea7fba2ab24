/* SPDX-License-Identifier: Apache-2.0
 * What does a task cost through MCL's interface, whichever library is behind it? Only names of
 * minos.h are used, so that the same source is built with this project's library and with the
 * original one; beside_original.py runs both and interleaves their rounds.
 *   minos_session KERNELS WORKERS [gpu|cuda]    KERNELS: the file that raw_session wrote
 * Reads requests, one a line, and answers each with the nanoseconds that all its tasks took, or
 * with "wrong" and a reason:
 *   noop N        tasks that do nothing, all submitted before the first is waited for
 *   waited N      the same, each waited for
 *   gemm N SIZE   products of matrices that bring their inputs and take their results back
 */
#include <minos.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char* wrong;
static uint64_t device_class = MCL_TASK_CPU;

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void must(int error, const char* what) {
  if (error != 0 && wrong == NULL) wrong = what;
}

static mcl_handle* task(char* kernel, uint64_t arguments) {
  mcl_handle* const handle = mcl_task_create();
  if (handle == NULL) {
    wrong = "mcl_task_create";
    return NULL;
  }
  must(mcl_task_set_kernel(handle, kernel, arguments), "mcl_task_set_kernel");
  return handle;
}

static void end(mcl_handle* handle) {
  if (handle == NULL) return;
  must(handle->ret != MCL_RET_SUCCESS, "a task failed");
  must(mcl_hdl_free(handle), "mcl_hdl_free");
}

static void noop(int tasks, int wait_for_each, mcl_handle** handles) {
  static int x __attribute__((aligned(4096))) = 7;
  uint64_t one[3] = {1, 1, 1};
  for (int i = 0; i < tasks; ++i) {
    mcl_handle* const handle = handles[i] = task("noop", 1);
    if (handle == NULL) return;
    must(mcl_task_set_arg(handle, 0, &x, sizeof x,
                          MCL_ARG_BUFFER | MCL_ARG_INPUT | MCL_ARG_RESIDENT),
         "mcl_task_set_arg");
    must(mcl_exec(handle, one, NULL, device_class), "mcl_exec");
    if (!wait_for_each) continue;
    must(mcl_wait(handle), "mcl_wait");
    end(handle);
  }
  if (wait_for_each) return;
  must(mcl_wait_all(), "mcl_wait_all");
  for (int i = 0; i < tasks; ++i) end(handles[i]);
}

static void gemm(int tasks, int n, mcl_handle** handles) {
  const size_t elements = (size_t)n * (size_t)n, bytes = elements * sizeof(float);
  float* const a = malloc(bytes);
  float* const b = malloc(bytes);
  float* const c = calloc((size_t)tasks, bytes);
  uint64_t sizes[3] = {(uint64_t)n, (uint64_t)n, 1}, group[3] = {16, 16, 1};
  uint64_t* const local = device_class == MCL_TASK_CPU ? NULL : group;
  for (size_t i = 0; i < elements; ++i) {
    a[i] = 0.5F + (float)(i % 97) / 97;
    b[i] = 0.5F + (float)(i % 89) / 89;
  }
  for (int i = 0; i < tasks; ++i) {
    mcl_handle* const handle = handles[i] = task("gemm", 4);
    if (handle == NULL) break;
    must(mcl_task_set_arg(handle, 0, a, bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT), "argument a");
    must(mcl_task_set_arg(handle, 1, b, bytes, MCL_ARG_BUFFER | MCL_ARG_INPUT), "argument b");
    must(mcl_task_set_arg(handle, 2, &n, sizeof n, MCL_ARG_SCALAR | MCL_ARG_INPUT), "argument n");
    must(mcl_task_set_arg(handle, 3, c + (size_t)i * elements, bytes,
                          MCL_ARG_BUFFER | MCL_ARG_OUTPUT),
         "argument c");
    must(mcl_exec(handle, sizes, local, device_class), "mcl_exec");
  }
  must(mcl_wait_all(), "mcl_wait_all");
  for (int i = 0; i < tasks; ++i) {
    end(handles[i]);
    const size_t at = elements / 2 + 1;
    double sum = 0;
    for (size_t k = 0; k < (size_t)n; ++k) {
      sum += (double)a[at / (size_t)n * (size_t)n + k] * b[k * (size_t)n + at % (size_t)n];
    }
    const double off = c[(size_t)i * elements + at] - sum;
    must(!(off <= 1e-4 * sum && -off <= 1e-4 * sum), "a product is wrong");
  }
  free(a);
  free(b);
  free(c);
}

int main(int argc, char** argv) {
  uint64_t language = MCL_PRG_SRC;
  if (argc != 3 && argc != 4) return 2;
  if (argc == 4) device_class = MCL_TASK_GPU;
#ifdef MCL_PRG_CUDA /* not in the original */
  if (argc == 4 && strcmp(argv[3], "cuda") == 0) language = MCL_PRG_CUDA;
#endif
  must(mcl_init((uint64_t)atoi(argv[2]), 0), "mcl_init");
  must(mcl_prg_load(argv[1], "", language), "mcl_prg_load");
  puts(wrong != NULL ? wrong : "ready");
  fflush(stdout);
  char kind[16];
  int tasks = 0;
  while (wrong == NULL && scanf("%15s %d", kind, &tasks) == 2) {
    int size = 0;
    mcl_handle** const handles = calloc((size_t)tasks, sizeof *handles);
    const int is_gemm = strcmp(kind, "gemm") == 0;
    if (is_gemm && scanf("%d", &size) != 1) break;
    const long long began = now();
    if (is_gemm) {
      gemm(tasks, size, handles);
    } else {
      noop(tasks, strcmp(kind, "waited") == 0, handles);
    }
    const long long took = now() - began;
    free(handles);
    if (wrong != NULL) {
      printf("wrong: %s\n", wrong);
    } else {
      printf("%lld\n", took);
    }
    fflush(stdout);
  }
  mcl_finit();
  return wrong != NULL;
}
