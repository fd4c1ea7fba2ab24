// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/program_cache.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>

#include "os/os.hpp"

namespace amasia::devices {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMagic = "amasia program 1\n";
constexpr std::string_view kSuffix = ".program", kUnfinished = ".part";
constexpr Nanos kAbandoned = 3600 * base::kSecond;  // no program takes that long to write

std::uint64_t fnv1a(std::string_view text, std::uint64_t hash) {
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return hash;
}

void append_number(std::string& to, std::uint64_t value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  to.append(bytes, sizeof bytes);
}

std::uint64_t take_number(std::string_view& from) {
  std::uint64_t value = 0;
  std::memcpy(&value, from.data(), sizeof value);
  from.remove_prefix(sizeof value);
  return value;
}

bool write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

std::optional<std::string> read_file(const std::string& path) {
  const os::Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  struct stat found {};
  if (!file.valid() || ::fstat(file.get(), &found) != 0 || !S_ISREG(found.st_mode)) return {};
  std::string bytes(static_cast<std::size_t>(found.st_size), '\0');
  std::size_t have = 0;
  while (have < bytes.size()) {
    const ssize_t length = ::read(file.get(), bytes.data() + have, bytes.size() - have);
    if (length < 0 && errno == EINTR) continue;
    if (length <= 0) return {};
    have += static_cast<std::size_t>(length);
  }
  ::futimens(file.get(), nullptr);  // used now
  return bytes;
}

Nanos time_of(const struct timespec& time) { return time.tv_sec * base::kSecond + time.tv_nsec; }

}  // namespace

std::string text_of(const ProgramKey& key) {
  // Each part with its length, so that no two keys run into the same text.
  std::string text;
  const std::string kind = std::to_string(static_cast<unsigned>(key.kind));
  for (const std::string_view part :
       {std::string_view(key.backend), std::string_view(key.device), std::string_view(key.driver),
        std::string_view(kind), std::string_view(key.options), std::string_view(key.code)}) {
    text += fmt::format("{}:", part.size());
    text += part;
    text += '\n';
  }
  return text;
}

std::string file_name_of(std::string_view key_text) {
  return fmt::format("{:016x}{:016x}{}", fnv1a(key_text, 0xcbf29ce484222325ULL),
                     fnv1a(key_text, 0x6c62272e07bb0142ULL), kSuffix);
}

bool is_self_contained(const ProgramCode& code) {
  return code.code.find("#include") == std::string::npos &&
         code.code.find("# include") == std::string::npos &&
         code.options.find("-include") == std::string::npos;
}

std::string pack_program(std::string_view key_text, std::string_view binary) {
  std::string file(kMagic);
  append_number(file, key_text.size());
  append_number(file, binary.size());
  append_number(file, fnv1a(binary, fnv1a(key_text, 0xcbf29ce484222325ULL)));
  file += key_text;
  file += binary;
  return file;
}

std::optional<std::string> unpack_program(std::string_view file, std::string_view key_text) {
  if (!file.starts_with(kMagic)) return {};
  file.remove_prefix(kMagic.size());
  if (file.size() < 3 * sizeof(std::uint64_t)) return {};
  const std::uint64_t key_size = take_number(file), binary_size = take_number(file);
  const std::uint64_t sum = take_number(file);
  if (key_size > file.size() || binary_size != file.size() - key_size) return {};
  if (file.substr(0, key_size) != key_text) return {};
  const std::string_view binary = file.substr(key_size);
  if (fnv1a(binary, fnv1a(key_text, 0xcbf29ce484222325ULL)) != sum) return {};
  return std::string(binary);
}

std::vector<std::string> files_to_remove(std::vector<CachedFile> files, Bytes limit) {
  std::sort(files.begin(), files.end(), [](const CachedFile& a, const CachedFile& b) {
    return a.used != b.used ? a.used > b.used : a.name < b.name;
  });
  std::vector<std::string> removed;
  Bytes kept = 0;
  for (const CachedFile& file : files) {
    // A file larger than what is left goes, and all that were not used for longer than it.
    if (removed.empty() && file.size <= limit - kept) {
      kept += file.size;
    } else {
      removed.push_back(file.name);
    }
  }
  return removed;
}

// Invariant (c).
bool ProgramCache::is_ours() const {
  struct stat found {};
  if (::lstat(folder_.c_str(), &found) != 0) return false;
  const bool ours = S_ISDIR(found.st_mode) && found.st_uid == ::geteuid() &&
                    (found.st_mode & (S_IWGRP | S_IWOTH)) == 0;
  if (!ours) {
    base::log_line(base::LogLevel::kWarning,
                   "the cache of compiled programs '{}' is not used: it is not a folder that only "
                   "this user can write to",
                   folder_);
  }
  return ours;
}

std::optional<std::string> ProgramCache::find(const ProgramKey& key) {
  if (folder_.empty()) return {};
  const std::string text = text_of(key);
  const std::string path = folder_ + "/" + file_name_of(text);
  // Looked for first: that a cache does not exist yet is nothing to speak of.
  if (::access(path.c_str(), R_OK) != 0 || !is_ours()) return {};
  const auto file = read_file(path);
  auto binary = file ? unpack_program(*file, text) : std::nullopt;
  if (binary) hits_.fetch_add(1, std::memory_order_relaxed);
  return binary;
}

void ProgramCache::store(const ProgramKey& key, std::string_view binary) {
  static std::atomic<std::uint32_t> number{0};  // a thread's own file: no order to anything
  if (folder_.empty() || binary.empty()) return;
  std::error_code failed;
  fs::create_directories(fs::path(folder_).parent_path(), failed);
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST) {
    base::log_line(base::LogLevel::kInfo, "no cache of compiled programs: cannot make '{}': {}",
                   folder_, std::strerror(errno));
    return;
  }
  if (!is_ours()) return;
  const std::string text = text_of(key), name = file_name_of(text);
  const std::string unfinished =
      fmt::format("{}/{}.{}.{}{}", folder_, name, ::getpid(), number.fetch_add(1), kUnfinished);
  bool written = false;
  {
    const os::Descriptor file(
        ::open(unfinished.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    written = file.valid() && write_all(file.get(), pack_program(text, binary));
  }
  if (!written || ::rename(unfinished.c_str(), (folder_ + "/" + name).c_str()) != 0) {
    base::log_line(base::LogLevel::kInfo, "cannot keep a compiled program in '{}': {}", folder_,
                   std::strerror(errno));
    ::unlink(unfinished.c_str());
    return;
  }
  stores_.fetch_add(1, std::memory_order_relaxed);
  remove_old(name);
}

// Several processes may do this at once: each removes what it saw, and that a file is gone already
// is no failure. The one that was just stored counts as used now, so it goes last.
void ProgramCache::remove_old(const std::string& kept) const {
  std::vector<CachedFile> files;
  std::error_code failed;
  const Nanos now = os::realtime_now();
  for (const auto& entry : fs::directory_iterator(folder_, failed)) {
    const std::string name = entry.path().filename().string();
    struct stat found {};
    if (::lstat(entry.path().c_str(), &found) != 0 || !S_ISREG(found.st_mode)) continue;
    const Nanos used = time_of(found.st_mtim);
    if (name.ends_with(kUnfinished)) {
      if (now - used > kAbandoned) ::unlink(entry.path().c_str());
    } else if (name.ends_with(kSuffix)) {
      files.push_back({name, static_cast<Bytes>(found.st_size), name == kept ? now : used});
    }
  }
  for (const std::string& name : files_to_remove(std::move(files), limit_)) {
    ::unlink((folder_ + "/" + name).c_str());
  }
}

std::string program_cache_folder() {
  if (const char* said = std::getenv("AMASIA_DEVICES_CACHE"); said != nullptr && *said != '\0') {
    return std::strcmp(said, "off") == 0 ? "" : said;
  }
  constexpr const char* kName = "/amasia/programs";
  // The rule of the XDG base directories: a path that is not absolute counts as not set.
  if (const char* folder = std::getenv("XDG_CACHE_HOME"); folder != nullptr && *folder == '/') {
    return std::string(folder) + kName;
  }
  if (const char* home = std::getenv("HOME"); home != nullptr && *home == '/') {
    return std::string(home) + "/.cache" + kName;
  }
  return "";
}

}  // namespace amasia::devices
