// SPDX-License-Identifier: Apache-2.0
// What is done with a file, request by request.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "modules/storage/engine.hpp"

namespace amasia::storage {

// Puts the promise at its end, then drops the hold.
struct Ending {
  std::string file;
  tasks::promise<void> result;
  tasks::hold held;
  std::shared_ptr<void> kept;  // what lives as long as the operation

  void succeed();
  void fail(const std::string& what, long error);  // an error is -errno, or 0
};

// Pieces are written or read one after the other, from an offset on.
struct ReadPlan {
  std::vector<region> pieces;
  std::uint64_t offset = 0;
  bool to_the_end = false;  // the file ends with the last piece
  // After each piece: what is wrong with it, if anything.
  std::function<std::optional<std::string>(std::size_t piece)> check;
};
struct WritePlan {
  std::vector<region> pieces;
  std::uint64_t offset = 0;
};

Job read_pieces(Engine& engine, ReadPlan plan, Ending ending);
Job write_pieces(Engine& engine, WritePlan plan, Ending ending);
// Beside the file, then in its place; `part` is the name of the file beside.
Job replace_file(Engine& engine, WritePlan plan, std::string part, Ending ending);

}  // namespace amasia::storage
