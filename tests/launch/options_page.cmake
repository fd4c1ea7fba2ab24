# docs/OPTIONS.md is what the table prints.
execute_process(COMMAND ${AMASIA} options --markdown OUTPUT_VARIABLE printed RESULT_VARIABLE result)
file(READ ${PAGE} page)
if(NOT result EQUAL 0 OR NOT printed STREQUAL page)
  message(FATAL_ERROR "${PAGE} is not what the table says; run: ${AMASIA} options --markdown > ${PAGE}")
endif()
