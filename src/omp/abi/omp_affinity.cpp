// SPDX-License-Identifier: Apache-2.0
// The affinity format (OpenMP 5.0, 3.2.30 to 3.2.33). libomp's C entry points are the ompc_* ones,
// its omp_* ones are Fortran's under another name; libgomp's omp_* are C's. Programs of gcc call
// omp_*, those of clang ompc_*; both mean C's here.
#include <algorithm>
#include <cstring>

#include "omp/abi/omp_api.hpp"
#include "omp/team/affinity_display.hpp"
#include "omp/team/affinity_format.hpp"

namespace amasia::omp {
namespace {

// Of C: libomp's, or else libgomp's.
template <typename Signature>
class EitherReal;
template <typename Result, typename... Arguments>
class EitherReal<Result(Arguments...)> {
 public:
  constexpr EitherReal(const char* libomp, const char* libgomp)
      : libomp_(libomp), libgomp_(libgomp) {}
  Result operator()(Arguments... arguments) {
    const auto found = libomp_.find();
    return found != nullptr ? found(arguments...) : libgomp_(arguments...);
  }

 private:
  Real<Result(Arguments...)> libomp_, libgomp_;
};

constinit EitherReal<void(const char*)> real_set{"ompc_set_affinity_format",
                                                 "omp_set_affinity_format"};
constinit EitherReal<std::size_t(char*, std::size_t)> real_get{"ompc_get_affinity_format",
                                                               "omp_get_affinity_format"};
constinit EitherReal<void(const char*)> real_display{"ompc_display_affinity",
                                                     "omp_display_affinity"};
constinit EitherReal<std::size_t(char*, std::size_t, const char*)> real_capture{
    "ompc_capture_affinity", "omp_capture_affinity"};

}  // namespace

void set_real_affinity_format(const char* format) { real_set(format); }

namespace {

void set_format(const char* format) {
  real_set(format);
  Node* const node = current_node();
  if (node != nullptr) node->affinity_format().set(format);
}

// What the runtime of this node does not know of the calling thread, or knows by its own numbers.
TeamPlace own_place() {
  if (const ThreadFrame* const frame = current_frame(); frame != nullptr) {
    return {frame->global_id, frame->team->size(), /*ancestor=*/0, /*level=*/1};
  }
  const ThreadFrame* const outer = outer_frame();
  if (outer == nullptr) return {};
  const auto level = static_cast<std::uint32_t>(region_level());
  TeamPlace place;
  place.level = level;
  if (level == 2) place.ancestor = outer->global_id;
  return place;
}

// What the runtime of this node is to be asked with: nullptr and "" stand for the format set last.
std::string filled(const char* format) {
  std::string text = format != nullptr ? format : "";
  const TeamPlace place = own_place();
  if (place == TeamPlace{}) return text;
  if (text.empty()) {
    text.resize(real_get(nullptr, 0) + 1);
    real_get(text.data(), text.size());
    text.resize(std::strlen(text.c_str()));
  }
  return fill_affinity_format(text, place);
}

std::size_t capture(char* buffer, std::size_t size, const char* format) {
  return real_capture(buffer, size, filled(format).c_str());
}

void display(const char* format) { real_display(filled(format).c_str()); }

thread_local ShownTeam shown_team;

// Fortran's texts have a length and no end. Blanks at the end count, as both runtimes have it; what
// is left of a result is blank.
std::string text_of(const char* text, std::size_t length) { return {text, length}; }

void set_blank_padded(char* buffer, std::size_t size, const std::string& text) {
  const std::size_t used = std::min(size, text.size());
  std::memcpy(buffer, text.data(), used);
  std::memset(buffer + used, ' ', size - used);
}

}  // namespace

void show_affinity() { display(nullptr); }

bool is_team_to_be_shown(std::int32_t proc_bind, std::span<const NodeShare> shares,
                         std::uint32_t threads) {
  static constinit Real<std::int32_t()> real_max_threads{"omp_get_max_threads"};
  static constinit Real<std::int32_t()> real_thread{"omp_get_thread_num"};
  const Node* const node = current_node();
  if (node == nullptr || !node->settings().display_affinity) return false;
  const ThreadFrame* const frame = current_frame();
  TeamLook look;
  look.ancestor =
      frame != nullptr ? frame->global_id : static_cast<std::uint32_t>(real_thread());
  look.proc_bind = proc_bind;
  for (const NodeShare& share : shares) look.threads.emplace_back(share.node, share.threads);
  if (shares.empty()) {
    if (threads == 0) threads = static_cast<std::uint32_t>(real_max_threads());
    look.threads.emplace_back(node->self(), threads);
  }
  look.level = static_cast<std::uint32_t>(region_level()) + 1;
  return shown_team.is_news(std::move(look), abi_of_runtime() == Abi::kKmpc);
}

// Both names of C.
#define AMASIA_C_ENTRY(RESULT, NAME, PARAMETERS, CALL)  \
  AMASIA_ENTRY RESULT omp_##NAME PARAMETERS { CALL; }   \
  AMASIA_ENTRY RESULT ompc_##NAME PARAMETERS { CALL; }

AMASIA_C_ENTRY(void, set_affinity_format, (const char* format), set_format(format))
AMASIA_C_ENTRY(void, display_affinity, (const char* format), display(format))
AMASIA_C_ENTRY(std::size_t, capture_affinity,
               (char* buffer, std::size_t size, const char* format),
               return capture(buffer, size, format))

AMASIA_ENTRY void omp_set_affinity_format_(const char* format, std::size_t length) {
  set_format(text_of(format, length).c_str());
}
AMASIA_ENTRY void omp_display_affinity_(const char* format, std::size_t length) {
  display(text_of(format, length).c_str());
}
AMASIA_ENTRY std::size_t omp_capture_affinity_(char* buffer, const char* format, std::size_t size,
                                               std::size_t length) {
  const std::string asked = filled(text_of(format, length).c_str());
  std::string text(real_capture(nullptr, 0, asked.c_str()) + 1, '\0');
  const std::size_t needed = real_capture(text.data(), text.size(), asked.c_str());
  text.resize(std::strlen(text.c_str()));
  set_blank_padded(buffer, size, text);
  return needed;
}

}  // namespace amasia::omp
