# A folder under src/ is a layer: a namespace, a static library `amasia_<layer>` and a unit-test binary `<layer>_test`
# that links the layer and those below it only. src/LAYERS is the one place that says which those are.

# The interface target that carries warnings, sanitizers and definitions shared by all of our own code.
add_library(amasia_compile INTERFACE)
target_include_directories(amasia_compile INTERFACE ${CMAKE_SOURCE_DIR}/src ${CMAKE_SOURCE_DIR}/include)
target_compile_options(amasia_compile INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wnon-virtual-dtor -Wimplicit-fallthrough
    -Wno-missing-field-initializers>  # designated initialisers leave the rest at its default
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CXX_COMPILER_ID:Clang>>:-Wthread-safety>
  $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<BOOL:${AMASIA_WERROR}>>:-Werror>
  # The runtime is preloaded, never opened late, and malloc reads thread-local variables.
  -fno-omit-frame-pointer -ftls-model=initial-exec)
target_link_libraries(amasia_compile INTERFACE Threads::Threads)
if(AMASIA_SANITIZE)
  target_compile_options(amasia_compile INTERFACE -fsanitize=${AMASIA_SANITIZE})
  target_link_options(amasia_compile INTERFACE -fsanitize=${AMASIA_SANITIZE})
endif()

# Sets <out> to the layers that <layer> may use, lowest first.
function(amasia_layer_uses layer out)
  file(STRINGS ${CMAKE_SOURCE_DIR}/src/LAYERS lines REGEX "^${layer}:")
  if(NOT lines)
    message(FATAL_ERROR "src/LAYERS has no line for the layer '${layer}'")
  endif()
  string(REGEX REPLACE "^${layer}: *" "" uses "${lines}")
  string(REGEX MATCHALL "[a-z]+" uses "${uses}")
  set(${out} ${uses} PARENT_SCOPE)
endfunction()

# amasia_layer(<layer> [LIBRARIES third-party targets...] [EXCLUDE <regex>])
# Sources are all *.cpp and *.S below the folder; *_test.cpp go to <layer>_test, *_bench.cpp to one binary each.
# EXCLUDE leaves out sources that define symbols of other libraries (malloc, __kmpc_*, ...): in an archive they would
# silently replace those in every test; only the preloadable libraries link them.
function(amasia_layer layer)
  cmake_parse_arguments(arg "" "EXCLUDE" "LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/*.S)
  if(arg_EXCLUDE)
    list(FILTER sources EXCLUDE REGEX "${arg_EXCLUDE}")
  endif()
  set(tests ${sources})
  set(benches ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "_(test|bench)\\.cpp$")
  amasia_layer_uses(${layer} uses)
  set(used_libraries)
  foreach(used ${uses})  # a layer that has no library yet has nothing to link
    if(EXISTS ${CMAKE_SOURCE_DIR}/src/${used}/CMakeLists.txt)
      list(APPEND used_libraries amasia_${used})
    endif()
  endforeach()
  if(NOT sources)  # a layer of headers only still is a library, so that whoever uses it need not know
    file(GENERATE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp CONTENT "")
    set(sources ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(amasia_${layer} STATIC ${sources})
  target_link_libraries(amasia_${layer} PUBLIC ${used_libraries} amasia_compile PRIVATE ${arg_LIBRARIES})
  amasia_read_headers(amasia_${layer} amasia_library_headers)
  if(tests)
    add_executable(${layer}_test ${tests})
    target_link_libraries(${layer}_test PRIVATE amasia_${layer} GTest::gtest GTest::gtest_main)
    amasia_compile_as_test(${layer}_test)
    add_test(NAME ${layer} COMMAND ${layer}_test)
    set_tests_properties(${layer} PROPERTIES LABELS layer TIMEOUT 300)
  endif()
  foreach(bench ${benches})
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} ${bench})
    target_link_libraries(${name} PRIVATE amasia_${layer})
  endforeach()
endfunction()
