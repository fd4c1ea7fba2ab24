// SPDX-License-Identifier: Apache-2.0
// Files in a folder of their own, with each engine that this kernel has.
#include "amasia/storage.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>

#include "modules/storage/engine.hpp"
#include "support/temporary_folder.hpp"

namespace amasia::storage {
namespace {

using Bytes = std::vector<unsigned char>;

Bytes content(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}
void put_content(const std::string& file, const Bytes& bytes) {
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}
Bytes pattern(std::size_t bytes, unsigned seed) {
  std::mt19937 random(seed);
  Bytes made(bytes);
  for (auto& byte : made) byte = static_cast<unsigned char>(random());
  return made;
}

class Storage : public ::testing::TestWithParam<engine_kind> {
 protected:
  void SetUp() override {
    if (GetParam() == engine_kind::io_uring && make_ring_engine() == nullptr) {
      GTEST_SKIP() << "this kernel has no io_uring for us";
    }
  }
  std::string path(const std::string& name) const { return folder / name; }
  std::size_t files() const {
    const std::filesystem::directory_iterator begin(folder.path());
    return static_cast<std::size_t>(std::distance(begin, {}));
  }
  template <typename Body>
  void run(Body body) {
    tasks::runtime workers({.workers = 2});
    library storage(workers, GetParam());
    EXPECT_EQ(storage.engine(), GetParam());
    workers.run([&] { body(storage); });
  }
  const tests::TemporaryFolder folder{"storage"};
};
INSTANTIATE_TEST_SUITE_P(Engines, Storage,
                         ::testing::Values(engine_kind::threads, engine_kind::io_uring));

TEST_P(Storage, WritesAndReadsAtOffsets) {
  run([&](library& storage) {
    const Bytes out = pattern(9'000'000, 1);  // several requests
    Bytes in(out.size() - 1000);
    storage.write(path("a"), out.data(), out.size()).get();
    storage.read(path("a"), in.data(), in.size(), 1000).get();
    EXPECT_TRUE(std::equal(in.begin(), in.end(), out.begin() + 1000));
    storage.write(path("a"), "xyz", 3, 5).get();
    EXPECT_EQ(content(path("a"))[6], 'y');
    EXPECT_EQ(content(path("a")).size(), out.size());
  });
}

TEST_P(Storage, ManyAtOnceBesideOtherWork) {
  run([&](library& storage) {
    std::vector<Bytes> out, in;
    for (unsigned n = 0; n < 200; ++n) {
      out.push_back(pattern(1 + n * 100, n));
      in.emplace_back(out.back().size());
    }
    std::atomic<long> sum{0};
    tasks::finish([&] {
      for (std::size_t n = 0; n < out.size(); ++n) {
        const std::string file = path(std::to_string(n));
        const auto there = storage.replace(file, out[n].data(), out[n].size());
        tasks::async_await(
            [&, n, file, there] {
              there.get();
              storage.read(file, in[n].data(), in[n].size());
            },
            there);
      }
      tasks::forasync(0, 1000, [&](std::ptrdiff_t n) { sum += n; });
    });
    EXPECT_EQ(sum.load(), 999 * 1000 / 2);
    EXPECT_EQ(in, out);
    EXPECT_EQ(files(), 200u);
  });
}

TEST_P(Storage, ErrorsHaveFileAndErrno) {
  run([&](library& storage) {
    char byte = 0;
    const auto expect = [](const future<void>& done, const std::string& file, int code,
                           const std::string& text) {
      try {
        done.get();
        ADD_FAILURE() << text;
      } catch (const error& failure) {
        EXPECT_EQ(failure.file(), file);
        EXPECT_EQ(failure.code(), code);
        EXPECT_EQ(std::string(failure.what()), "storage: '" + file + "' " + text);
      }
    };
    expect(storage.read(path("none"), &byte, 1), path("none"), ENOENT,
           "cannot be opened: No such file or directory");
    expect(storage.write(folder.path(), &byte, 1), folder.path(), EISDIR,
           "cannot be opened: Is a directory");
    expect(storage.replace(path("no/file"), &byte, 1), path("no/file"), ENOENT,
           "cannot be made anew: No such file or directory");
    std::filesystem::create_directory(path("folder"));
    expect(storage.replace(path("folder"), &byte, 1), path("folder"), EISDIR,
           "cannot be replaced: Is a directory");
    storage.write(path("a"), "ab", 2).get();
    Bytes three(3);
    expect(storage.read(path("a"), three.data(), 3), path("a"), 0,
           "ends after 2 bytes, too early");
    EXPECT_EQ(files(), 2u);  // "a", "folder": what was begun beside them is gone
  });
}

TEST_P(Storage, CheckpointsAreRestoredWhole) {
  run([&](library& storage) {
    std::vector<double> field(100'000);
    std::iota(field.begin(), field.end(), 0.5);
    long step = 17;
    Bytes none;
    const std::vector<region> regions{
        {&step, sizeof step}, {none.data(), 0}, {field.data(), field.size() * sizeof(double)}};
    storage.checkpoint(path("state"), regions).get();
    const std::vector<double> before = field;
    step = 0;
    std::fill(field.begin(), field.end(), 0);
    storage.restore(path("state"), regions).get();
    EXPECT_EQ(step, 17);
    EXPECT_EQ(field, before);
    EXPECT_EQ(files(), 1u);
  });
}

// Every byte of a checkpoint changed, and every length that it may be cut to.
TEST_P(Storage, NoChangedCheckpointIsRestored) {
  run([&](library& storage) {
    Bytes data = pattern(41, 3);
    int step = 4;
    const std::vector<region> regions{{&step, sizeof step}, {data.data(), data.size()}};
    storage.checkpoint(path("good"), regions).get();
    const Bytes good = content(path("good"));
    for (std::size_t at = 0; at < good.size(); ++at) {
      Bytes bad = good;
      bad[at] ^= 0x10;
      put_content(path("bad"), bad);
      EXPECT_THROW(storage.restore(path("bad"), regions).get(), error) << at;
      put_content(path("bad"), Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(at)));
      EXPECT_THROW(storage.restore(path("bad"), regions).get(), error) << at;
    }
    Bytes longer = good;
    longer.push_back(0);
    put_content(path("bad"), longer);
    EXPECT_THROW(storage.restore(path("bad"), regions).get(), error);
    storage.restore(path("good"), regions).get();
  });
}

// A process that does nothing but replace a checkpoint is killed at any moment: the file is whole.
TEST_P(Storage, KilledInTheMiddleLeavesAWholeFile) {
  constexpr std::size_t kWords = 200'000;
  std::vector<long> words(kWords, 0);
  const std::vector<region> regions{{words.data(), kWords * sizeof(long)}};
  run([&](library& storage) { storage.checkpoint(path("state"), regions).get(); });
  std::mt19937 random(5);
  long last = 0;
  for (int round = 0; round < 15; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      tasks::runtime workers({.workers = 1});
      library storage(workers, GetParam());
      workers.run([&] {
        for (long version = last + 1;; ++version) {
          std::fill(words.begin(), words.end(), version);
          storage.checkpoint(path("state"), regions).get();
        }
      });
    }
    usleep(static_cast<useconds_t>(random() % 30'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    ASSERT_TRUE(WIFSIGNALED(status));
    run([&](library& storage) { storage.restore(path("state"), regions).get(); });
    EXPECT_EQ(std::count(words.begin(), words.end(), words[0]), static_cast<long>(kWords));
    EXPECT_GE(words[0], last);
    last = words[0];
  }
}

}  // namespace
}  // namespace amasia::storage
