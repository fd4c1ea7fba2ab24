# Half of what compiling takes here is reading the headers of other libraries: they are read once (docs/decisions/build.md).
# Every source still includes what it uses; a build with -DAMASIA_PRECOMPILED_HEADERS=OFF shows which does not.
option(AMASIA_PRECOMPILED_HEADERS "Read the headers of other libraries once for all sources" ON)

set(amasia_common_headers <algorithm> <array> <atomic> <cmath> <cstdint> <cstring> <deque> <filesystem> <fstream> <functional>
  <map> <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <vector>
  <fmt/format.h>)
# Tests run once for each time that they are compiled.
set(amasia_test_options $<$<NOT:$<CONFIG:Debug>>:-O1>)

# amasia_headers(<target> [HEADERS <more>...] [OPTIONS ...] [LIBRARIES ...])
# What targets of the same compile options may read their headers from.
function(amasia_headers target)
  cmake_parse_arguments(arg "" "" "HEADERS;OPTIONS;LIBRARIES" ${ARGN})
  file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/${target}.cpp CONTENT "")
  add_library(${target} OBJECT ${CMAKE_BINARY_DIR}/${target}.cpp)
  target_link_libraries(${target} PRIVATE amasia_compile ${arg_LIBRARIES})
  target_precompile_headers(${target} PRIVATE ${amasia_common_headers} ${arg_HEADERS})
  # So that a compiler cache can tell by their content whether they have changed.
  target_compile_options(${target} PRIVATE ${arg_OPTIONS}
    $<$<CXX_COMPILER_ID:Clang>:SHELL:-Xclang -fno-pch-timestamp> $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess>)
endfunction()

if(AMASIA_PRECOMPILED_HEADERS)
  amasia_headers(amasia_library_headers)
  # -fPIE: as executables are compiled.
  amasia_headers(amasia_test_headers HEADERS <gtest/gtest.h> OPTIONS -fPIE ${amasia_test_options} LIBRARIES GTest::gtest)
  set_target_properties(amasia_test_headers PROPERTIES POSITION_INDEPENDENT_CODE OFF)
endif()

# amasia_read_headers(<target> <from>): <from> is amasia_library_headers or amasia_test_headers.
function(amasia_read_headers target from)
  if(AMASIA_PRECOMPILED_HEADERS)
    target_precompile_headers(${target} REUSE_FROM ${from})
    # With them gcc 12 warns, wrongly, of what std::string does inside (its bug 105329). clang has that warning, too.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-fpch-preprocess -Wno-array-bounds>)
  endif()
endfunction()

# What every unit test of a layer or a module is compiled like.
function(amasia_compile_as_test target)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/tests)  # what tests share is in tests/support
  target_compile_options(${target} PRIVATE ${amasia_test_options})
  amasia_read_headers(${target} amasia_test_headers)
endfunction()
