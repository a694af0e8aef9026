#!/bin/sh
# On a machine with an NVIDIA GPU: builds for it, runs the tests of the CUDA operations and of the engine on it, trains and resumes
# across devices, measures, and runs the small tests once more under compute-sanitizer. Within ten minutes: what does not fit is
# left out, and said. What was seen is in one file, written as it goes.
# Usage: sh scripts/gpu_check.sh [FILE [PART…]]      (default: gpu_check.txt, build tests train bench sanitize)
# The tests need GoogleTest where the compiler finds it; where it is not, the other parts run all the same.
# The exit status is 0 where all that was asked for was done, and is well.
fail() { echo "gpu_check: $1" >&2; exit 1; }
for word; do
  case $word in
  -h | --help) sed -n '2,7s/^# //p' "$0"; exit 0 ;;
  -*) fail "unknown option $word; --help says how it is called" ;;
  esac
done
cd "$(dirname "$0")/.." || exit 1
out=${1:-gpu_check.txt}
[ $# -gt 0 ] && shift
parts=${*:-build tests train bench sanitize}
for part in $parts; do
  case $part in build | tests | train | bench | sanitize) ;; *) fail "there is no part $part; --help names them" ;; esac
done
command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || fail "this machine has no NVIDIA GPU"
end=$(($(date +%s) + 570))
: >"$out" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed="" left_out=""

say() { echo "$@" | tee -a "$out"; }
# check NAME SECONDS COMMAND…: its last lines go into the file, all of them where it fails.
check() {
  name=$1 limit=$2
  shift 2
  start=$(date +%s)
  left=$((end - start))
  [ "$left" -lt 10 ] && { say "== $name: left out, the ten minutes are over"; left_out="$left_out $name"; return; }
  [ "$limit" -gt "$left" ] && limit=$left
  if timeout "$limit" "$@" >"$work/log" 2>&1; then result=ok; else result="FAILED with status $?"; failed="$failed $name"; fi
  say "== $name: $result, $(($(date +%s) - start)) s"
  if [ "$result" = ok ]; then tail -n 25 "$work/log" >>"$out"; else tail -n 400 "$work/log" | tee -a "$out"; fi
}

say "$(git log -1 --format='commit %h, %cs' 2>/dev/null)"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader)"
small='CudaRmsnorm.*:CudaRows.*:CudaElements.*:CudaEmbedding.*:CudaSwiglu.*:CudaHeadGate.*:CudaRotary.*:CudaGate.*:CudaCarry.*'
small="$small:CudaConcat.*:CudaBias.*:CudaCrossEntropy.*:CudaSampling.Equal*:CudaAdamw.*:CudaSumSquares.*:CudaAttention.ARowHasTheSameZeros*"

for part in $parts; do
  case $part in
  build)
    check build 300 make CUDA=1 all bench
    check build-tests 300 make CUDA=1 build/gpu_tests
    ;;
  tests) check tests 120 build/gpu_tests --gtest_brief=1 ;;
  train)
    for dtype in fp32 bf16; do
      check "train-$dtype" 60 ./train --device cuda --dtype $dtype --steps 400 --save-every 200 --out "$work/$dtype"
      check "sample-$dtype" 20 ./sample --device cuda --model "$work/$dtype" --prompt "0212?" --tokens 8 --temperature 0
    done
    check resume-on-cpu 60 ./train --device cpu --resume "$work/fp32/step_00000200" --out "$work/back"
    ;;
  bench)
    for dtype in fp32 bf16; do
      for bench in peak matmul attention step decode prefill; do
        check "bench-$bench-$dtype" 30 ./bench $bench --device cuda --dtype $dtype --seconds 1
      done
      check "bench-step-long-$dtype" 30 ./bench step --device cuda --dtype $dtype --batch 8 --seq 1024 --seconds 1
    done
    ;;
  sanitize)
    sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
    # Some virtual machines do not let it in.
    if ! "$sanitizer" --error-exitcode 1 build/gpu_tests --gtest_filter=CudaSwiglu.Stands* >"$work/log" 2>&1; then
      say "== compute-sanitizer does not work here: $(tail -n 1 "$work/log")"
      left_out="$left_out sanitize"
      continue
    fi
    for tool in memcheck racecheck synccheck initcheck; do
      check "$tool" 60 "$sanitizer" --tool "$tool" --error-exitcode 1 build/gpu_tests --gtest_brief=1 --gtest_filter="$small"
    done
    ;;
  esac
done
[ -z "$failed" ] || say "failed:$failed"
[ -z "$left_out" ] || say "left out:$left_out"
[ -z "$failed$left_out" ] && say "all is well"
