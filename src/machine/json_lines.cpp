// SPDX-License-Identifier: Apache-2.0
#include "machine/json_lines.hpp"

#include <algorithm>

namespace amasia::machine {
namespace {

constexpr std::size_t kMostNesting = 64;

// Walks through the text once, and notes the last value seen whose path leads to the wanted one.
class Walk {
 public:
  Walk(std::string_view text, std::string_view wanted) : text_(text), wanted_(wanted) {
    value("", 0);
  }
  std::size_t found() const { return found_; }

 private:
  char peek() {
    while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != text_.npos) {
      ++at_;
    }
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  std::string string() {
    std::string read;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\\') ++at_;
      if (at_ < text_.size()) read += text_[at_];
    }
    if (at_ < text_.size()) ++at_;
    return read;
  }
  // "places" leads to "places[3].name", "place" does not.
  bool leads_to_wanted(const std::string& path) const {
    if (!wanted_.starts_with(path)) return false;
    if (path.empty() || wanted_.size() == path.size()) return true;
    return wanted_[path.size()] == '.' || wanted_[path.size()] == '[';
  }
  void value(const std::string& path, std::size_t depth) {
    const char first = peek();
    if (leads_to_wanted(path)) found_ = at_;
    if (depth > kMostNesting) at_ = text_.size();
    if (first == '{' || first == '[') return members(path, depth, first == '{');
    if (first == '"') return static_cast<void>(string());
    while (at_ < text_.size() && std::string_view(",]}").find(text_[at_]) == text_.npos) ++at_;
  }
  void members(const std::string& path, std::size_t depth, bool named) {
    ++at_;
    for (std::size_t index = 0; at_ < text_.size() && peek() != '}' && peek() != ']'; ++index) {
      std::string member = path + "[" + std::to_string(index) + "]";
      if (named) {
        member = (path.empty() ? "" : path + ".") + string();
        if (peek() == ':') ++at_;
      }
      value(member, depth + 1);
      if (peek() == ',') ++at_;
    }
    if (at_ < text_.size()) ++at_;
  }

  const std::string_view text_;
  const std::string_view wanted_;
  std::size_t at_ = 0;
  std::size_t found_ = 0;
};

}  // namespace

std::size_t line_of_byte(std::string_view text, std::size_t byte) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(byte, text.size()));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

std::size_t line_of_value(std::string_view text, std::string_view path) {
  return line_of_byte(text, Walk(text, path).found());
}

}  // namespace amasia::machine
