// SPDX-License-Identifier: Apache-2.0
// Compiled programs on disk, for all back ends of all programs of one user.
//
// A file holds one compiled program and the whole text of what it was compiled from (ProgramKey):
// the file's name is only a hash of that text, so that two programs with one hash never give each
// other's code; a file that is cut, changed or of another version reads as not there.
// Invariants: (a) a file appears under its name complete, by rename: readers take no lock, and a
// writer that is killed leaves a file that no reader opens, which a later writer removes; (b) after
// a store the folder holds at most the limit, the files longest not used having been removed;
// (c) nothing is read from a folder that another user can write to, since its content is run.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/base.hpp"
#include "devices/backends/backend.hpp"

namespace amasia::devices {

// What a compiled program depends on. `device` and `driver` are the back end's own words: all that
// makes code for one device differ from that for another.
struct ProgramKey {
  std::string backend;
  std::string device;
  std::string driver;
  ProgramKind kind = ProgramKind::kSource;
  std::string options;
  std::string code;
};
// The key as text: different keys give different texts.
std::string text_of(const ProgramKey& key);
// The name of its file.
std::string file_name_of(std::string_view key_text);
// Whether the compiler reads nothing but `code`, as far as can be told: a program that includes
// files is compiled each time, since they may have changed.
bool is_self_contained(const ProgramCode& code);

// A file's content, and back; nullopt unless it is whole and of this key.
std::string pack_program(std::string_view key_text, std::string_view binary);
std::optional<std::string> unpack_program(std::string_view file, std::string_view key_text);

struct CachedFile {
  std::string name;
  Bytes size = 0;
  Nanos used = 0;  // CLOCK_REALTIME
};
// Which files to remove so that the others take at most `limit`: the longest unused first. Pure.
std::vector<std::string> files_to_remove(std::vector<CachedFile> files, Bytes limit);

class ProgramCache {
 public:
  static constexpr Bytes kDefaultLimit = 256 * base::kMiB;
  // `folder` is made when the first program is stored; "" makes a cache that keeps nothing.
  explicit ProgramCache(std::string folder, Bytes limit = kDefaultLimit)
      : folder_(std::move(folder)), limit_(limit) {}

  // Any thread and process. Both block for file operations; both fail silently, but for one line
  // in the log: without the cache a program is compiled again, and nothing else changes.
  std::optional<std::string> find(const ProgramKey& key);
  void store(const ProgramKey& key, std::string_view binary);

  const std::string& folder() const { return folder_; }
  std::uint64_t hits() const { return hits_.load(std::memory_order_relaxed); }
  std::uint64_t stores() const { return stores_.load(std::memory_order_relaxed); }

 private:
  bool is_ours() const;
  void remove_old(const std::string& kept) const;

  std::string folder_;
  Bytes limit_;
  // Counts, for tests and statistics: no order between them and anything else.
  std::atomic<std::uint64_t> hits_{0}, stores_{0};
};

// Where programs are kept: what AMASIA_DEVICES_CACHE says ("off": nowhere), else amasia/programs in
// the user's cache folder (XDG base directories); "" where there is none.
std::string program_cache_folder();

}  // namespace amasia::devices
