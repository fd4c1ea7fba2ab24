// SPDX-License-Identifier: Apache-2.0
#include "amasia/mpi.hpp"

#include <algorithm>

namespace amasia::mpi {
namespace {

constexpr std::size_t kOldest = 16;  // tested before all others

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  if (MPI_Error_string(code, text, &length) != MPI_SUCCESS) length = 0;
  return std::string(text, static_cast<std::size_t>(length));
}

void must(const char* operation, int code) {
  if (code != MPI_SUCCESS) throw error(operation, code);
}

}  // namespace

error::error(const char* operation, int mpi_code)
    : std::runtime_error(std::string("mpi: ") + operation + ": " + text_of(mpi_code)),
      code_(mpi_code) {}

library::library(tasks::runtime& workers, int* argc, char*** argv)
    : workers_(workers), argc_(argc), argv_(argv) {
  workers_.attach(*this);
}
library::~library() { workers_.detach(*this); }

void library::initialise(tasks::module_host& host) {
  int initialised = 0, provided = MPI_THREAD_SINGLE, is_main = 1;
  MPI_Initialized(&initialised);
  if (initialised == 0) {
    must("MPI_Init_thread", MPI_Init_thread(argc_, argv_, MPI_THREAD_FUNNELED, &provided));
    finalises_ = true;
  } else {
    MPI_Query_thread(&provided);
    MPI_Is_thread_main(&is_main);
  }
  if (provided < MPI_THREAD_FUNNELED || is_main == 0) {
    if (finalises_) MPI_Finalize();
    throw std::runtime_error(is_main == 0 ? "mpi: MPI was initialised by another thread than the "
                                            "one that attaches the module (it must be the same)"
                                          : "mpi: MPI gives MPI_THREAD_SINGLE (needed is "
                                            "MPI_THREAD_FUNNELED or more)");
  }
  must("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  must("MPI_Comm_set_errhandler", MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN));
  host_ = &host;
}

void library::finalise() noexcept {
  if (finalises_) MPI_Finalize();
}

int library::rank(MPI_Comm comm) const {
  int rank = 0;
  must("MPI_Comm_rank", MPI_Comm_rank(comm, &rank));
  return rank;
}
int library::size(MPI_Comm comm) const {
  int size = 0;
  must("MPI_Comm_size", MPI_Comm_size(comm, &size));
  return size;
}

void library::put(const char* name, int code, tasks::promise<void>& result) noexcept {
  code == MPI_SUCCESS ? result.put() : result.fail(std::make_exception_ptr(error(name, code)));
}

void library::complete(Operation& operation, int code, const MPI_Status& status) noexcept {
  if (code == MPI_SUCCESS) {
    operation.result.put(status);
  } else {
    operation.result.fail(std::make_exception_ptr(error(operation.name, code)));
  }
  operation.held.release();
}

void library::started(Begun then, Operation operation, MPI_Request request, int code) noexcept {
  MPI_Status status{};
  int over = code == MPI_SUCCESS ? 0 : 1;
  if (over == 0 && then == kTest) code = MPI_Test(&request, &over, &status);
  if (code != MPI_SUCCESS || over != 0) return complete(operation, code, status);
  requests_.push_back(request);
  operations_.push_back(std::move(operation));
  ++active_;
  host_->poll_me();
}

tasks::poll_result library::poll() noexcept {
  if (active_ == 0) return tasks::poll_result::nothing_left;
  // The oldest are over first, most often; a test looks at every request that it is given.
  const std::size_t few = std::min(first_ + kOldest, requests_.size());
  bool some = test(first_, few);
  if (!some && few < requests_.size()) some = test(few, requests_.size());
  forget_those_over();
  if (active_ == 0) return tasks::poll_result::nothing_left;
  return some ? tasks::poll_result::some_completed : tasks::poll_result::none_completed;
}

// Completes those from `begin` to `end` that are over. True: there were some.
bool library::test(std::size_t begin, std::size_t end) noexcept {
  over_.resize(end - begin);
  statuses_.resize(end - begin);
  int over = 0;
  const int code = MPI_Testsome(static_cast<int>(end - begin), &requests_[begin], &over,
                                over_.data(), statuses_.data());
  if (code != MPI_SUCCESS && code != MPI_ERR_IN_STATUS) {  // not of one operation: all have failed
    for (std::size_t n = begin; n < end; ++n) {
      if (requests_[n] == MPI_REQUEST_NULL) continue;
      requests_[n] = MPI_REQUEST_NULL;
      complete(operations_[n], code, {});
      --active_;
    }
    return true;
  }
  for (int n = 0; n < over; ++n) {  // MPI_UNDEFINED, where none was under way, is negative
    const auto at = static_cast<std::size_t>(n);
    complete(operations_[begin + static_cast<std::size_t>(over_[at])],
             code == MPI_SUCCESS ? code : statuses_[at].MPI_ERROR, statuses_[at]);
    --active_;
  }
  return over > 0;
}

// MPI has put MPI_REQUEST_NULL in their places, and skips these. They are taken out when they are
// the larger part: for each operation few are moved.
void library::forget_those_over() noexcept {
  while (first_ < requests_.size() && requests_[first_] == MPI_REQUEST_NULL) ++first_;
  if (active_ != 0 && requests_.size() <= 2 * active_ + kOldest) return;
  std::size_t kept = 0;
  for (std::size_t n = first_; n < requests_.size(); ++n) {
    if (requests_[n] == MPI_REQUEST_NULL) continue;
    requests_[kept] = requests_[n];
    operations_[kept] = std::move(operations_[n]);
    ++kept;
  }
  first_ = 0;
  requests_.resize(kept);
  operations_.erase(operations_.begin() + static_cast<std::ptrdiff_t>(kept), operations_.end());
}

}  // namespace amasia::mpi
