// SPDX-License-Identifier: Apache-2.0
#include "os/private_directory.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "support/temporary_folder.hpp"

namespace amasia::os {
namespace {

class PrivateDirectory : public testing::Test {
 protected:
  const tests::TemporaryFolder folder_{"directory"};
  const std::string path_ = folder_ / "own";
};

// As daemons that come and go: each removes the directory at its end, under its lock.
TEST_F(PrivateDirectory, OneHasTheLockAlsoWhereOthersRemoveTheDirectory) {
  constexpr int kThreads = 4, kRounds = 300;
  std::atomic<int> inside{0};
  std::atomic<bool> failed{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < kRounds && !failed; ++round) {
        const auto lock = lock_private_directory(path_, 0700);
        if (!lock.ok()) {
          ADD_FAILURE() << lock.error().message;
          failed = true;
          return;
        }
        EXPECT_EQ(inside.fetch_add(1), 0);
        inside.fetch_sub(1);
        EXPECT_EQ(::rmdir(path_.c_str()), 0);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(PrivateDirectory, HasThePermissionsAskedFor) {
  ASSERT_TRUE(lock_private_directory(path_, 0750).ok());
  struct stat state{};
  ASSERT_EQ(::stat(path_.c_str(), &state), 0);
  EXPECT_EQ(state.st_mode & 07777, 0750u);
}

TEST_F(PrivateDirectory, WhatIsNotAnOwnDirectoryIsRefused) {
  std::ofstream(path_) << "a file";
  EXPECT_EQ(lock_private_directory(path_, 0700).error().code, EPERM);
  std::filesystem::remove(path_);
  ASSERT_EQ(::mkdir(path_.c_str(), 0700), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0777), 0);
  EXPECT_EQ(lock_private_directory(path_, 0700).error().code, EPERM);
  EXPECT_EQ(lock_private_directory(folder_ / "not/there", 0700).error().code, ENOENT);
}

}  // namespace
}  // namespace amasia::os
