#!/bin/sh
# Runs the tests in as many processes as there are cores and ends with the line "N passed, N failed". Tests that this
# machine cannot run, or that only make test-long does, are named before.
# Usage: sh test/run.sh TEST_BINARY FOLDER_OF_THE_PROGRAMS FOLDER_OF_THOSE_WITH_THE_EMULATED_GPU     (make test calls it)
case ${1:-} in -h | --help) sed -n '2,4s/^# //p' "$0"; exit 0 ;; esac
[ $# = 3 ] || { echo "run: three words are needed, not $#; --help says which" >&2; exit 1; }
[ -x "$1" ] || { echo "run: there is no program $1; make test builds it" >&2; exit 1; }
tests=$1
export FULLBAND_PROGRAMS=$2 FULLBAND_EMULATED=$3
shards=$(nproc 2>/dev/null || echo 1)
logs=$(mktemp -d) || exit 1
trap 'rm -rf "$logs"' EXIT
i=0
while [ "$i" -lt "$shards" ]; do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$tests" --gtest_color=no >"$logs/$i.log" 2>&1 &
  echo $! >"$logs/$i.pid"
  i=$((i + 1))
done
broken=0
i=0
while [ "$i" -lt "$shards" ]; do
  wait "$(cat "$logs/$i.pid")"
  grep -q '^\[==========\] .* ran\.' "$logs/$i.log" ||
    { broken=$((broken + 1)); echo "a test process ended before its last test:"; tail -40 "$logs/$i.log"; }
  i=$((i + 1))
done
passed=$(cat "$logs"/*.log | grep -c '^\[       OK \]')
failed=$(cat "$logs"/*.log | grep -c '^\[  FAILED  \].*ms)$')
if [ "$failed" -gt 0 ]; then
  for log in "$logs"/*.log; do grep -q 'FAILED' "$log" && grep -v '^\[ RUN\|^\[       OK\|^\[---\|^$' "$log" | head -400; done
fi
awk '/: Skipped$/ { getline why } /^\[  SKIPPED \].*ms\)$/ { print "not run: " $4 ": " why }' "$logs"/*.log
echo "$passed passed, $((failed + broken)) failed"
[ "$failed" = 0 ] && [ "$broken" = 0 ] && [ "$passed" -gt 0 ]
