// SPDX-License-Identifier: Apache-2.0
// What the user asked to run: where it is, and whether it can be run across nodes.
#pragma once

#include <string>
#include <vector>

#include "base/base.hpp"
#include "launch/launch.hpp"

namespace amasia::tools {

enum class ProgramKind {
  kElf,     // an executable of this machine
  kScript,  // text that an interpreter runs
};

struct Program {
  std::string path;  // as it will be executed
  ProgramKind kind = ProgramKind::kElf;
  bool dynamic = false;     // it names a loader, so that a library can be preloaded
  bool privileged = false;  // setuid, setgid or file capabilities: the loader ignores preloads
  std::string loader;
};

// As execvp looks: a name with a slash is a path, else the first executable of that name on `PATH`.
// The error is the sentence for the user: not there, a folder, not executable, for another
// architecture, not a program. Static and privileged programs are no errors here.
Result<Program> find_program(const std::string& name, const char* search_path);

// Why the program cannot run on several nodes, as a sentence; "" if nothing speaks against it.
std::string why_not_across_nodes(const Program& program);

struct LinkedLibrary {
  std::string name;  // as the program asks for it
  std::string path;  // "": not found
};

// All libraries that the loader would load, told by the program's own loader, which also knows its
// search paths. An error if it cannot tell. Starts a process that ends by itself.
Result<std::vector<LinkedLibrary>> linked_libraries(const Program& program);

struct OpenMpUse {
  launch::OpenMpRuntime runtime = launch::OpenMpRuntime::kNone;
  LinkedLibrary library;
};
// The runtime among the libraries; libomp where there are both, as in a running process.
OpenMpUse openmp_use(const std::vector<LinkedLibrary>& libraries);

}  // namespace amasia::tools
