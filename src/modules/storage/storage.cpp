// SPDX-License-Identifier: Apache-2.0
#include "amasia/storage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <system_error>

#include "modules/storage/checkpoint_format.hpp"
#include "modules/storage/checksum.hpp"
#include "modules/storage/operations.hpp"

namespace amasia::storage {
namespace {

std::string sentence(const std::string& file, const std::string& what, int error_number) {
  std::string text = fmt::format("storage: '{}' {}", file, what);
  if (error_number != 0) text += ": " + std::generic_category().message(error_number);
  return text;
}

std::string name_of_part(const std::string& file) {
  static std::atomic<unsigned> number{0};  // of this process
  return fmt::format("{}.{}-{}.part", file, getpid(), number.fetch_add(1));
}

// Large regions are summed in pieces, so that others get their turn; the sum is one chain.
std::uint32_t sum_of(const region& one) {
  constexpr std::size_t kPiece = 4 << 20;
  std::uint32_t sum = 0;
  for (std::size_t done = 0; done < one.bytes; done += kPiece) {
    sum = crc32c(sum, static_cast<char*>(one.data) + done, std::min(kPiece, one.bytes - done));
  }
  return sum;
}

// A checkpoint on its way: the memory that requests point to.
struct Checkpoint {
  std::vector<region> regions;
  std::vector<std::uint32_t> sums;
  Header header;

  std::vector<region> pieces() {
    std::vector<region> all{{header.data(), header.size() * sizeof(std::uint64_t)}};
    all.insert(all.end(), regions.begin(), regions.end());
    return all;
  }
};

}  // namespace

error::error(const std::string& file, const std::string& what, int error_number)
    : std::runtime_error(sentence(file, what, error_number)), file_(file), code_(error_number) {}

library::library(tasks::runtime& workers, engine_kind wanted) : workers_(workers), wanted_(wanted) {
  workers_.attach(*this);
}
library::~library() { workers_.detach(*this); }

engine_kind library::engine() const noexcept { return engine_->kind(); }

void library::initialise(tasks::module_host& host) {
  if (wanted_ != engine_kind::threads) engine_ = make_ring_engine();
  if (engine_ == nullptr && wanted_ == engine_kind::io_uring) {
    throw std::runtime_error("storage: the kernel gives no io_uring with all that is needed");
  }
  if (engine_ == nullptr) engine_ = make_thread_engine();
  host_ = &host;
}

void library::finalise() noexcept { engine_.reset(); }

future<void> library::read(const std::string& file, void* to, std::size_t bytes,
                           std::uint64_t offset) {
  Ending ending{file, {}, host_->hold_scope(), nullptr};
  auto done = ending.result.get_future();
  read_pieces(*engine_, {.pieces = {{to, bytes}}, .offset = offset}, std::move(ending));
  return done;
}

future<void> library::write(const std::string& file, const void* from, std::size_t bytes,
                            std::uint64_t offset) {
  Ending ending{file, {}, host_->hold_scope(), nullptr};
  auto done = ending.result.get_future();
  write_pieces(*engine_, {{{const_cast<void*>(from), bytes}}, offset}, std::move(ending));
  return done;
}

future<void> library::replace(const std::string& file, const void* from, std::size_t bytes) {
  Ending ending{file, {}, host_->hold_scope(), nullptr};
  auto done = ending.result.get_future();
  replace_file(*engine_, {{{const_cast<void*>(from), bytes}}}, name_of_part(file),
               std::move(ending));
  return done;
}

future<void> library::checkpoint(const std::string& file, std::vector<region> regions) {
  auto all = std::make_shared<Checkpoint>();
  all->regions = std::move(regions);
  all->sums.resize(all->regions.size());
  Ending ending{file, {}, host_->hold_scope(), all};
  auto done = ending.result.get_future();
  const auto summed = tasks::forasync_future(
      tasks::range<1>{{0}, {static_cast<std::ptrdiff_t>(all->regions.size())}, {1}},
      [all](std::ptrdiff_t n) {
        const auto at = static_cast<std::size_t>(n);
        all->sums[at] = sum_of(all->regions[at]);
      });
  tasks::async_await(
      [this, all, ending = std::move(ending)]() mutable {
        all->header = make_header(all->regions, all->sums);
        std::string part = name_of_part(ending.file);
        replace_file(*engine_, {all->pieces()}, std::move(part), std::move(ending));
      },
      summed);
  return done;
}

future<void> library::restore(const std::string& file, std::vector<region> regions) {
  auto all = std::make_shared<Checkpoint>();
  all->regions = std::move(regions);
  all->header.resize(header_words(all->regions.size()));
  Ending ending{file, {}, host_->hold_scope(), all};
  const auto was_read = ending.result.get_future();
  read_pieces(*engine_,
              {.pieces = all->pieces(),
               .to_the_end = true,
               .check = [all](std::size_t piece) -> std::optional<std::string> {
                 if (piece != 0) return std::nullopt;
                 return wrong_in_header(all->header, all->regions);
               }},
              std::move(ending));
  return tasks::async_await_future(
      [file, all, was_read] {
        was_read.get();
        for (std::size_t n = 0; n < all->regions.size(); ++n) {
          if (sum_of(all->regions[n]) != sum_in_header(all->header, n)) {
            throw error(file, fmt::format("was changed: the checksum of region {} is wrong", n), 0);
          }
        }
      },
      was_read);
}

}  // namespace amasia::storage
