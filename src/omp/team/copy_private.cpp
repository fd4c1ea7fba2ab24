// SPDX-License-Identifier: Apache-2.0
#include "omp/team/copy_private.hpp"

#include <algorithm>
#include <cstring>

namespace amasia::omp {
namespace {

constexpr std::uintptr_t kAlignment = 64;  // keeps that of any variable

std::uintptr_t number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

std::span<void* const> addresses(const PrivateList& list) {
  if (list.count == 0) return {&list.data, 1};
  return {static_cast<void* const*>(list.data), list.count};
}

}  // namespace

GivenCopies::GivenCopies(Services& services, PrivateList list)
    : services_(services), data_(list.data) {
  for (void* const address : addresses(list)) {
    if (services.is_managed(address)) continue;
    const std::span<std::byte> block = thread_local_block(address);
    if (block.empty()) {
      services.abort_job(
          "copyprivate of a threadprivate variable that the OpenMP runtime allocated cannot be "
          "carried to other nodes; run the program on one node");
    }
    cover(address, block);
  }
  if (image_count_ == 0) return;
  share(list.count != 0 ? addresses(list) : std::span<void* const>());
  if (list.count == 0) data_ = translate(list.data);
}

GivenCopies::GivenCopies(Services& services, std::span<void* const> window)
    : services_(services), data_(const_cast<void**>(window.data())) {
  for (void* const word : window) {
    if (services.is_thread_local(word)) cover(word, thread_local_block(word));
  }
  if (image_count_ != 0) share(window);
}

void GivenCopies::share(std::span<void* const> list) {
  for (std::size_t i = 0; i < image_count_; ++i) {
    Image& image = images_[i];
    image.shared = number(services_.allocate_shared(image.end - image.begin));
  }
  for (std::size_t i = 0; i < image_count_; ++i) fill(images_[i]);
  if (list.empty()) return;
  list_ = static_cast<void**>(services_.allocate_shared(list.size_bytes()));
  std::ranges::transform(list, list_, [this](void* from) { return translate(from); });
  data_ = list_;
}

GivenCopies::~GivenCopies() {
  for (std::size_t i = 0; i < image_count_; ++i) {
    services_.free_shared(reinterpret_cast<void*>(images_[i].shared));
  }
  if (list_ != nullptr) services_.free_shared(list_);
}

// A variable's size is not known, but it ends before its module's block does.
void GivenCopies::cover(void* address, std::span<std::byte> block) {
  const std::uintptr_t end = number(block.data()) + block.size();
  const std::uintptr_t begin = base::round_down(number(address), kAlignment);
  for (std::size_t i = 0; i < image_count_; ++i) {
    if (images_[i].end != end) continue;
    images_[i].begin = std::min(images_[i].begin, begin);
    return;
  }
  AMASIA_CHECK(image_count_ < kMaxImages, "few modules have variables of one construct");
  images_[image_count_++] = {begin, end, 0};
}

void GivenCopies::fill(const Image& image) const {
  const std::size_t size = image.end - image.begin;
  auto* const to = reinterpret_cast<std::byte*>(image.shared);
  // Begins at or above the block's begin or, by its alignment, in the padding or block before.
  std::memcpy(to, reinterpret_cast<const void*>(image.begin), size);
  for (std::size_t at = 0; at + sizeof(void*) <= size; at += sizeof(void*)) {
    void* word;
    std::memcpy(&word, to + at, sizeof word);
    void* const translated = translate(word);
    if (translated != word) std::memcpy(to + at, &translated, sizeof translated);
  }
}

void* GivenCopies::translate(void* address) const {
  const std::uintptr_t value = number(address);
  for (std::size_t i = 0; i < image_count_; ++i) {
    const Image& image = images_[i];
    if (value < image.begin || value >= image.end) continue;
    return reinterpret_cast<void*>(image.shared + (value - image.begin));
  }
  return address;
}

void GivenCopies::keep() {
  for (std::size_t i = 0; i < image_count_; ++i) {
    const auto* const shared = reinterpret_cast<const std::byte*>(images_[i].shared);
    kept_.emplace_back(shared, shared + (images_[i].end - images_[i].begin));
  }
}

bool GivenCopies::kept() const {
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    const auto* const shared = reinterpret_cast<const std::byte*>(images_[i].shared);
    if (std::memcmp(shared, kept_[i].data(), kept_[i].size()) != 0) return false;
  }
  return true;
}

void GivenCopies::take(Services& services, PrivateList to,
                       void (*copy)(void* to, void* from)) const {
  copy(to.data, data_);
  if (image_count_ == 0) return;
  for (void* const address : addresses(to)) {
    const std::span<const std::byte> block = thread_local_block(address);
    for (std::size_t at = 0; at + sizeof(void*) <= block.size(); at += sizeof(void*)) {
      std::uintptr_t word = 0;
      std::memcpy(&word, block.data() + at, sizeof word);
      for (std::size_t i = 0; i < image_count_; ++i) {
        if (word - images_[i].shared >= images_[i].end - images_[i].begin) continue;
        services.abort_job(
            "copyprivate has copied a pointer to a thread-local variable to another node, where it "
            "has no meaning; run the program on one node");
      }
    }
  }
}

}  // namespace amasia::omp
