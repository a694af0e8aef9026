#!/bin/sh
# Sees that GoogleTest can be compiled and linked; installs it where it is missing and this user may.
# Usage: sh test/find_gtest.sh COMPILER…      (make calls it)
case ${1:-} in -h | --help) sed -n '2,3s/^# //p' "$0"; exit 0 ;; esac
[ $# -gt 0 ] || { echo "find_gtest: which compiler? --help says how it is called" >&2; exit 1; }
command -v -- "$1" >/dev/null || { echo "find_gtest: there is no compiler $1" >&2; exit 1; }
probe() {
  printf '#include <gtest/gtest.h>\nTEST(A, B) {}\n' | "$@" -std=c++20 -x c++ - -o /dev/null -lgtest -lgtest_main -lpthread 2>/dev/null
}
probe "$@" && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "GoogleTest is missing: installing libgtest-dev"
  (apt-get install -y libgtest-dev || { apt-get update && apt-get install -y libgtest-dev; }) >/dev/null 2>&1
  probe "$@" && exit 0
fi
echo "The tests need GoogleTest: install libgtest-dev (Debian, Ubuntu), gtest-devel (Fedora) or googletest (Homebrew), then run make test again." >&2
exit 1
