// SPDX-License-Identifier: Apache-2.0
#include "omp/team/threadprivate.hpp"

#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "base/base.hpp"

namespace amasia::omp {
namespace {

struct Registry {
  std::mutex mutex;
  std::unordered_map<void*, ThreadPrivateMethods> methods;
};

// Static initialisers of the program use it, so it is made on first use and never ends.
Registry& registry() {
  static auto* const the_registry = new Registry;
  return *the_registry;
}

ThreadPrivateMethods methods_of(void* original) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto found = all.methods.find(original);
  return found == all.methods.end() ? ThreadPrivateMethods{} : found->second;
}

// One thread's copies.
class Copies {
 public:
  ~Copies() {
    for (const auto& [original, copy] : copies_) {
      if (copy.destroy != nullptr) copy.destroy(copy.object);
      std::free(copy.object);
    }
  }

  void* of(void* original, std::size_t size) {
    const auto found = copies_.find(original);
    return found != copies_.end() ? found->second.object : make(original, size);
  }

 private:
  struct Copy {
    void* object;
    void (*destroy)(void*);
  };

  void* make(void* original, std::size_t size) {
    constexpr std::size_t kAlignment = 64;
    void* const object = std::aligned_alloc(kAlignment, base::round_up(size, kAlignment));
    AMASIA_CHECK(object != nullptr, "there is memory for a thread's private copies");
    std::memset(object, 0, size);
    const ThreadPrivateMethods methods = methods_of(original);
    if (methods.construct != nullptr) {
      methods.construct(object);
    } else if (methods.copy_construct != nullptr) {
      methods.copy_construct(object, original);
    } else if (!read_initial_image(original, size, object)) {
      std::memcpy(object, original, size);
    }
    copies_[original] = {object, methods.destroy};
    return object;
  }

  std::unordered_map<void*, Copy> copies_;
};

thread_local Copies copies_of_thread;

struct ImageSearch {
  std::uintptr_t begin;
  std::size_t size;
  std::byte* to;
  bool found;
};

int read_from_object(dl_phdr_info* info, std::size_t, void* argument) {
  auto& search = *static_cast<ImageSearch*>(argument);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& part = info->dlpi_phdr[i];
    const std::uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || search.begin < begin ||
        search.begin + search.size > begin + part.p_memsz) {
      continue;
    }
    search.found = true;
    const std::size_t offset = search.begin - begin;
    if (offset >= part.p_filesz) return 1;  // .bss: zeros
    const bool is_program = info->dlpi_name == nullptr || info->dlpi_name[0] == '\0';
    const int file = open(is_program ? "/proc/self/exe" : info->dlpi_name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 1;
    const std::size_t length = std::min<std::size_t>(search.size, part.p_filesz - offset);
    const ssize_t got = pread(file, search.to, length, static_cast<off_t>(part.p_offset + offset));
    close(file);
    search.found = got == static_cast<ssize_t>(length);
    return 1;
  }
  return 0;
}

}  // namespace

void register_threadprivate(void* original, ThreadPrivateMethods methods) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  all.methods[original] = methods;
}

void* threadprivate_copy(void* original, std::size_t size) {
  return copies_of_thread.of(original, size);
}

bool read_initial_image(const void* address, std::size_t size, void* to) {
  std::memset(to, 0, size);
  ImageSearch search{reinterpret_cast<std::uintptr_t>(address), size, static_cast<std::byte*>(to),
                     false};
  dl_iterate_phdr(read_from_object, &search);
  return search.found;
}

}  // namespace amasia::omp
