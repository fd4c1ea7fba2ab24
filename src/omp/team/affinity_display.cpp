// SPDX-License-Identifier: Apache-2.0
#include "omp/team/affinity_display.hpp"

#include <strings.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

namespace amasia::omp {

bool turns_on_display(std::string_view value, bool libomp) {
  const auto is_space = [](char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; };
  while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
  while (!value.empty() && is_space(value.back())) value.remove_suffix(1);
  const std::string text(value);
  const auto is = [&text](const char* word) { return ::strcasecmp(text.c_str(), word) == 0; };
  constexpr std::array kOfLibomp = {"t", "on", "1", ".true.", ".t.", "y", "yes", "enabled"};
  return is("true") || (libomp && std::ranges::any_of(kOfLibomp, is));
}

bool ShownTeam::is_news(TeamLook look, bool libomp) {
  AMASIA_CHECK(look.level > 0 && !look.threads.empty(), "a team has threads, at level 1 or above");
  if (!libomp && look.level > 1) return true;
  if (last_ == look) return false;
  last_ = std::move(look);
  return true;
}

}  // namespace amasia::omp
