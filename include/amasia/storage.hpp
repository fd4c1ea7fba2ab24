// SPDX-License-Identifier: Apache-2.0
// Files in tasks: reading, writing and checkpoints are futures, and no worker waits for a disk.
// Link amasia-tasks-storage. docs/modules.md has the rules that hold for all modules.
//
// Memory that is written stays unchanged, and memory that is read untouched, until the future is
// ready. Operations on one file are not ordered among each other but by their futures. All
// functions but engine(): in tasks only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "amasia/module.h"

namespace amasia::storage {

template <typename T>
using future = tasks::future<T>;

// The text has the file, what was done with it and errno's text, or what is wrong with its content.
class AMASIA_TASKS_API error : public std::runtime_error {
 public:
  error(const std::string& file, const std::string& what, int error_number);
  const std::string& file() const noexcept { return file_; }
  int code() const noexcept { return code_; }  // errno; 0: the content is wrong

 private:
  std::string file_;
  int code_;
};

enum class engine_kind {
  automatic,  // io_uring where the kernel allows it, else threads
  io_uring,   // one thread, which waits for completions
  threads,    // four that call the kernel
};

// Some memory of a checkpoint.
struct region {
  void* data = nullptr;
  std::size_t bytes = 0;
};

class Engine;

class AMASIA_TASKS_API library : public tasks::module {
 public:
  // std::runtime_error where io_uring is asked for, and the kernel has none that will do.
  explicit library(tasks::runtime& workers, engine_kind wanted = engine_kind::automatic);
  ~library() override;
  engine_kind engine() const noexcept;

  // So many bytes from an offset on; fewer are an error.
  future<void> read(const std::string& file, void* to, std::size_t bytes, std::uint64_t offset = 0);
  // In place; the file is made if it is not there. Not on disk for sure when the future is ready.
  future<void> write(const std::string& file, const void* from, std::size_t bytes,
                     std::uint64_t offset = 0);
  // The file has these bytes, or, whatever ends the program or the machine meanwhile, what it had:
  // written beside it, flushed, renamed, its folder flushed. On disk when the future is ready. A
  // program that is killed may leave FILE.PID-N.part.
  future<void> replace(const std::string& file, const void* from, std::size_t bytes);

  // Replaces the file by a checkpoint of the regions, with their lengths and checksums (CRC-32C).
  future<void> checkpoint(const std::string& file, std::vector<region> regions);
  // Reads a checkpoint into regions of the same number and lengths. A file that is none, is cut
  // off, has other regions or was changed is an error; only then, after a wrong checksum, may the
  // regions have been written to.
  future<void> restore(const std::string& file, std::vector<region> regions);

  // Of the runtime, on the thread of run().
  const char* name() const noexcept override { return "storage"; }
  void initialise(tasks::module_host& host) override;
  void finalise() noexcept override;

 private:
  tasks::runtime& workers_;
  const engine_kind wanted_;
  tasks::module_host* host_ = nullptr;
  std::unique_ptr<Engine> engine_;
};

}  // namespace amasia::storage
