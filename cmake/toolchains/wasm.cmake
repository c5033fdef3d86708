# WebAssembly with 128-bit vectors, by Debian's Emscripten, run by Node.js. tools/cross-test sets the variables of the
# environment that Emscripten needs.
include(/usr/share/emscripten/cmake/Modules/Platform/Emscripten.cmake)

# /usr/include as a whole would hide Emscripten's own headers.
set(headers ${CMAKE_CURRENT_LIST_DIR}/../../build/wasm-headers)
file(MAKE_DIRECTORY ${headers})
foreach(header hwy nlohmann xxhash.h xxh3.h)
  file(CREATE_LINK /usr/include/${header} ${headers}/${header} SYMBOLIC)
endforeach()
# Exceptions by JavaScript (-fexceptions) would change signalling NaNs on their way.
set(CMAKE_CXX_FLAGS_INIT "-msimd128 -fwasm-exceptions -isystem ${headers}")
# The files of the machine, and a limit that makes the largest filters fail early.
set(CMAKE_EXE_LINKER_FLAGS_INIT "-sNODERAWFS=1 -sEXIT_RUNTIME=1 -sALLOW_MEMORY_GROWTH=1 -sMAXIMUM_MEMORY=512MB")
set(CMAKE_CROSSCOMPILING_EMULATOR node;--no-experimental-fetch)  # which 3.1.6 takes for that of a browser
