// SPDX-License-Identifier: Apache-2.0
#include "modules/cuda/gpus.hpp"

#include <fmt/format.h>

namespace amasia::cuda {

namespace driver = devices::cuda;

void Ended::finished(devices::Outcome&& outcome) noexcept {
  if (outcome.failure != devices::Failure::kNone) {
    return failed(std::make_exception_ptr(error("cuda: " + outcome.message)));
  }
  result_.put();
  end();
}

void Ended::failed(std::exception_ptr why) noexcept {
  result_.fail(std::move(why));
  end();
}

// What waits may go on since the promise is put, and end the program's run() with the hold.
void Ended::end() noexcept {
  const Count inside = inside_;
  inside->fetch_add(1, std::memory_order_seq_cst);  // before the hold is dropped
  delete this;
  inside->fetch_sub(1, std::memory_order_seq_cst);
}

std::shared_ptr<Gpus> Gpus::open(const driver::Driver& cuda) {
  int count = 0;
  if (const auto failed = cuda.DeviceGetCount(&count); failed != driver::kSuccess) {
    throw error("cuda: the driver does not count its GPUs: " + cuda.text_of(failed));
  }
  std::vector<std::unique_ptr<driver::Device>> all;
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = driver::Device::open(cuda, ordinal);
    if (!device.ok()) throw error("cuda: " + device.error().message);
    all.push_back(std::move(device).value());
  }
  if (all.empty()) throw error("cuda: the driver here shows no GPU");
  return std::make_shared<Gpus>(std::move(all));
}

void* Gpus::allocate(std::size_t gpu, std::size_t bytes) {
  devices::Outcome outcome;
  auto memory = driver::Memory::make(device(gpu), std::max<std::size_t>(bytes, 1), &outcome);
  if (memory == nullptr) throw error("cuda: " + outcome.message);
  const std::uint64_t address = memory->address;
  const os::MutexLock lock(mutex_);
  blocks_[{gpu, address}] = {std::move(memory), bytes};
  return reinterpret_cast<void*>(address);
}

void Gpus::release(std::size_t gpu, void* block) noexcept {
  std::unique_ptr<driver::Memory> memory;  // given back after the lock
  const os::MutexLock lock(mutex_);
  const auto found = blocks_.find({gpu, reinterpret_cast<std::uint64_t>(block)});
  if (found == blocks_.end()) return;
  memory = std::move(found->second.memory);
  blocks_.erase(found);
}

devices::Copy Gpus::part_of(std::size_t gpu, const void* at, void* host, std::size_t bytes) {
  const auto address = reinterpret_cast<std::uint64_t>(at);
  const os::MutexLock lock(mutex_);
  auto after = blocks_.upper_bound({gpu, address});
  if (after != blocks_.begin()) {
    const auto& [where, block] = *std::prev(after);
    const std::uint64_t offset = address - where.second;
    if (where.first == gpu && offset <= block.bytes && bytes <= block.bytes - offset) {
      return {block.memory.get(), offset, host, bytes};
    }
  }
  throw error(fmt::format("cuda: {} bytes at {} are not within memory of GPU {}", bytes, at, gpu));
}

void Gpus::must_have(std::size_t gpu, const void* at, std::size_t bytes) {
  part_of(gpu, at, nullptr, bytes);
}

kernel Gpus::load(std::size_t gpu, const devices::ProgramCode& code, const std::string& name) {
  devices::Outcome outcome;
  auto program =
      programs_.find_or_build(static_cast<devices::LocalDevice>(gpu), code, [&] {
        return driver::Program::load(device(gpu), code, cache_, &outcome);
      });
  std::unique_ptr<driver::Kernel> loaded;
  if (program != nullptr) {
    // How many arguments a launch has is looked at then.
    loaded = driver::Kernel::make(device(gpu), std::move(program), name, SIZE_MAX, &outcome);
  }
  if (loaded == nullptr) throw error("cuda: " + outcome.message);
  return kernel(std::make_shared<LoadedKernel>(shared_from_this(), gpu, std::move(loaded)));
}

void Gpus::copy(const Piece& piece, std::unique_ptr<Ended> ended) {
  driver::Device& of = device(piece.gpu());
  if (piece.to_gpu != kHost && piece.from_gpu != kHost) {
    return of.copy_here(reinterpret_cast<std::uint64_t>(piece.to), device(piece.from_gpu),
                        reinterpret_cast<std::uint64_t>(piece.from), piece.bytes,
                        *ended.release(), piece.stream);
  }
  const bool inwards = piece.from_gpu == kHost;
  devices::Copy copy;
  try {
    copy = inwards ? part_of(piece.to_gpu, piece.to, const_cast<void*>(piece.from), piece.bytes)
                   : part_of(piece.from_gpu, piece.from, piece.to, piece.bytes);
  } catch (const error&) {  // freed meanwhile
    return ended.release()->failed(std::current_exception());
  }
  devices::Work work;
  (inwards ? work.to_device : work.to_host) = std::span(&copy, 1);
  of.submit(work, *ended.release(), piece.stream);
}

}  // namespace amasia::cuda
