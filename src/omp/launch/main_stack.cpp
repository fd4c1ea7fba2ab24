// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/main_stack.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "omp/launch/stack_bounds.hpp"
#include "omp/native.hpp"

namespace amasia::omp {
namespace {

char* copy_string(dsm::Heap& heap, const char* text) {
  const std::size_t size = std::strlen(text) + 1;
  auto* const copy = static_cast<char*>(heap.allocate(size));
  AMASIA_CHECK(copy != nullptr, "the heap is empty when main begins");
  std::memcpy(copy, text, size);
  return copy;
}

std::size_t length_of(char** list) {
  std::size_t length = 0;
  while (list[length] != nullptr) ++length;
  return length;
}

// Words of the auxiliary vector, its end marker included; it lies behind the environment.
std::size_t auxiliary_words(const std::uintptr_t* vector) {
  std::size_t words = 0;
  while (vector[words] != 0) words += 2;
  return words + 2;
}

void protect_page(std::uintptr_t page) {
  mprotect(reinterpret_cast<void*>(page), base::kPageSize, PROT_NONE);
}

}  // namespace

MainArguments copy_arguments(dsm::Heap& heap, const MainArguments& original) {
  // environ differs from what the kernel passed once a constructor has called setenv; the vector
  // is behind what the kernel passed.
  char** const environment = environ == nullptr ? original.environment : environ;
  const std::size_t variables = length_of(environment);
  const auto* const vector = reinterpret_cast<const std::uintptr_t*>(
      original.environment + length_of(original.environment) + 1);
  const std::size_t words = auxiliary_words(vector);
  const auto count = static_cast<std::size_t>(original.count);
  auto** const block =
      static_cast<char**>(heap.allocate_zeroed(count + 1 + variables + 1 + words, sizeof(char*)));
  AMASIA_CHECK(block != nullptr, "the heap is empty when main begins");
  MainArguments copy{original.count, block, block + count + 1};
  for (std::size_t i = 0; i < count; ++i) copy.values[i] = copy_string(heap, original.values[i]);
  for (std::size_t i = 0; i < variables; ++i) {
    copy.environment[i] = copy_string(heap, environment[i]);
  }
  std::memcpy(copy.environment + variables + 1, vector, words * sizeof(std::uintptr_t));
  environ = copy.environment;
  if (count > 0) {
    program_invocation_name = copy.values[0];
    const char* const slash = std::strrchr(copy.values[0], '/');
    program_invocation_short_name =
        slash == nullptr ? copy.values[0] : copy.values[0] + (slash + 1 - copy.values[0]);
  }
  return copy;
}

StackPlan plan_stacks(dsm::AddressRange stacks) {
  const Bytes main_size = managed_stack_size(false) + 2 * base::kPageSize;
  AMASIA_CHECK(main_size < stacks.size() / 2, "the stack part holds more than the main stack");
  return {{stacks.begin, stacks.begin + main_size}, {stacks.begin + main_size, stacks.end}};
}

int run_main(dsm::AddressRange range, MainFunction main, const MainArguments& arguments) {
  const dsm::AddressRange stack{range.begin + base::kPageSize, range.end - base::kPageSize};
  protect_page(range.begin);
  protect_page(stack.end);  // so that the mapping, as the system lists it, ends with the stack
  tell_main_stack(stack);
  int result = 0;
  // Not call_on_stack alone: the layer must know where the native stack was left.
  on_managed_stack(reinterpret_cast<std::byte*>(stack.end), [&] {
    result = main(arguments.count, arguments.values, arguments.environment);
  });
  return result;
}

}  // namespace amasia::omp
