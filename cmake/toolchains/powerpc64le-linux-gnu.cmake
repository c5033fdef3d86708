set(triplet powerpc64le-linux-gnu)
set(qemu_arguments -L /usr/${triplet})  # no libraries from multi-arch packages, only the compiler's own
include(${CMAKE_CURRENT_LIST_DIR}/linux-gnu.cmake)
