# Each block of README.md and docs/*.md that follows a line "<!-- test: NAME -->" is a program in C++ or C that must
# compile and exit with 0.
function(tepal_doc_tests document)
  file(READ ${document} rest)
  while(rest MATCHES "<!-- test: ([a-z_]+) -->\n```(cpp|c)\n")
    set(name doc_${CMAKE_MATCH_1})
    set(source ${CMAKE_CURRENT_BINARY_DIR}/docs/${name}.${CMAKE_MATCH_2})
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

file(GLOB documents CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/README.md ${PROJECT_SOURCE_DIR}/docs/*.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${documents})
foreach(document IN LISTS documents)
  tepal_doc_tests(${document})
endforeach()
