// SPDX-License-Identifier: Apache-2.0
// exec on the origin, outside of a child: the program is replaced, so the job ends first, in order,
// and the new program runs alone with the streams and the process number of the origin.
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "omp/frame.hpp"
#include "omp/launch/node_process.hpp"
#include "omp/launch/process.hpp"
#include "omp/launch/threads.hpp"
#include "omp/real.hpp"
#include "os/os.hpp"

#define AMASIA_EXPORT extern "C" __attribute__((visibility("default")))

namespace amasia::omp {
namespace {

// The file that execvp would run; empty: none that can be executed, so exec will fail.
std::string executable_in_path(const char* file) {
  if (std::strchr(file, '/') != nullptr) return access(file, X_OK) == 0 ? file : "";
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "/bin:/usr/bin" : path;
  folders += ':';
  for (std::size_t at = 0; at < folders.size();) {
    const auto end = folders.find(':', at);
    const std::string folder = end == at ? "." : folders.substr(at, end - at);
    const std::string candidate = folder + "/" + file;
    if (access(candidate.c_str(), X_OK) == 0) return candidate;
    at = end + 1;
  }
  return "";
}

// A child of vfork shares this memory and is not the origin; a child of fork has no node.
bool ends_the_job() {
  return process.node.load(std::memory_order_acquire) != nullptr && getpid() == process.id &&
         process.space.self() == base::kOrigin;
}

using Execute = int(const char*, char* const*, char* const*);

// Copies of all strings: managed memory is served by nobody once the job has ended.
std::vector<std::string> strings_of(char* const* list) {
  std::vector<std::string> strings;
  for (; list != nullptr && *list != nullptr; ++list) strings.emplace_back(*list);
  return strings;
}

// The nodes were started for this program, and the new one has none.
void tell_of_lost_nodes(const std::string& path, std::uint32_t nodes) {
  if (nodes == 1) return;
  base::log_line(base::LogLevel::kWarning,
                 "the program has executed '{}' in its own place (exec): the job of {} nodes ends, "
                 "and what follows runs on node 0 alone",
                 path, nodes);
}

std::vector<char*> pointers_to(std::vector<std::string>& strings) {
  std::vector<char*> list;
  for (std::string& text : strings) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

int execute(const char* file, char* const* arguments, char* const* environment) {
  static constinit Real<Execute> real{"execve"};
  if (!ends_the_job() || access(file, X_OK) != 0) return real(file, arguments, environment);
  std::string path = file;
  std::vector<std::string> texts = strings_of(arguments);
  std::vector<std::string> settings = strings_of(environment);
  NodeProcess* const node = process.node.exchange(nullptr, std::memory_order_acq_rel);
  node->finish_output();
  set_process_node(nullptr);
  os::in_runtime_section([&] {
    tell_of_lost_nodes(path, node->node().node_count());
    node->end_in_order();
    real(path.c_str(), pointers_to(texts).data(), pointers_to(settings).data());
    base::log_line(base::LogLevel::kError,
                   "the job has ended for exec, and '{}' cannot be executed: {}", path,
                   strerrordesc_np(errno));
    real_exit_now(127);
  });
  return -1;
}

int execute_in_path(const char* file, char* const* arguments, char* const* environment) {
  static constinit Real<Execute> real{"execvpe"};
  const std::string path = ends_the_job() ? executable_in_path(file) : "";
  return path.empty() ? real(file, arguments, environment)
                      : execute(path.c_str(), arguments, environment);
}

// The argument list of execl and its kin, up to and without its null pointer.
std::vector<char*> collect(const char* first, va_list& rest) {
  std::vector<char*> arguments;
  for (const char* next = first; next != nullptr; next = va_arg(rest, const char*)) {
    arguments.push_back(const_cast<char*>(next));
  }
  arguments.push_back(nullptr);
  return arguments;
}

}  // namespace
}  // namespace amasia::omp

using namespace amasia::omp;  // NOLINT: the C entry points below are in no namespace

AMASIA_EXPORT int execve(const char* file, char* const* arguments,
                         char* const* environment) noexcept {
  return execute(file, arguments, environment);
}

AMASIA_EXPORT int execv(const char* file, char* const* arguments) noexcept {
  return execute(file, arguments, environ);
}

AMASIA_EXPORT int execvp(const char* file, char* const* arguments) noexcept {
  return execute_in_path(file, arguments, environ);
}

AMASIA_EXPORT int execvpe(const char* file, char* const* arguments,
                          char* const* environment) noexcept {
  return execute_in_path(file, arguments, environment);
}

AMASIA_EXPORT int execl(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const std::vector<char*> arguments = collect(first, rest);
  va_end(rest);
  return execute(file, arguments.data(), environ);
}

AMASIA_EXPORT int execlp(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const std::vector<char*> arguments = collect(first, rest);
  va_end(rest);
  return execute_in_path(file, arguments.data(), environ);
}

AMASIA_EXPORT int execle(const char* file, const char* first, ...) noexcept {
  va_list rest;
  va_start(rest, first);
  const std::vector<char*> arguments = collect(first, rest);
  char* const* const environment = va_arg(rest, char* const*);
  va_end(rest);
  return execute(file, arguments.data(), environment);
}
