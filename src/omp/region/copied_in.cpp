// SPDX-License-Identifier: Apache-2.0
#include "omp/region/copied_in.hpp"

namespace amasia::omp {
namespace {

std::vector<void*> values_of(std::span<void** const> places) {
  std::vector<void*> values;
  for (void** const place : places) values.push_back(*place);
  return values;
}

}  // namespace

CopiedIn::CopiedIn(Services& services, std::span<void** const> places)
    : services_(services),
      addresses_(values_of(places)),
      copies_(services, std::span<void* const>(addresses_)) {
  auto* const images = static_cast<void* const*>(copies_.list());
  for (std::size_t i = 0; i < places.size(); ++i) {
    places_.push_back({places[i], addresses_[i], images[i]});
    *places[i] = images[i];
  }
  copies_.keep();
}

CopiedIn::~CopiedIn() {
  for (const Place& place : places_) {
    // The program may have stored something else there meanwhile.
    if (*place.word == place.image) *place.word = place.own;
  }
  if (copies_.kept()) return;
  services_.abort_job(
      "a parallel region wrote to a thread-local variable of the thread that forked it, of which "
      "other nodes have a copy; run the program on one node");
}

}  // namespace amasia::omp
