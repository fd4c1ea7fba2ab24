// SPDX-License-Identifier: Apache-2.0
// The program's image: which of its writable data is managed memory, and whether all nodes have
// the same objects at the same addresses.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "dsm/dsm.hpp"
#include "omp/launch/objects.hpp"

namespace amasia::omp {

// The page-aligned ranges of writable data of one program object: its writable segments without
// what the loader has made read-only (RELRO) and without whole pages of the dynamic section, which
// the loader itself reads. An error for a segment that is writable and executable.
Result<std::vector<dsm::AddressRange>> writable_ranges(const LoadedObject& object);

// Those of all program objects, in the loader's order.
Result<std::vector<dsm::AddressRange>> global_ranges(const ObjectTable& objects);

// The build id as hexadecimal digits, or "" for an object without one. Reads its memory.
std::string build_id(const LoadedObject& object);

// One line for each object but the kernel's: file name, load address, end, build id, path.
std::string describe_image(const ObjectTable& objects);

// `mine` and `theirs` are descriptions. An error names the first file that differs, and how.
// `their_node` is for the sentence.
Status compare_images(std::string_view mine, std::string_view theirs, NodeId their_node);

}  // namespace amasia::omp
