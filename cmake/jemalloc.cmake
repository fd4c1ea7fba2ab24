# jemalloc as a private part of our libraries: the members of Debian's libjemalloc_pic.a that hold the C interface, in
# one object whose only global symbols are amasia_je_*. Neither the program nor another library can meet it, and its
# settings come from us alone (no MALLOC_CONF, no /etc/malloc.conf): those are for the program's own jemalloc.
find_library(AMASIA_JEMALLOC_ARCHIVE NAMES libjemalloc_pic.a REQUIRED)
find_path(AMASIA_JEMALLOC_INCLUDE jemalloc/jemalloc.h REQUIRED)
# The GNU tools whichever compiler is used: ld.lld, which CMake takes with clang, links nothing from an archive alone.
find_program(AMASIA_GNU_LD NAMES ld.bfd ld REQUIRED)
find_program(AMASIA_GNU_OBJCOPY NAMES objcopy REQUIRED)

set(jemalloc_object ${CMAKE_BINARY_DIR}/jemalloc/amasia_jemalloc.o)
set(jemalloc_archive ${CMAKE_BINARY_DIR}/jemalloc/libamasia_jemalloc.a)
set(jemalloc_renames)
set(jemalloc_kept)
set(jemalloc_wanted)
foreach(symbol malloc calloc realloc free mallocx rallocx sallocx mallctl malloc_usable_size malloc_conf)
  list(APPEND jemalloc_renames --redefine-sym ${symbol}=amasia_je_${symbol})
  list(APPEND jemalloc_kept --keep-global-symbol=amasia_je_${symbol})
  list(APPEND jemalloc_wanted --undefined=${symbol})
endforeach()
# A setting that cannot be given as a string: without it large blocks begin on a page of their own.
list(APPEND jemalloc_renames --redefine-sym je_opt_cache_oblivious=amasia_je_opt_cache_oblivious)
list(APPEND jemalloc_kept --keep-global-symbol=amasia_je_opt_cache_oblivious)
foreach(symbol secure_getenv readlink)
  list(APPEND jemalloc_renames --redefine-sym ${symbol}=amasia_je_${symbol})
endforeach()

add_custom_command(
  OUTPUT ${jemalloc_archive}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${CMAKE_BINARY_DIR}/jemalloc
  COMMAND ${AMASIA_GNU_LD} -r ${jemalloc_wanted} -o ${jemalloc_object} ${AMASIA_JEMALLOC_ARCHIVE}
  # .init_array would initialise it in every process that the preload reaches; the first use does.
  COMMAND ${AMASIA_GNU_OBJCOPY} ${jemalloc_renames} ${jemalloc_object}
  COMMAND ${AMASIA_GNU_OBJCOPY} ${jemalloc_kept} --remove-section=.init_array
          --remove-section=.rela.init_array ${jemalloc_object}
  COMMAND ${CMAKE_COMMAND} -E rm -f ${jemalloc_archive}
  COMMAND ${CMAKE_AR} qc ${jemalloc_archive} ${jemalloc_object}
  DEPENDS ${AMASIA_JEMALLOC_ARCHIVE} ${CMAKE_CURRENT_LIST_FILE}
  COMMENT "Making jemalloc private"
  VERBATIM)
add_custom_target(amasia_jemalloc_object DEPENDS ${jemalloc_archive})
add_library(amasia_jemalloc STATIC IMPORTED GLOBAL)
set_target_properties(amasia_jemalloc PROPERTIES
  IMPORTED_LOCATION ${jemalloc_archive} INTERFACE_INCLUDE_DIRECTORIES ${AMASIA_JEMALLOC_INCLUDE})
add_dependencies(amasia_jemalloc amasia_jemalloc_object)
