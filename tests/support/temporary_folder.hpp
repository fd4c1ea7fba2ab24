// SPDX-License-Identifier: Apache-2.0
// For tests that put files or sockets somewhere. Stands on the C++ library only, so that tests of
// every layer and of installed libraries have it.
#pragma once

#include <stdlib.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace amasia::tests {

// A new folder that nobody else uses, removed with all that is in it at the end of this. The test
// program ends where there can be none.
class TemporaryFolder {
 public:
  explicit TemporaryFolder(const std::string& name)
      : path_((std::filesystem::temp_directory_path() / ("amasia-" + name + "-")).string()) {
    path_.append(6, 'X');  // which mkdtemp writes over
    if (::mkdtemp(path_.data()) != nullptr) return;
    std::perror(path_.c_str());
    std::abort();
  }
  ~TemporaryFolder() {
    std::error_code gone_already;
    std::filesystem::remove_all(path_, gone_already);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  // Of something in it.
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace amasia::tests
