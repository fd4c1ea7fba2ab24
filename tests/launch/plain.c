/* SPDX-License-Identifier: Apache-2.0 */
/* A program without OpenMP. */
#include <stdio.h>

int main(void) {
  puts("plain");
  return 5;
}
