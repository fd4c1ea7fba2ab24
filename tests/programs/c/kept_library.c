// SPDX-License-Identifier: Apache-2.0
// Proves: nothing by itself: the shared library of kept_by_library.c, which knows nothing of
// OpenMP, and of threads only that each has a number of its own.
static _Thread_local long number = -1;
static _Thread_local long calls;

void library_name_thread(long its_number) { number = its_number; }
long library_name_of_thread(void) { return number; }
long library_count_call(void) { return ++calls; }
