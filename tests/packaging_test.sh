#!/usr/bin/env bash
# Installs Tepal from a build directory, moves what was installed, and uses it from outside: with find_package and with
# pkg-config, shared and static, and as a part of another project. Checks what the shared library exports. The commands
# are those that README.md and docs/c_api.md show.
#
#   packaging_test.sh BUILD_DIR CMAKE C-COMPILER C++-COMPILER
#
# Backquotes are Markdown's.
# shellcheck disable=SC2016
set -euo pipefail
build_dir=$1 cmake=$2 cc=$3 cxx=$4
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

fail() {
  echo "packaging_test: $*" >&2
  exit 1
}

# uses_kind PROGRAM KIND: runs it, and sees that it got the library it should.
uses_kind() {
  local loaded
  "$1" || fail "$1 failed"
  loaded=$(ldd "$1")
  if [[ $2 == shared ]]; then
    [[ $loaded == *libtepal.so.[0-9]*.[0-9]*" => $prefix/"* ]] || fail "$1 should load libtepal.so.MAJOR.MINOR: $loaded"
  else
    [[ $loaded != *libtepal* ]] || fail "$1 should contain libtepal.a: $loaded"
  fi
}

# The documents name programs as users do.
mkdir "$scratch/bin"
for program in "cmake $cmake" "c++ $cxx" "cc $cc"; do
  printf '#!/bin/sh\nexec "%s" "$@"\n' "${program#* }" > "$scratch/bin/${program%% *}"
done
chmod +x "$scratch"/bin/*
PATH=$scratch/bin:$PATH

# shown FILE REGEX: the part of a document that matches; there must be one.
shown() {
  local found
  found=$(grep -oE -- "$2" "$source_dir/$1") || fail "$1 shows no command '$2'"
  [[ $found != *$'\n'* ]] || fail "$1 shows more than one '$2'"
  echo "$found"
}

# As a packager does: into a staging directory, which is not where it will be used.
install=$(shown README.md 'cmake --install build/release --prefix /[a-z/]+')
DESTDIR=$scratch/stage bash -c "${install/build\/release/\"$build_dir\"}" > "$scratch/log"
documented_prefix=${install##* }
prefix=$scratch/moved
mv "$scratch/stage$documented_prefix" "$prefix"
library=$(find "$prefix" -name 'libtepal.so')
! grep -rIl -e "$build_dir" -e "$source_dir" -e "$documented_prefix" "$prefix" || fail "these files name a path of the build"

# ---- Symbols: each is of tepal, and each part of its name is in a public header.
nm --dynamic --defined-only --demangle "$library" | cut -d ' ' -f 3- > "$scratch/symbols"
grep -q '^tepal::Filter::Create(' "$scratch/symbols" || fail "libtepal.so does not export tepal::Filter::Create"
cat "$prefix"/include/tepal/*.h > "$scratch/headers"
while read -r symbol; do
  [[ $symbol == tepal::* || $symbol == tepal_* ]] || fail "libtepal.so exports $symbol"
  name=${symbol%%[(\[]*}
  for part in ${name//::/ }; do
    grep -qwF -- "$part" "$scratch/headers" || fail "libtepal.so exports $symbol, which no public header declares"
  done
  [[ $name != *::Impl::* ]] || fail "libtepal.so exports $symbol, which is private"
done < "$scratch/symbols"

# quietly COMMAND...: shows what it said only if it failed.
quietly() { "$@" > "$scratch/log" 2>&1 || fail "$* said: $(cat "$scratch/log")"; }

# ---- find_package
configure_consumer() {
  local kind=$1
  shift
  quietly "$cmake" -S "$source_dir/tests/consumer" -B "$scratch/$kind" -DKIND="$kind" \
    -DCMAKE_C_COMPILER="$cc" -DCMAKE_CXX_COMPILER="$cxx" "$@"
}
for kind in shared static; do
  configure_consumer $kind -DCMAKE_PREFIX_PATH="$prefix"
  quietly "$cmake" --build "$scratch/$kind"
  uses_kind "$scratch/$kind/consumer" $kind
  uses_kind "$scratch/$kind/c_consumer" $kind
done

# README.md's lines for CMake.
mkdir "$scratch/engine"
cp "$source_dir/tests/consumer/main.cc" "$scratch/engine/engine.cc"
cp "$source_dir/tests/consumer/main.c" "$scratch/engine/example.c"
{
  printf 'cmake_minimum_required(VERSION 3.25)\nproject(engine LANGUAGES CXX)\nadd_executable(my_engine engine.cc)\n'
  sed -n '/^```cmake$/,/^```$/{/^```/!p}' "$source_dir/README.md"
} > "$scratch/engine/CMakeLists.txt"
quietly cmake -S "$scratch/engine" -B "$scratch/engine/build" -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_PREFIX_PATH="$prefix"
quietly cmake --build "$scratch/engine/build"
uses_kind "$scratch/engine/build/my_engine" shared

# ---- add_subdirectory and FetchContent: configured only, because the kernels take minutes to compile.
for kind in source fetched; do
  configure_consumer $kind -DTEPAL_SOURCE_DIR="$source_dir"
  quietly "$cmake" --build "$scratch/$kind" --target help
  ! grep -E '_(test|bench|demo)$' "$scratch/log" || fail "a project that contains Tepal gets its tests or tools, too"
done

# ---- pkg-config
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
compile_cxx=$(shown README.md 'c\+\+ [^`]*pkg-config [^`]*')
compile_c=$(shown docs/c_api.md 'cc [^`]*pkg-config [^`]*')
# compile KIND COMMAND: as shown, in the directory with engine.cc and example.c.
compile() {
  cd "$scratch/engine"
  quietly bash -c "$2"
  uses_kind "$scratch/engine/a.out" "$1"
}
LD_LIBRARY_PATH=$(dirname "$library")
export LD_LIBRARY_PATH
for command in "$compile_cxx" "$compile_c"; do compile shared "$command"; done
rm "$(dirname "$library")"/libtepal.so*
for command in "$compile_cxx" "$compile_c"; do compile static "${command/--libs/--libs --static}"; done
