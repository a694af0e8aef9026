# Runs the tests in as many processes as there are cores and ends with the line "N passed, N failed".
# Usage: run.sh TEST_BINARY FOLDER_OF_THE_PROGRAMS FOLDER_OF_THOSE_WITH_THE_EMULATED_GPU
tests=$1
export FULLBAND_PROGRAMS=$2 FULLBAND_EMULATED=$3
shards=$(nproc 2>/dev/null || echo 1)
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT
i=0
while [ "$i" -lt "$shards" ]; do
  GTEST_TOTAL_SHARDS=$shards GTEST_SHARD_INDEX=$i "$tests" --gtest_color=no >"$logs/$i" 2>&1 &
  echo $! >"$logs/$i.pid"
  i=$((i + 1))
done
broken=0
i=0
while [ "$i" -lt "$shards" ]; do
  wait "$(cat "$logs/$i.pid")" || grep -q '^\[  FAILED  \]' "$logs/$i" || { broken=$((broken + 1)); echo "a test process died:"; tail -40 "$logs/$i"; }
  i=$((i + 1))
done
passed=$(cat "$logs"/[0-9] "$logs"/[0-9][0-9] 2>/dev/null | grep -c '^\[       OK \]')
failed=$(cat "$logs"/[0-9] "$logs"/[0-9][0-9] 2>/dev/null | grep -c '^\[  FAILED  \].*ms)$')
if [ "$failed" -gt 0 ]; then
  for log in "$logs"/[0-9] "$logs"/[0-9][0-9]; do [ -f "$log" ] && grep -q 'FAILED' "$log" && grep -v '^\[ RUN\|^\[       OK\|^\[---\|^$' "$log" | head -400; done
fi
echo "$passed passed, $((failed + broken)) failed"
[ "$failed" = 0 ] && [ "$broken" = 0 ] && [ "$passed" -gt 0 ]
