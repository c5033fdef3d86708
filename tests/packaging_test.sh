#!/usr/bin/env bash
# Installs Tepal from a build directory, moves what was installed, and uses it from outside: with find_package and with
# pkg-config, shared and static, and as a part of another project. Checks what the shared library exports.
#
#   packaging_test.sh BUILD_DIR CMAKE C-COMPILER C++-COMPILER
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

# As a packager does: into a staging directory, which is not where it will be used.
DESTDIR=$scratch/stage "$cmake" --install "$build_dir" --prefix /opt/tepal > "$scratch/log"
prefix=$scratch/moved
mv "$scratch/stage/opt/tepal" "$prefix"
library=$(find "$prefix" -name 'libtepal.so')
! grep -rIl -e "$build_dir" -e "$source_dir" -e /opt/tepal "$prefix" || fail "these files name a path of the build"

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

# ---- add_subdirectory: configured only, because the kernels take minutes to compile.
configure_consumer source -DTEPAL_SOURCE_DIR="$source_dir"
quietly "$cmake" --build "$scratch/source" --target help
! grep -E '_(test|bench|demo)$' "$scratch/log" || fail "a project that contains Tepal gets its tests or tools, too"

# ---- pkg-config
export PKG_CONFIG_PATH
PKG_CONFIG_PATH=$(dirname "$library")/pkgconfig
# compile KIND FLAGS...: the consumers in C++ and C.
compile() {
  local kind=$1
  shift
  # Flags are words.
  # shellcheck disable=SC2046
  "$cxx" -std=c++20 $(pkg-config --cflags tepal) "$source_dir/tests/consumer/main.cc" -o "$scratch/pc_$kind" "$@"
  # shellcheck disable=SC2046
  "$cc" -std=c11 $(pkg-config --cflags tepal) "$source_dir/tests/consumer/main.c" -o "$scratch/pc_c_$kind" "$@"
  uses_kind "$scratch/pc_$kind" "$kind"
  uses_kind "$scratch/pc_c_$kind" "$kind"
}
# shellcheck disable=SC2046
compile shared $(pkg-config --libs tepal) -Wl,-rpath,"$(dirname "$library")"
rm "$(dirname "$library")"/libtepal.so*
# shellcheck disable=SC2046
compile static $(pkg-config --static --libs tepal)
