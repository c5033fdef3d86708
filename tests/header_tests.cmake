# Each public header compiles alone and twice in a row: one translation unit per header, with nothing but the public include
# directories of the library. Building is the test.
file(GLOB public_headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/include/tepal/*.h)
set(header_sources)
foreach(header IN LISTS public_headers)
  string(MAKE_C_IDENTIFIER ${header} name)
  set(source ${CMAKE_CURRENT_BINARY_DIR}/headers/${name}.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "#include \"${header}\"\n#include \"${header}\"  // guarded\n")
  list(APPEND header_sources ${source})
endforeach()

add_library(header_tests OBJECT ${header_sources})
target_include_directories(header_tests PRIVATE $<TARGET_PROPERTY:tepal_static,INTERFACE_INCLUDE_DIRECTORIES>)
target_link_libraries(header_tests PRIVATE tepal_options)
