#!/bin/sh
# On a machine with an NVIDIA GPU: builds for it, runs the tests of the CUDA operations and of the engine on it, the small ones
# once more under compute-sanitizer, trains and resumes across devices, and measures. About ten minutes; what was seen is in
# one file.
# Usage: sh scripts/gpu_check.sh [FILE]      (default: gpu_check.txt)
cd "$(dirname "$0")/.." || exit 1
out=${1:-gpu_check.txt}
: >"$out" || exit 1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=""

say() { echo "$@" | tee -a "$out"; }
# check NAME SECONDS COMMAND…: its last lines go into the file, all of them where it fails.
check() {
  name=$1 limit=$2
  shift 2
  start=$(date +%s)
  if timeout "$limit" "$@" >"$work/log" 2>&1; then result=ok; else result="FAILED with status $?"; failed="$failed $name"; fi
  say "== $name: $result, $(($(date +%s) - start)) s"
  if [ "$result" = ok ]; then tail -n 25 "$work/log" >>"$out"; else tail -n 400 "$work/log" | tee -a "$out"; fi
}

command -v nvidia-smi >/dev/null && nvidia-smi -L >/dev/null 2>&1 || { say "gpu_check: this machine has no NVIDIA GPU"; exit 1; }
say "$(git log -1 --format='commit %h, %cs' 2>/dev/null)"
say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader)"
sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)

check build 300 make CUDA=1 -j"$(nproc)" all bench build/gpu_tests
check tests 240 build/gpu_tests --gtest_brief=1
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck synccheck initcheck; do
    check "$tool" 120 "$sanitizer" --tool "$tool" --error-exitcode 1 build/gpu_tests --gtest_brief=1 \
      --gtest_filter='CudaRmsnorm.*:CudaRows.*:CudaSwiglu.*:CudaCrossEntropy.*:CudaRotary.*'
  done
else
  say "== compute-sanitizer is not here"
fi
for dtype in fp32 bf16; do
  check "train-$dtype" 120 ./train --device cuda --dtype $dtype --steps 400 --save-every 200 --out "$work/$dtype"
  check "sample-$dtype" 60 ./sample --device cuda --model "$work/$dtype" --prompt "0212?" --tokens 8 --temperature 0
done
check resume-on-cpu 120 ./train --device cpu --resume --out "$work/fp32"
for dtype in fp32 bf16; do
  for bench in peak matmul attention step decode prefill; do
    check "bench-$bench-$dtype" 60 ./bench $bench --device cuda --dtype $dtype --seconds 1
  done
  check "bench-step-long-$dtype" 60 ./bench step --device cuda --dtype $dtype --batch 8 --seq 1024 --seconds 1
done
say "$([ -z "$failed" ] && echo "all is well" || echo "failed:$failed")"
[ -z "$failed" ]
