#!/bin/sh
# Tests the NEON kernels where there is no such processor: built by a cross compiler, run under qemu-user.
# Usage, from the project's root:  sh test/neon.sh      (make test-long calls it)
# Says "skipped" where a tool is missing and this user may not install it.
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
[ $# = 0 ] || { echo "neon: unknown word $1; --help says how it is called" >&2; exit 1; }
set -e
cxx=aarch64-linux-gnu-g++ qemu=qemu-aarch64-static gtest=/usr/src/googletest/googletest build=build/neon
found() { command -v $cxx && command -v $qemu && [ -f $gtest/src/gtest-all.cc ]; }
case $(uname -m) in aarch64 | arm64) echo "NEON: this machine has it; make test tests it"; exit 0 ;; esac
if ! found >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  apt-get install -y g++-aarch64-linux-gnu qemu-user-static googletest >/dev/null 2>&1 || true
fi
found >/dev/null || { echo "NEON: skipped; it needs g++-aarch64-linux-gnu, qemu-user-static and googletest (Debian's names)"; exit 0; }

${MAKE:-make} CXX=$cxx BUILD=$build OPTIMIZE=-O2 $build/libfullband.a >/dev/null
tests="passes decode optimizer_kernels"
for kernel in src/cpu/*.cpp; do
  name=$(basename "$kernel" .cpp)
  [ -f "test/${name}_test.cpp" ] && tests="$tests $name"
done
for name in $tests; do sources="$sources test/${name}_test.cpp"; done
$cxx -std=c++20 -O2 -ffp-contract=off -fno-math-errno -Wno-psabi -Iinclude -Isrc/cpu -I$gtest -I$gtest/include -static -pthread \
  -o $build/tests $sources $gtest/src/gtest-all.cc $gtest/src/gtest_main.cc $build/libfullband.a \
  2>$build/link.log || { cat $build/link.log; exit 1; }
$qemu $build/tests --gtest_color=no >$build/log 2>&1 || { grep -v '^\[ RUN\|^\[       OK\|^\[---\|^$' $build/log | head -100; echo "NEON: failed"; exit 1; }
passed=$(grep -c '^\[       OK \]' $build/log) || { echo "NEON: no test ran"; exit 1; }
echo "NEON: $passed passed under qemu"
