# What Debian's cross compilers have in common. Included by the files beside it, which set `triplet` and perhaps
# `qemu_arguments`. The compiler is g++ unless CMAKE_CXX_COMPILER says clang++.
string(REGEX REPLACE "-.*" "" CMAKE_SYSTEM_PROCESSOR ${triplet})
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_LIBRARY_ARCHITECTURE ${triplet})
if(NOT CMAKE_CXX_COMPILER)
  set(CMAKE_C_COMPILER ${triplet}-gcc)
  set(CMAKE_CXX_COMPILER ${triplet}-g++)
endif()
set(CMAKE_C_COMPILER_TARGET ${triplet})
set(CMAKE_CXX_COMPILER_TARGET ${triplet})
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/${triplet}/pkgconfig:/usr/share/pkgconfig)

# Which CPU qemu plays is in the environment: QEMU_CPU=max,sve256=on ctest ...
string(REPLACE powerpc64le ppc64le qemu qemu-${CMAKE_SYSTEM_PROCESSOR})
set(CMAKE_CROSSCOMPILING_EMULATOR ${qemu} ${qemu_arguments})
