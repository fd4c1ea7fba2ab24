// SPDX-License-Identifier: Apache-2.0
#include "tools/image_text.hpp"

#include <cstring>
#include <string>

namespace amasia::tools {
namespace {

// Layout: a byte that says whether there is an image; then the fields in the order of the struct,
// a list as its length and elements, a string as its length and bytes, numbers as 8 bytes.
class Writer {
 public:
  void number(std::uint64_t value) {
    const auto* from = reinterpret_cast<const std::byte*>(&value);
    out_.insert(out_.end(), from, from + sizeof value);
  }
  void text(const std::string& value) {
    number(value.size());
    const auto* from = reinterpret_cast<const std::byte*>(value.data());
    out_.insert(out_.end(), from, from + value.size());
  }
  void list(const std::vector<std::string>& values) {
    number(values.size());
    for (const std::string& value : values) text(value);
  }
  std::vector<std::byte> take() { return std::move(out_); }

 private:
  std::vector<std::byte> out_;
};

class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : rest_(bytes) {}
  std::uint64_t number() {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) {
      good_ = false;
      return 0;
    }
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_ = rest_.subspan(sizeof value);
    return value;
  }
  std::string text() {
    const std::uint64_t size = number();
    if (size > rest_.size()) {
      good_ = false;
      return {};
    }
    std::string value(reinterpret_cast<const char*>(rest_.data()), size);
    rest_ = rest_.subspan(size);
    return value;
  }
  std::vector<std::string> list() {
    std::vector<std::string> values;
    const std::uint64_t count = number();
    // Each element takes 8 bytes at least, which bounds a count that cannot be right.
    if (count > rest_.size() / sizeof count) good_ = false;
    for (std::uint64_t i = 0; good_ && i < count; ++i) values.push_back(text());
    return values;
  }
  bool good_to_the_end() const { return good_ && rest_.empty(); }

 private:
  std::span<const std::byte> rest_;
  bool good_ = true;
};

}  // namespace

std::vector<std::byte> pack_image(const std::optional<os::ProcessImage>& image) {
  Writer writer;
  writer.number(image ? 1 : 0);
  if (!image) return writer.take();
  writer.text(image->executable);
  writer.list(image->arguments);
  writer.list(image->environment);
  writer.text(image->working_directory);
  for (const rlimit& limit : image->limits) {
    writer.number(limit.rlim_cur);
    writer.number(limit.rlim_max);
  }
  writer.number(image->file_mode_mask);
  return writer.take();
}

Result<std::optional<os::ProcessImage>> unpack_image(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  std::optional<os::ProcessImage> image;
  const std::uint64_t present = reader.number();
  if (present == 1) {
    image.emplace();
    image->executable = reader.text();
    image->arguments = reader.list();
    image->environment = reader.list();
    image->working_directory = reader.text();
    for (rlimit& limit : image->limits) {
      limit.rlim_cur = reader.number();
      limit.rlim_max = reader.number();
    }
    image->file_mode_mask = static_cast<mode_t>(reader.number());
  }
  if (!reader.good_to_the_end() || present > 1) {
    return Error{
        "what the origin's launcher says cannot be understood; are all launchers the same "
        "build?",
        0};
  }
  return image;
}

}  // namespace amasia::tools
