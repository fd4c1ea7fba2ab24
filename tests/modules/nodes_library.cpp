// SPDX-License-Identifier: Apache-2.0
// Built twice, with different numbers: nodes that load different builds are not of one program.
#ifdef NODES_LIBRARY_IS_ANOTHER
constexpr int kNumber = 2;
#else
constexpr int kNumber = 1;
#endif
__attribute__((visibility("default"))) int number_of_the_library() { return kNumber; }
