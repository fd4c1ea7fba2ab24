// SPDX-License-Identifier: Apache-2.0
#include "omp/team/affinity_format.hpp"

#include <algorithm>
#include <optional>

namespace amasia::omp {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

struct Field {
  bool right = false;  // aligned
  bool zeros = false;  // fill, in place of blanks
  std::size_t width = 0;
  std::string_view type;   // a letter, or a name without its braces
  std::size_t length = 0;  // of the whole field, '%' included
};

// The field that begins `text`, if it is one.
std::optional<Field> field_at(std::string_view text) {
  Field field;
  std::size_t at = 1;
  const auto there = [&] { return at < text.size() ? text[at] : '\0'; };
  if (there() == '0' && at + 1 < text.size() && text[at + 1] == '.') {
    field.zeros = true;
    ++at;
  }
  if (there() == '.') {
    field.right = true;
    ++at;
  }
  for (; is_digit(there()); ++at) {
    const std::size_t width = field.width * 10 + static_cast<std::size_t>(text[at] - '0');
    field.width = std::min(width, kMaxAffinityFormat);
  }
  if (at == text.size()) return std::nullopt;
  if (text[at] == '{') {
    const std::size_t end = text.find('}', at);
    if (end == std::string_view::npos) return std::nullopt;
    field.type = text.substr(at + 1, end - at - 1);
    at = end + 1;
  } else {
    field.type = text.substr(at++, 1);
  }
  field.length = at;
  return field;
}

std::string aligned(std::uint32_t value, const Field& field) {
  const std::string digits = std::to_string(value);
  if (digits.size() >= field.width) return digits;
  const std::string fill(field.width - digits.size(), field.zeros && field.right ? '0' : ' ');
  return field.right ? fill + digits : digits + fill;
}

std::optional<std::uint32_t> value_of(std::string_view type, const TeamPlace& place) {
  if (type == "n" || type == "thread_num") return place.thread;
  if (type == "N" || type == "num_threads") return place.threads;
  if (type == "a" || type == "ancestor_tnum") return place.ancestor;
  if (type == "L" || type == "nesting_level") return place.level;
  return std::nullopt;
}

}  // namespace

std::string fill_affinity_format(std::string_view format, const TeamPlace& place) {
  std::string filled;
  while (!format.empty()) {
    const std::size_t percent = std::min(format.find('%'), format.size());
    filled += format.substr(0, percent);
    format.remove_prefix(percent);
    const auto field = format.empty() ? std::nullopt : field_at(format);
    if (!field.has_value()) {
      filled += format;
      break;
    }
    const auto value = value_of(field->type, place);
    if (value.has_value()) {
      filled += aligned(*value, *field);
    } else {
      filled += format.substr(0, field->length);
    }
    format.remove_prefix(field->length);
  }
  return filled;
}

void AffinityFormat::set(std::string_view format) {
  const std::lock_guard lock(mutex_);
  format_ = format.substr(0, kMaxAffinityFormat);
}

std::string AffinityFormat::get() const {
  const std::lock_guard lock(mutex_);
  return format_;
}

}  // namespace amasia::omp
