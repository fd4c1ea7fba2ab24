# SPDX-License-Identifier: Apache-2.0
# find_package(amasia-tasks [version] [COMPONENTS mpi nodes storage openshmem devices cuda]): the target
# amasia::amasia-tasks, and amasia::amasia-tasks-<component> for each module that is asked for. What a module
# stands on is looked for only then.
include(${CMAKE_CURRENT_LIST_DIR}/amasia-tasksTargets.cmake)

set(amasia-tasks_NOT_FOUND_MESSAGE "")
foreach(amasia_component IN LISTS amasia-tasks_FIND_COMPONENTS)
  set(amasia-tasks_${amasia_component}_FOUND FALSE)
  if(EXISTS ${CMAKE_CURRENT_LIST_DIR}/amasia-tasks-${amasia_component}.cmake)
    include(${CMAKE_CURRENT_LIST_DIR}/amasia-tasks-${amasia_component}.cmake)
  else()
    file(GLOB amasia_installed RELATIVE ${CMAKE_CURRENT_LIST_DIR} ${CMAKE_CURRENT_LIST_DIR}/amasia-tasks-*Targets.cmake)
    string(REGEX REPLACE "amasia-tasks-([a-z]+)Targets.cmake" "\\1" amasia_installed "${amasia_installed}")
    list(JOIN amasia_installed ", " amasia_installed)
    set(amasia_missing "there is no component '${amasia_component}' in this installation, which has: ${amasia_installed}")
  endif()
  if(NOT amasia-tasks_${amasia_component}_FOUND AND amasia-tasks_FIND_REQUIRED_${amasia_component})
    set(amasia-tasks_FOUND FALSE)
    string(APPEND amasia-tasks_NOT_FOUND_MESSAGE "${amasia_missing}. ")
  endif()
endforeach()
unset(amasia_component)
unset(amasia_installed)
unset(amasia_missing)
