// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "machine/topology.hpp"

namespace amasia::machine {
namespace {

constexpr int kBoxWidth = 132, kBoxHeight = 46, kGap = 22, kRowGap = 48, kMargin = 24;
constexpr int kWorkerHeight = 30, kLetter = 7;

// What lies outermost is drawn on top: devices, memory, NUMA nodes, then caches by distance.
int row_of(PlaceType type) {
  switch (type) {
    case PlaceType::kGpu:
    case PlaceType::kInterconnect:
    case PlaceType::kStorage:
    case PlaceType::kNode:
    case PlaceType::kOther:
      return 0;
    case PlaceType::kMemory:
      return 1;
    case PlaceType::kNumaNode:
      return 2;
    case PlaceType::kCache:
      return 3;
  }
  return 0;
}

const char* colour_of(PlaceType type) {
  constexpr std::array<const char*, kPlaceTypes> kColours = {
      "#cfe3f7", "#d8ecd3", "#f3ecc9", "#f6d5c6", "#e4d6f0", "#e6e6e6", "#f2d3e3", "#ffffff"};
  return kColours[static_cast<std::size_t>(type)];
}

std::string escaped(const std::string& text) {
  std::string out;
  for (const char byte : text) {
    switch (byte) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      default: out += static_cast<unsigned char>(byte) < 0x20 ? '?' : byte;
    }
  }
  return out;
}

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.{}f} {}", value, value < 10 && unit > 0 ? 1 : 0, kUnits[unit]);
}

struct Point {
  int x = 0, y = 0;
};

class Drawing {
 public:
  explicit Drawing(const Platform& platform) : platform_(platform) {
    set_rows();
    place_boxes();
  }

  std::string svg() {
    std::string body;
    for (const auto& [one, other] : platform_.edges) body += edge(one, other);
    for (std::uint32_t index = 0; index < platform_.places.size(); ++index) body += box(index);
    for (std::uint32_t index = 0; index < platform_.workers.size(); ++index) body += worker(index);
    return fmt::format(
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" "
               "viewBox=\"0 0 {0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
               width_, height_) +
           body + "</svg>\n";
  }

 private:
  // Caches lie as deep as the chain of caches around them is long.
  void set_rows() {
    rows_.resize(platform_.places.size());
    for (std::size_t index = 0; index < rows_.size(); ++index) {
      rows_[index] = row_of(platform_.places[index].type);
    }
    for (std::size_t pass = 0; pass < 8; ++pass) {
      for (const auto& [one, other] : platform_.edges) {
        const bool both = platform_.places[one].type == PlaceType::kCache &&
                          platform_.places[other].type == PlaceType::kCache;
        // An edge is written from the outer one to the inner one.
        if (both) rows_[other] = std::max(rows_[other], std::min(rows_[one] + 1, 10));
      }
    }
  }
  void place_boxes() {
    std::map<int, std::vector<std::uint32_t>> rows;
    for (std::uint32_t index = 0; index < rows_.size(); ++index) {
      rows[rows_[index]].push_back(index);
    }
    std::size_t widest = 1;
    for (const auto& [row, members] : rows) widest = std::max(widest, members.size());
    const int across = static_cast<int>(widest) * (kBoxWidth + kGap) - kGap;
    corners_.resize(rows_.size());
    int y = kMargin;
    for (const auto& [row, members] : rows) {
      const int share = (across + kGap) / static_cast<int>(members.size());
      for (std::size_t n = 0; n < members.size(); ++n) {
        const int centre = kMargin - kGap / 2 + static_cast<int>(n) * share + share / 2;
        corners_[members[n]] = {centre - kBoxWidth / 2, y};
      }
      y += kBoxHeight + kRowGap;
    }
    workers_y_ = y;
    width_ = across + 2 * kMargin;
    for (std::uint32_t index = 0; index < platform_.workers.size(); ++index) {
      const int text = static_cast<int>(words_of(index).size()) * kLetter;
      width_ = std::max(width_, text + 3 * kMargin);
    }
    const int count = static_cast<int>(platform_.workers.size());
    height_ = workers_y_ + count * (kWorkerHeight + 8) + kMargin;
  }
  Point middle(std::uint32_t place) const {
    return {corners_[place].x + kBoxWidth / 2, corners_[place].y + kBoxHeight / 2};
  }
  std::string edge(std::uint32_t one, std::uint32_t other) const {
    const Point from = middle(one), to = middle(other);
    return fmt::format(
        "<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" stroke=\"#888\" stroke-width=\"1.5\"/>\n",
        from.x, from.y, to.x, to.y);
  }
  std::string box(std::uint32_t index) const {
    const PlatformPlace& place = platform_.places[index];
    const Point at = corners_[index];
    std::string below = name_of(place.type);
    if (place.bytes != 0) below += ", " + size_text(place.bytes);
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"5\" fill=\"{}\" "
        "{}/>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
        "font-weight=\"bold\">{}</text>\n<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" "
        "fill=\"#444\">{}</text>\n",
        at.x, at.y, kBoxWidth, kBoxHeight, colour_of(place.type),
        is_home(index) ? "stroke=\"#a33\" stroke-width=\"3\"" : "stroke=\"#444\"",
        at.x + kBoxWidth / 2, at.y + 19,
        escaped(place.name), at.x + kBoxWidth / 2, at.y + 36, escaped(below));
  }
  std::string names(const std::vector<std::uint32_t>& path) const {
    std::string text;
    for (const std::uint32_t place : path) {
      text += (text.empty() ? "" : ", ") + platform_.places[place].name;
    }
    return text;
  }
  std::string words_of(std::uint32_t index) const {
    const PlatformWorker& one = platform_.workers[index];
    return fmt::format("worker {} at {}   pops: {}   steals: {}", index,
                       platform_.places[one.home].name, names(one.pop), names(one.steal));
  }
  std::string worker(std::uint32_t index) const {
    const int y = workers_y_ + static_cast<int>(index) * (kWorkerHeight + 8);
    return fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"14\" fill=\"#fbf3f3\" "
        "stroke=\"#a33\"/>\n<text x=\"{}\" y=\"{}\">{}</text>\n",
        kMargin, y, width_ - 2 * kMargin, kWorkerHeight, kMargin + 14, y + 20,
        escaped(words_of(index)));
  }
  bool is_home(std::uint32_t place) const {
    return std::any_of(platform_.workers.begin(), platform_.workers.end(),
                       [&](const PlatformWorker& worker) { return worker.home == place; });
  }

  const Platform& platform_;
  std::vector<int> rows_;
  std::vector<Point> corners_;
  int workers_y_ = 0, width_ = 0, height_ = 0;
};

}  // namespace

std::string drawing_of(const Platform& platform) { return Drawing(platform).svg(); }

}  // namespace amasia::machine
