// SPDX-License-Identifier: Apache-2.0
#include "devices/backends/program_cache.hpp"
#include "support/temporary_folder.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <thread>


namespace amasia::devices {
namespace {

namespace fs = std::filesystem;

struct Folder {
  std::string programs() const { return folder / "programs"; }
  const tests::TemporaryFolder folder{"cache-test"};
};

ProgramKey key_of(std::string code, std::string options = "") {
  return {"opencl", "a device", "3.1", ProgramKind::kSource,
          std::move(options), std::move(code)};
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  return names;
}

TEST(ProgramCache, gives_back_what_was_stored_and_nothing_for_another_key) {
  const Folder folder;
  ProgramCache cache(folder.programs());
  EXPECT_EQ(cache.find(key_of("a")), std::nullopt);
  const std::string binary("\0binary\n", 8);
  cache.store(key_of("a"), binary);
  EXPECT_EQ(cache.find(key_of("a")), binary);
  EXPECT_EQ(cache.hits(), 1U);

  // Each part of the key matters, and parts do not run into one another.
  ProgramKey other = key_of("a");
  other.backend = "cuda";
  EXPECT_EQ(cache.find(other), std::nullopt);
  other = key_of("a");
  other.device = "another device";
  EXPECT_EQ(cache.find(other), std::nullopt);
  other = key_of("a");
  other.driver = "3.2";
  EXPECT_EQ(cache.find(other), std::nullopt);
  other = key_of("a");
  other.kind = ProgramKind::kSpirv;
  EXPECT_EQ(cache.find(other), std::nullopt);
  EXPECT_EQ(cache.find(key_of("a", "-O0")), std::nullopt);
  EXPECT_NE(text_of(key_of("ab", "c")), text_of(key_of("b", "ca")));
  EXPECT_NE(text_of(key_of("1:x", "")), text_of(key_of("x", "1:")));
  EXPECT_EQ(cache.hits(), 1U);
}

TEST(ProgramCache, a_file_of_another_key_under_the_same_name_is_not_taken) {
  const std::string mine = text_of(key_of("mine")), yours = text_of(key_of("yours"));
  EXPECT_EQ(unpack_program(pack_program(mine, "code"), mine), "code");
  EXPECT_EQ(unpack_program(pack_program(yours, "code"), mine), std::nullopt);
}

TEST(ProgramCache, every_cut_and_every_changed_byte_is_noticed) {
  const std::string key = text_of(key_of("kernel void f() {}"));
  const std::string whole = pack_program(key, "some binary code");
  for (std::size_t length = 0; length < whole.size(); ++length) {
    EXPECT_EQ(unpack_program(whole.substr(0, length), key), std::nullopt) << length;
  }
  EXPECT_EQ(unpack_program(whole + "x", key), std::nullopt);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    for (const int bit : {0, 3, 7}) {
      std::string changed = whole;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      EXPECT_EQ(unpack_program(changed, key), std::nullopt) << at;
    }
  }
}

TEST(ProgramCache, removes_the_longest_unused_first) {
  std::mt19937 random(4);  // NOLINT: seeded on purpose
  for (int round = 0; round < 500; ++round) {
    std::vector<CachedFile> files;
    const std::size_t count = random() % 8;
    for (std::size_t i = 0; i < count; ++i) {
      files.push_back({std::to_string(i), random() % 50, static_cast<Nanos>(random() % 10)});
    }
    const Bytes limit = random() % 150;
    const auto list = files_to_remove(files, limit);
    const std::set<std::string> removed(list.begin(), list.end());
    Bytes kept = 0, oldest_kept_time = 100, newest_removed_size = 0;
    Nanos newest_removed = -1;
    for (const CachedFile& file : files) {
      if (removed.contains(file.name)) {
        if (file.used > newest_removed) newest_removed_size = file.size;
        newest_removed = std::max(newest_removed, file.used);
      } else {
        kept += file.size;
        oldest_kept_time = std::min<Bytes>(oldest_kept_time, static_cast<Bytes>(file.used));
      }
    }
    EXPECT_LE(kept, limit);
    if (newest_removed >= 0 && kept > 0) {
      EXPECT_LE(static_cast<Bytes>(newest_removed), oldest_kept_time);
    }
    // No more goes than must: the newest one that went would not have fitted.
    if (removed.size() == 1) {
      EXPECT_GT(kept + newest_removed_size, limit);
    }
  }
}

TEST(ProgramCache, the_folder_stays_within_its_limit) {
  const Folder folder;
  const std::string binary(1000, 'b');
  ProgramCache cache(folder.programs(), 5000);
  for (int i = 0; i < 20; ++i) cache.store(key_of(std::to_string(i)), binary);
  Bytes size = 0;
  for (const auto& entry : fs::directory_iterator(folder.programs())) size += entry.file_size();
  EXPECT_LE(size, 5000U);
  EXPECT_NE(cache.find(key_of("19")), std::nullopt);
  EXPECT_EQ(cache.find(key_of("0")), std::nullopt);
}

TEST(ProgramCache, writers_and_readers_in_several_processes_see_whole_programs_only) {
  const Folder folder;
  const auto binary_of = [](int program) {
    return std::string(20000 + static_cast<std::size_t>(program), static_cast<char>('a' + program));
  };
  std::vector<pid_t> children;
  for (int child = 0; child < 4; ++child) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      ProgramCache cache(folder.programs(), 90000);
      int wrong = 0;
      for (int i = 0; i < 100; ++i) {
        const int program = (i * 7 + child) % 6;
        const auto found = cache.find(key_of(std::to_string(program)));
        if (found && *found != binary_of(program)) ++wrong;
        if (!found) cache.store(key_of(std::to_string(program)), binary_of(program));
      }
      ::_exit(wrong == 0 ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (const pid_t pid : children) {
    int status = -1;
    ASSERT_EQ(::waitpid(pid, &status, 0), pid);
    EXPECT_EQ(status, 0);
  }
  for (const std::string& name : names_in(folder.programs())) {
    EXPECT_TRUE(name.ends_with(".program")) << name;
  }
}

TEST(ProgramCache, what_a_killed_writer_left_is_not_read_and_goes_in_time) {
  const Folder folder;
  ProgramCache cache(folder.programs());
  cache.store(key_of("a"), "binary");
  const std::string old = folder.programs() + "/x.program.1.1.part";
  const std::string fresh = folder.programs() + "/y.program.2.1.part";
  std::ofstream(old) << "half";
  std::ofstream(fresh) << "half";
  const struct timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, old.c_str(), long_ago, 0), 0);
  cache.store(key_of("b"), "binary");
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(fresh));  // its writer may be at work
  EXPECT_EQ(cache.find(key_of("a")), "binary");
}

TEST(ProgramCache, a_folder_that_others_can_write_to_is_not_used) {
  const Folder folder;
  ProgramCache cache(folder.programs());
  cache.store(key_of("a"), "binary");
  ASSERT_EQ(::chmod(folder.programs().c_str(), 0777), 0);
  EXPECT_EQ(cache.find(key_of("a")), std::nullopt);
  cache.store(key_of("b"), "binary");
  EXPECT_EQ(cache.stores(), 1U);
  ASSERT_EQ(::chmod(folder.programs().c_str(), 0700), 0);
  EXPECT_EQ(cache.find(key_of("a")), "binary");
}

TEST(ProgramCache, programs_that_include_files_are_known) {
  EXPECT_TRUE(is_self_contained({ProgramKind::kSource, "kernel void f() {}", "", "-DX=1"}));
  EXPECT_FALSE(is_self_contained({ProgramKind::kSource, "#include \"a.h\"\n", "", ""}));
  EXPECT_FALSE(is_self_contained({ProgramKind::kSource, "", "", "-include a.h"}));
}

}  // namespace
}  // namespace amasia::devices
