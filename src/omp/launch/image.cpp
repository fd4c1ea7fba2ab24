// SPDX-License-Identifier: Apache-2.0
#include "omp/launch/image.hpp"

#include <unistd.h>

#include <algorithm>

#include "os/os.hpp"

namespace amasia::omp {
namespace {

using dsm::AddressRange;

std::uintptr_t page_down(std::uintptr_t address) {
  return base::round_down(address, base::kPageSize);
}
std::uintptr_t page_up(std::uintptr_t address) { return base::round_up(address, base::kPageSize); }

std::string path_of(const LoadedObject& object) {
  if (*object.path != '\0') return object.path;
  char buffer[4096];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer);
  return length > 0 ? std::string(buffer, static_cast<std::size_t>(length)) : "the executable";
}

// `ranges` without `hole`.
std::vector<AddressRange> subtract(const std::vector<AddressRange>& ranges, AddressRange hole) {
  std::vector<AddressRange> rest;
  for (const AddressRange& range : ranges) {
    const AddressRange before{range.begin, std::min(range.end, hole.begin)};
    const AddressRange after{std::max(range.begin, hole.end), range.end};
    if (hole.begin >= hole.end) {
      rest.push_back(range);
      continue;
    }
    if (before.begin < before.end) rest.push_back(before);
    if (after.begin < after.end) rest.push_back(after);
  }
  return rest;
}

// The fields of one line of a description.
struct Line {
  std::string_view name, begin, end, build_id, path;
};

std::string_view take_field(std::string_view& text, char separator) {
  const auto at = std::min(text.find(separator), text.size());
  const std::string_view field = text.substr(0, at);
  text.remove_prefix(std::min(at + 1, text.size()));
  return field;
}

std::vector<Line> parse(std::string_view text) {
  std::vector<Line> lines;
  while (!text.empty()) {
    std::string_view line = take_field(text, '\n');
    Line parsed;
    for (std::string_view* field :
         {&parsed.name, &parsed.begin, &parsed.end, &parsed.build_id, &parsed.path}) {
      *field = take_field(line, '\t');
    }
    lines.push_back(parsed);
  }
  return lines;
}

}  // namespace

Result<std::vector<AddressRange>> writable_ranges(const LoadedObject& object) {
  std::vector<AddressRange> ranges;
  std::vector<AddressRange> holes;
  for (std::uint16_t i = 0; i < object.header_count; ++i) {
    const ElfW(Phdr)& header = object.headers[i];
    const std::uintptr_t begin = object.load_address + header.p_vaddr;
    const std::uintptr_t end = begin + header.p_memsz;
    if (header.p_type == PT_LOAD && (header.p_flags & PF_W) != 0 && begin != end) {
      if ((header.p_flags & PF_X) != 0) {
        return Error{path_of(object) +
                         " has a segment that is writable and executable, which cannot be shared "
                         "between nodes",
                     0};
      }
      ranges.push_back({page_down(begin), page_up(end)});
    } else if (header.p_type == PT_GNU_RELRO) {
      // The loader rounds both ends down: a page that RELRO only begins to fill stays writable.
      holes.push_back({page_down(begin), page_down(end)});
    } else if (header.p_type == PT_DYNAMIC) {
      holes.push_back({page_up(begin), page_down(end)});
    }
  }
  for (const AddressRange& hole : holes) ranges = subtract(ranges, hole);
  return ranges;
}

Result<std::vector<AddressRange>> global_ranges(const ObjectTable& objects) {
  std::vector<AddressRange> all;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    if (objects[i].role != ObjectRole::kProgram) continue;
    auto ranges = writable_ranges(objects[i]);
    if (!ranges.ok()) return ranges.error();
    all.insert(all.end(), ranges.value().begin(), ranges.value().end());
  }
  return all;
}

std::string build_id(const LoadedObject& object) {
  return os::build_id(object.load_address, {object.headers, object.header_count});
}

std::string describe_image(const ObjectTable& objects) {
  std::string text;
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const LoadedObject& object = objects[i];
    if (std::string_view(object.path).starts_with("linux-vdso")) continue;
    const std::string path = path_of(object);
    const auto slash = path.rfind('/');
    text += fmt::format("{}\t{:x}\t{:x}\t{}\t{}\n",
                        slash == std::string::npos ? path : path.substr(slash + 1), object.begin,
                        object.end, build_id(object), path);
  }
  return text;
}

Status compare_images(std::string_view mine, std::string_view theirs, NodeId their_node) {
  const std::vector<Line> ours = parse(mine);
  const std::vector<Line> others = parse(theirs);
  for (std::size_t i = 0; i < std::min(ours.size(), others.size()); ++i) {
    const Line& a = ours[i];
    const Line& b = others[i];
    if (a.name != b.name) {
      return Error{fmt::format("this node has loaded {} where node {} has {}", a.path,
                               their_node.value, b.path),
                   0};
    }
    if (a.build_id != b.build_id) {
      return Error{fmt::format("{} differs from that of node {} (build id {}, there {})", a.path,
                               their_node.value, a.build_id.empty() ? "none" : a.build_id,
                               b.build_id.empty() ? "none" : b.build_id),
                   0};
    }
    if (a.begin != b.begin || a.end != b.end) {
      return Error{fmt::format("{} is loaded at 0x{}-0x{}, on node {} at 0x{}-0x{}", a.path,
                               a.begin, a.end, their_node.value, b.begin, b.end),
                   0};
    }
  }
  if (ours.size() != others.size()) {
    const bool we_have_more = ours.size() > others.size();
    const Line& extra = we_have_more ? ours[others.size()] : others[ours.size()];
    return Error{fmt::format("{} is loaded on {} only", extra.path,
                             we_have_more ? std::string("this node")
                                          : fmt::format("node {}", their_node.value)),
                 0};
  }
  return base::ok();
}

}  // namespace amasia::omp
