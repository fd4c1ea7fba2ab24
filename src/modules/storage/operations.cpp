// SPDX-License-Identifier: Apache-2.0
#include "modules/storage/operations.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>

namespace amasia::storage {
namespace {

using Kind = Request::Kind;

// Of one request: others get their turn in between.
constexpr std::size_t kMostBytes = 4 << 20;

bool is_passing(long result) { return result == -EINTR || result == -EAGAIN; }

Request transfer(Kind kind, long descriptor, const region& piece, std::size_t done,
                 std::uint64_t offset) {
  return {.kind = kind,
          .descriptor = static_cast<int>(descriptor),
          .data = static_cast<char*>(piece.data) + done,
          .bytes = std::min(piece.bytes - done, kMostBytes),
          .offset = offset};
}

std::string folder_of(const std::string& file) {
  const std::size_t slash = file.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : file.substr(0, slash);
}

}  // namespace

void Ending::succeed() {
  result.put();
  held.release();
}
void Ending::fail(const std::string& what, long code) {
  result.fail(std::make_exception_ptr(error(file, what, static_cast<int>(-code))));
  held.release();
}

Job read_pieces(Engine& engine, ReadPlan plan, Ending ending) {
  const long opened = co_await Perform(
      engine, {.kind = Kind::kOpen, .path = ending.file.c_str(), .flags = O_RDONLY});
  if (opened < 0) {
    ending.fail("cannot be opened", opened);
    co_return;
  }
  long code = 0;
  std::optional<std::string> wrong;
  std::uint64_t offset = plan.offset;
  for (std::size_t n = 0; n < plan.pieces.size() && code == 0 && !wrong; ++n) {
    for (std::size_t done = 0; done < plan.pieces[n].bytes;) {
      const Request request = transfer(Kind::kRead, opened, plan.pieces[n], done, offset);
      const long got = co_await Perform(engine, request);
      if (is_passing(got)) continue;
      if (got <= 0) {
        code = got;
        if (got == 0) wrong = "ends after " + std::to_string(offset) + " bytes, too early";
        break;
      }
      done += static_cast<std::size_t>(got);
      offset += static_cast<std::uint64_t>(got);
    }
    if (code == 0 && !wrong && plan.check) wrong = plan.check(n);
  }
  if (code == 0 && !wrong && plan.to_the_end) {
    char more = 0;
    const Request request = transfer(Kind::kRead, opened, {&more, 1}, 0, offset);
    const long got = co_await Perform(engine, request);
    if (got > 0) wrong = "goes on after its " + std::to_string(offset) + " bytes";
    if (got < 0) code = got;
  }
  co_await Perform(engine, {.kind = Kind::kClose, .descriptor = static_cast<int>(opened)});
  if (code < 0) {
    ending.fail("cannot be read", code);
  } else if (wrong) {
    ending.fail(*wrong, 0);
  } else {
    ending.succeed();
  }
}

namespace {

// The state of a file that is being written; each step is left out once one has failed.
struct Written {
  long descriptor = -1;
  long code = 0;
  const char* failed = nullptr;
  void note(const char* what, long result) {
    if (result >= 0 || failed != nullptr) return;
    failed = what;
    code = result;
  }
};

// The next request of writing the pieces, or none if all is written.
class Cursor {
 public:
  Cursor(const std::vector<region>& pieces, std::uint64_t offset)
      : pieces_(pieces), offset_(offset) {
    skip_done();
  }
  bool at_end() const { return piece_ == pieces_.size(); }
  Request next(long descriptor) const {
    return transfer(Kind::kWrite, descriptor, pieces_[piece_], done_, offset_);
  }
  void advance(long written) {
    done_ += static_cast<std::size_t>(written);
    offset_ += static_cast<std::uint64_t>(written);
    skip_done();
  }

 private:
  void skip_done() {
    while (piece_ < pieces_.size() && done_ == pieces_[piece_].bytes) {
      ++piece_;
      done_ = 0;
    }
  }
  const std::vector<region>& pieces_;
  std::uint64_t offset_;
  std::size_t piece_ = 0;
  std::size_t done_ = 0;
};

}  // namespace

Job write_pieces(Engine& engine, WritePlan plan, Ending ending) {
  Written file;
  file.descriptor = co_await Perform(
      engine, {.kind = Kind::kOpen, .path = ending.file.c_str(), .flags = O_WRONLY | O_CREAT});
  file.note("cannot be opened", file.descriptor);
  for (Cursor cursor(plan.pieces, plan.offset); file.failed == nullptr && !cursor.at_end();) {
    const Request request = cursor.next(file.descriptor);
    const long written = co_await Perform(engine, request);
    if (is_passing(written)) continue;
    file.note("cannot be written", written == 0 ? -EIO : written);
    if (file.failed == nullptr) cursor.advance(written);
  }
  if (file.descriptor >= 0) {
    file.note("cannot be closed",
              co_await Perform(engine, {.kind = Kind::kClose,
                                        .descriptor = static_cast<int>(file.descriptor)}));
  }
  file.failed != nullptr ? ending.fail(file.failed, file.code) : ending.succeed();
}

Job replace_file(Engine& engine, WritePlan plan, std::string part, Ending ending) {
  Written file;
  file.descriptor = co_await Perform(engine, {.kind = Kind::kOpen,
                                              .path = part.c_str(),
                                              .flags = O_WRONLY | O_CREAT | O_EXCL});
  const bool made = file.descriptor >= 0;
  const int descriptor = static_cast<int>(file.descriptor);
  file.note("cannot be made anew", file.descriptor);
  for (Cursor cursor(plan.pieces, 0); file.failed == nullptr && !cursor.at_end();) {
    const Request request = cursor.next(file.descriptor);
    const long written = co_await Perform(engine, request);
    if (is_passing(written)) continue;
    file.note("cannot be written anew", written == 0 ? -EIO : written);
    if (file.failed == nullptr) cursor.advance(written);
  }
  if (file.failed == nullptr) {  // before the rename: else the name could come to disk first
    file.note("cannot be flushed",
              co_await Perform(engine, {.kind = Kind::kFlush, .descriptor = descriptor}));
  }
  if (made) {
    file.note("cannot be closed",
              co_await Perform(engine, {.kind = Kind::kClose, .descriptor = descriptor}));
  }
  if (file.failed == nullptr) {
    file.note("cannot be replaced", co_await Perform(engine, {.kind = Kind::kRename,
                                                              .path = part.c_str(),
                                                              .new_path = ending.file.c_str()}));
    if (file.failed == nullptr) {
      const std::string folder = folder_of(ending.file);
      const long opened = co_await Perform(
          engine,
          {.kind = Kind::kOpen, .path = folder.c_str(), .flags = O_RDONLY | O_DIRECTORY});
      file.note("is in a folder that cannot be opened", opened);
      if (opened >= 0) {
        const int of_folder = static_cast<int>(opened);
        file.note("is in a folder that cannot be flushed",
                  co_await Perform(engine, {.kind = Kind::kFlush, .descriptor = of_folder}));
        co_await Perform(engine, {.kind = Kind::kClose, .descriptor = of_folder});
      }
      file.failed != nullptr ? ending.fail(file.failed, file.code) : ending.succeed();
      co_return;
    }
  }
  if (made) co_await Perform(engine, {.kind = Kind::kUnlink, .path = part.c_str()});
  ending.fail(file.failed, file.code);
}

}  // namespace amasia::storage
