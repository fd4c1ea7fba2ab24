// SPDX-License-Identifier: Apache-2.0
// Proves: working directory, file mode mask and locale that main has set hold for the threads of
// every node, with files by relative paths; and a region's change of the directory for all others.
#include <fcntl.h>
#include <locale.h>
#include <omp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <wctype.h>

#include "expect.h"

static int stands_in(const char* folder) {
  char path[4096];
  const char* const last = getcwd(path, sizeof path) == NULL ? NULL : strrchr(path, '/');
  return last != NULL && strcmp(last + 1, folder) == 0;
}

static int handle_files(int self) {
  char name[20], other[20], target[20] = "";
  struct stat status;
  snprintf(name, sizeof name, "file%d", self);
  snprintf(other, sizeof other, "other%d", self);
  int wrong = access("written_by_main", R_OK) != 0 || access("no_such_file", R_OK) == 0;
  const int file = open(name, O_CREAT | O_WRONLY, 0666);
  wrong += file < 0 || close(file) != 0 || stat(name, &status) != 0;
  wrong += (status.st_mode & 0777) != 0640;
  wrong += rename(name, other) != 0 || symlink(other, name) != 0;
  wrong += readlink(name, target, sizeof target) != (ssize_t)strlen(other);
  wrong += strcmp(target, other) != 0 || lstat(name, &status) != 0 || !S_ISLNK(status.st_mode);
  wrong += unlink(name) != 0 || unlink(other) != 0 || access(other, F_OK) == 0;
  wrong += mkdir(name, 0777) != 0 || stat(name, &status) != 0;
  wrong += (status.st_mode & 0777) != 0750 || rmdir(name) != 0;
  char* const full = realpath("written_by_main", NULL);
  wrong += full == NULL;
  free(full);
  return wrong;
}

int main(void) {
  int wrong = 0, wide = 0;
  expect(mkdir("folder", 0777) == 0 && chdir("folder") == 0 && mkdir("inner", 0777) == 0);
  FILE* const file = fopen("written_by_main", "w");
  expect(file != NULL && fputs("text\n", file) >= 0 && fclose(file) == 0);
  const mode_t before = umask(027);
  for (int round = 0; round < 2; round++) {
    // Another one in the second round: the nodes follow each time.
    expect(setlocale(LC_ALL, round == 0 ? "C.UTF-8" : "C") != NULL);
#pragma omp parallel num_threads(4) reduction(+ : wrong, wide)
    {
      wrong += !stands_in("folder") + handle_files(omp_get_thread_num());
      wide += MB_CUR_MAX > 1 && iswalpha(0xe4) != 0;
    }
  }
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    if (omp_get_thread_num() == 3) wrong += chdir("inner") != 0 || umask(before) != 027;
#pragma omp barrier
    wrong += !stands_in("inner");
  }
  expect(chdir("../..") == 0 && umask(before) == before);
  expect(unlink("folder/written_by_main") == 0 && rmdir("folder/inner") == 0);
  expect(rmdir("folder") == 0);
  printf("%d %d\n", wrong, wide);
  expect(wrong == 0 && wide == 4);
  return expect_result();
}
