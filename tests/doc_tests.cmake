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

file(GLOB documents CONFIGURE_DEPENDS
  ${PROJECT_SOURCE_DIR}/*.md ${PROJECT_SOURCE_DIR}/docs/*.md
  ${PROJECT_SOURCE_DIR}/dispatch/*.md ${PROJECT_SOURCE_DIR}/kernels/*.md)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${documents})
foreach(document IN LISTS documents)
  tepal_doc_tests(${document})
endforeach()

# Commands: all are checked, and those in blocks that follow a line "<!-- run -->" are run. Builds without benchmarks
# (with sanitizers) leave out the documents that measure, and other CPUs than x86-64 those that force its target SSE4.
set(left_out "")
if(NOT TEPAL_BUILD_BENCH)
  list(APPEND left_out benchmarks.md papers.md planner.md sets.md)
endif()
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND left_out benchmarks.md CONTRIBUTING.md)
endif()
if(TEPAL_BUILD_TOOLS)
  foreach(document IN LISTS documents)
    file(READ ${document} text)
    cmake_path(GET document FILENAME name)
    if(text MATCHES "\n<!-- run -->\n" AND NOT name IN_LIST left_out)
      cmake_path(RELATIVE_PATH document BASE_DIRECTORY ${PROJECT_SOURCE_DIR} OUTPUT_VARIABLE name)
      add_test(NAME commands_of_${name}
        COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/run_console_blocks ${document} ${PROJECT_BINARY_DIR})
    endif()
  endforeach()
  if(TEPAL_BUILD_BENCH)
    add_test(NAME commands_of_all_documents
      COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/check_doc_commands ${PROJECT_BINARY_DIR} ${documents})
  endif()
endif()
