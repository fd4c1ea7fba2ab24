// SPDX-License-Identifier: Apache-2.0
// Proves: every reduction operator on every arithmetic type.
#include <omp.h>
#include <stdbool.h>

#include "expect.h"

int main(void) {
  int add = 5;
  long minus = 0;
  double times = 1;
  float least = 1e9f;
  long double most = -1e9L;
  unsigned bits_and = ~0u, bits_or = 0, bits_xor = 0;
  int all = 1, any = 0;
  unsigned char narrow = 0;
  short small = 0;
#pragma omp parallel for num_threads(4) reduction(+ : add, narrow, small) reduction(- : minus) \
    reduction(* : times) reduction(min : least) reduction(max : most) reduction(& : bits_and)  \
    reduction(| : bits_or) reduction(^ : bits_xor) reduction(&& : all) reduction(|| : any)
  for (int i = 0; i < 200; i++) {
    add += i;
    minus -= i;
    times *= i % 2 ? 0.5 : 2.0;
    float f = (float)((i * 37) % 211);
    if (f < least) least = f;
    if (f > most) most = f;
    bits_and &= ~(1u << (i % 7));
    bits_or |= 1u << (i % 20);
    bits_xor ^= (unsigned)i * 2654435761u;
    all = all && i < 199;
    any = any || i == 77;
    narrow = (unsigned char)(narrow + i);
    small = (short)(small + i);
  }
  printf("%d %ld %g %g %Lg\n", add, minus, times, (double)least, most);
  printf("%x %x %x %d %d %d %d\n", bits_and, bits_or, bits_xor, all, any, narrow, small);
  unsigned xored = 0;
  for (unsigned i = 0; i < 200; i++) xored ^= i * 2654435761u;
  expect(add == 5 + 19900 && minus == -19900 && times == 1.0 && least == 0.0f && most == 210);
  expect(bits_and == ~0x7fu && bits_or == 0xfffff && bits_xor == xored && !all && any);
  expect(narrow == 19900 % 256 && small == 19900);
  return expect_result();
}
