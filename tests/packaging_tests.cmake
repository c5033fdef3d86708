# The shared library and the installed package.

# Everything public is exported: tests that need nothing else (but the reference, and the sizes of caches for some of
# their geometries), linked once more, from the same objects.
add_executable(shared_library_test
  ${PROJECT_SOURCE_DIR}/dispatch/cpu_caches.cc
  $<TARGET_OBJECTS:c_api_threads_test>
  $<TARGET_OBJECTS:container_test>
  $<TARGET_OBJECTS:filter_test>
  $<TARGET_OBJECTS:fpr_test>
  $<TARGET_OBJECTS:geometry_test>
  $<TARGET_OBJECTS:hash_test>
  $<TARGET_OBJECTS:parquet_test>
  $<TARGET_OBJECTS:planner_test>
  $<TARGET_OBJECTS:profile_test>
  $<TARGET_OBJECTS:sets_test>
  $<TARGET_OBJECTS:status_test>
  $<TARGET_OBJECTS:tepal_reference>
  $<TARGET_OBJECTS:threads_test>)
target_include_directories(shared_library_test PRIVATE ${PROJECT_SOURCE_DIR})
target_link_libraries(shared_library_test PRIVATE tepal_shared tepal_options tepal::xxhash GTest::gmock GTest::gtest_main)
tepal_add_test(shared_library_test)

# The consumers of the package are not sanitized, and do not run if they were made for another CPU.
if(TEPAL_INSTALL AND tepal_kinds STREQUAL "static;shared" AND NOT TEPAL_SANITIZE AND NOT CMAKE_CROSSCOMPILING)
  add_test(NAME packaging_test
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/packaging_test.sh
      ${PROJECT_BINARY_DIR} ${CMAKE_COMMAND} ${CMAKE_C_COMPILER} ${CMAKE_CXX_COMPILER})
endif()
