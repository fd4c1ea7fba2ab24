// SPDX-License-Identifier: Apache-2.0
// Proves: every thread reads files: with read, pread and readv of its own descriptor, with a stream
// of its own, by turns from a stream and a descriptor that main opened.
#include <fcntl.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "expect.h"

#define NAME "lines.txt"
#define LINES 4000
#define LINE 8  // "0000123\n"

static int is_line(const char* text, int number) {
  char wanted[LINE + 1];
  snprintf(wanted, sizeof wanted, "%07d\n", number);
  return memcmp(text, wanted, LINE) == 0;
}

static int read_descriptor(int first) {
  char text[2 * LINE];
  const int file = open(NAME, O_RDONLY);
  int wrong = file < 0 || lseek(file, first * LINE, SEEK_SET) != first * LINE;
  wrong += read(file, text, LINE) != LINE || !is_line(text, first);
  struct iovec parts[2] = {{text, 3}, {text + 3, 2 * LINE - 3}};
  wrong += readv(file, parts, 2) != 2 * LINE;
  wrong += !is_line(text, first + 1) || !is_line(text + LINE, first + 2);
  wrong += pread(file, text, LINE, 7 * LINE) != LINE || !is_line(text, 7);
  return wrong + (close(file) != 0);
}

static int read_stream(void) {
  char text[LINE + 1];
  FILE* const file = fopen(NAME, "r");
  if (file == NULL) return 1;
  int number = 0;
  while (fgets(text, sizeof text, file) != NULL && is_line(text, number)) number++;
  return (number != LINES) + (fclose(file) != 0);
}

int main(void) {
  int wrong = 0;
  FILE* shared = fopen(NAME, "w");
  for (int i = 0; i < LINES; i++) fprintf(shared, "%07d\n", i);
  fclose(shared);
  shared = fopen(NAME, "r");
  const int descriptor = open(NAME, O_RDONLY);
#pragma omp parallel num_threads(4) reduction(+ : wrong)
  {
    wrong += read_descriptor(omp_get_thread_num() * 100) + read_stream();
    char text[LINE + 1];
    for (int turn = 0; turn < 8; turn++) {
#pragma omp barrier
      if (turn % 4 != omp_get_thread_num()) continue;
      wrong += fgets(text, sizeof text, shared) == NULL || !is_line(text, turn);
      wrong += read(descriptor, text, LINE) != LINE || !is_line(text, turn);
    }
  }
  fclose(shared);
  close(descriptor);
  expect(wrong == 0 && remove(NAME) == 0);
  return expect_result();
}
