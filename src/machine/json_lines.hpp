// SPDX-License-Identifier: Apache-2.0
// In which line of a JSON text a value is, to tell users where they went wrong. Pure.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace amasia::machine {

// Lines count from 1.
std::size_t line_of_byte(std::string_view text, std::size_t byte);

// The line in which the value of that path begins ("workers[0].pop[1]", "" for the whole), or the
// nearest one around it that is there. The text is JSON.
std::size_t line_of_value(std::string_view text, std::string_view path);

}  // namespace amasia::machine
