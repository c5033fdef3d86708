# Programs in documents: each block that follows a line "<!-- test: NAME -->" must compile and exit with 0.
function(tepal_document_tests document)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${document})
  file(READ ${PROJECT_SOURCE_DIR}/${document} rest)
  cmake_path(GET document STEM prefix)
  string(TOLOWER ${prefix} prefix)

  set(marker "<!-- test: ([a-z_]+) -->\n```(cpp|c)\n")
  while(rest MATCHES "${marker}")
    set(name ${prefix}_${CMAKE_MATCH_1})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/documents/${name}.${CMAKE_MATCH_2})
    string(FIND "${rest}" "${CMAKE_MATCH_0}" begin)
    string(LENGTH "${CMAKE_MATCH_0}" length)
    math(EXPR begin "${begin} + ${length}")
    string(SUBSTRING "${rest}" ${begin} -1 rest)
    string(FIND "${rest}" "\n```\n" end)
    math(EXPR end "${end} + 1")
    string(SUBSTRING "${rest}" 0 ${end} code)

    file(CONFIGURE OUTPUT ${source} CONTENT "${code}" @ONLY)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE tepal::tepal tepal_options)
    add_test(NAME ${name} COMMAND ${name})
  endwhile()

  # A marker that is left stands before something else.
  if(rest MATCHES "<!-- test: [^\n]*")
    message(FATAL_ERROR "${document}: the line after \"${CMAKE_MATCH_0}\" must open a block with ```cpp or ```c")
  endif()
endfunction()

tepal_document_tests(README.md)
tepal_document_tests(docs/c_api.md)
