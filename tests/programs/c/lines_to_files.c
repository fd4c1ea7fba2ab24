/* SPDX-License-Identifier: Apache-2.0
 * Each thread writes lines to a file of its own, each of which goes to the system: on other nodes
 * than the origin that is dear. Then one reads them all. */
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void name_of(char* name, size_t size, long program, int thread) {
  const char* folder = getenv("TMPDIR");
  snprintf(name, size, "%s/lines_to_files.%ld.%d", folder != NULL ? folder : "/tmp", program,
           thread);
}

static int is_as_written(FILE* file, int thread, int lines) {
  char line[128], expected[128];
  for (int i = 0; i < lines; ++i) {
    snprintf(expected, sizeof expected, "line %d of thread %d: %g\n", i, thread, i * 0.5);
    if (fgets(line, sizeof line, file) == NULL || strcmp(line, expected) != 0) return 0;
  }
  return fgets(line, sizeof line, file) == NULL;
}

int main(int argc, char** argv) {
  const int lines = argc > 1 ? atoi(argv[1]) : 300;
  const long program = getpid();
  int threads = 0, good = 0;
#pragma omp parallel
  {
    const int thread = omp_get_thread_num();
    char name[256];
    name_of(name, sizeof name, program, thread);
    FILE* file = fopen(name, "w");
    if (file != NULL) {
      setvbuf(file, NULL, _IOLBF, 4096);
      for (int i = 0; i < lines; ++i) {
        fprintf(file, "line %d of thread %d: %g\n", i, thread, i * 0.5);
      }
      fclose(file);
    }
#pragma omp atomic
    ++threads;
  }
  for (int thread = 0; thread < threads; ++thread) {
    char name[256];
    name_of(name, sizeof name, program, thread);
    FILE* file = fopen(name, "r");
    if (file == NULL) continue;
    good += is_as_written(file, thread, lines);
    fclose(file);
    unlink(name);
  }
  printf("%d files of %d as written\n", good, threads);
  return good == threads ? 0 : 1;
}
