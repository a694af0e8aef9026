# Sees that GoogleTest can be compiled and linked; installs it where it is missing and this user may.
# Usage: find_gtest.sh CXX
probe() {
  printf '#include <gtest/gtest.h>\nTEST(A, B) {}\n' | "$1" -std=c++20 -x c++ - -o /dev/null -lgtest -lgtest_main -lpthread 2>/dev/null
}
probe "$1" && exit 0
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  echo "GoogleTest is missing: installing libgtest-dev"
  (apt-get install -y libgtest-dev || { apt-get update && apt-get install -y libgtest-dev; }) >/dev/null 2>&1
  probe "$1" && exit 0
fi
echo "The tests need GoogleTest: install libgtest-dev (Debian, Ubuntu), gtest-devel (Fedora) or googletest (Homebrew), then run make test again." >&2
exit 1
