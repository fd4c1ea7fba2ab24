// SPDX-License-Identifier: Apache-2.0
// Result<T>: a value, or an operating condition (peer gone, no memory) as one sentence that names
// the thing and the value seen. Bugs of ours use AMASIA_CHECK instead.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include "base/check.hpp"

namespace amasia::base {

struct Error {
  std::string message;  // one sentence, without a full stop, that can be shown to a user
  int code = 0;         // errno where there is one, else 0
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }
  T& value() & {
    AMASIA_CHECK(ok(), "value() of a Result that holds an error");
    return std::get<0>(state_);
  }
  const T& value() const& {
    AMASIA_CHECK(ok(), "value() of a Result that holds an error");
    return std::get<0>(state_);
  }
  T&& value() && {
    AMASIA_CHECK(ok(), "value() of a Result that holds an error");
    return std::get<0>(std::move(state_));
  }
  const Error& error() const {
    AMASIA_CHECK(!ok(), "error() of a Result that holds a value");
    return std::get<1>(state_);
  }

 private:
  std::variant<T, Error> state_;
};

struct Unit {};
// What a function returns that either works or says why not.
using Status = Result<Unit>;
inline Status ok() { return Unit{}; }

// An Error whose message ends in ": " and the text of errno, which the caller passes in at once.
Error errno_error(int errno_value, std::string what);

}  // namespace amasia::base
