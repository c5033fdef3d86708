# Headers, the libraries, a CMake package and a pkg-config file. No file contains an absolute path of the prefix, so the
# installed tree can be moved.
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tepal)

install(DIRECTORY include/tepal DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
foreach(kind IN LISTS tepal_kinds)
  install(TARGETS tepal_${kind} EXPORT tepal-${kind})
  install(EXPORT tepal-${kind} NAMESPACE tepal:: DESTINATION ${package_dir})
endforeach()

configure_package_config_file(cmake/tepalConfig.cmake.in tepalConfig.cmake
  INSTALL_DESTINATION ${package_dir} NO_SET_AND_CHECK_MACRO NO_CHECK_REQUIRED_COMPONENTS_MACRO)
# Before 1.0 a new minor version may break everything, and it is part of the soname.
write_basic_package_version_file(tepalConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/tepalConfig.cmake
  ${PROJECT_BINARY_DIR}/tepalConfigVersion.cmake
  cmake/FindTepalXxhash.cmake
  DESTINATION ${package_dir})

# tepal.pc: paths start at its own place, unless the directories were given as absolute paths.
set(pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
cmake_path(RELATIVE_PATH CMAKE_INSTALL_PREFIX BASE_DIRECTORY ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig OUTPUT_VARIABLE up)
set(pc_prefix "\${pcfiledir}/${up}")
cmake_path(APPEND pc_libdir "\${prefix}" ${CMAKE_INSTALL_LIBDIR})
cmake_path(APPEND pc_includedir "\${prefix}" ${CMAKE_INSTALL_INCLUDEDIR})
# What a C linker lacks for a C++ archive: -lstdc++ -lm, or what stands for them.
set(private_libs ${CMAKE_CXX_IMPLICIT_LINK_LIBRARIES})
list(REMOVE_ITEM private_libs ${CMAKE_C_IMPLICIT_LINK_LIBRARIES})
list(TRANSFORM private_libs PREPEND " -l" OUTPUT_VARIABLE private_libs)
list(JOIN private_libs "" pc_private_libs)
configure_file(cmake/tepal.pc.in tepal.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tepal.pc DESTINATION ${pc_dir})
