// SPDX-License-Identifier: Apache-2.0
#include "modules/nodes/program_image.hpp"

#include <algorithm>

#include "os/os.hpp"

namespace amasia::nodes {
namespace {

std::string_view take_until(std::string_view& text, char separator) {
  const auto at = std::min(text.find(separator), text.size());
  const std::string_view field = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return field;
}

std::string build_in_words(std::string_view build) {
  return build.starts_with("size ")
             ? fmt::format("{} bytes of code, without a build id", build.substr(5))
             : fmt::format("build id {}", build);
}

}  // namespace

ProgramImage ProgramImage::of_this_process() {
  ProgramImage image;
  for (const os::LoadedObject& from : os::loaded_objects()) {
    Object object{.load_address = from.load_address};
    std::size_t size = 0;
    for (const os::AddressRange& range : from.code) {
      object.code.push_back({range.begin, range.end});
      size += range.end - range.begin;
    }
    const auto slash = from.path.rfind('/');
    const std::string name = slash == std::string::npos ? from.path : from.path.substr(slash + 1);
    const std::string build = from.build_id.empty() ? fmt::format("size {}", size) : from.build_id;
    image.description_ += fmt::format("{}\t{}\n", name, build);
    image.objects_.push_back(std::move(object));
  }
  return image;
}

std::optional<CodePosition> ProgramImage::position_of(const void* function) const {
  const auto address = reinterpret_cast<std::uintptr_t>(function);
  for (std::size_t n = 0; n < objects_.size(); ++n) {
    for (const Code& code : objects_[n].code) {
      if (address >= code.begin && address < code.end) {
        return CodePosition{address - objects_[n].load_address, n};
      }
    }
  }
  return std::nullopt;
}

const void* ProgramImage::function_at(CodePosition position) const {
  if (position.object >= objects_.size()) return nullptr;
  const Object& object = objects_[position.object];
  const std::uintptr_t address = object.load_address + position.offset;
  for (const Code& code : object.code) {
    if (address >= code.begin && address < code.end) return reinterpret_cast<const void*>(address);
  }
  return nullptr;
}

Status compare_images(std::string_view mine, NodeId me, std::string_view theirs, NodeId them) {
  while (!mine.empty() || !theirs.empty()) {
    std::string_view my_line = take_until(mine, '\n');
    std::string_view their_line = take_until(theirs, '\n');
    if (my_line == their_line) continue;
    const std::string_view my_name = take_until(my_line, '\t');
    const std::string_view their_name = take_until(their_line, '\t');
    if (my_name != their_name) {
      const auto or_nothing = [](std::string_view name) {
        return name.empty() ? std::string("nothing more") : fmt::format("'{}'", name);
      };
      return Error{fmt::format("the nodes are not of one program: node {} has loaded {} where node "
                               "{} has {}",
                               me.value, or_nothing(my_name), them.value, or_nothing(their_name)),
                   0};
    }
    return Error{fmt::format("the nodes are not of one program: '{}' has {} on node {}, and {} on "
                             "node {}",
                             my_name, build_in_words(my_line), me.value, build_in_words(their_line),
                             them.value),
                 0};
  }
  return base::ok();
}

}  // namespace amasia::nodes
