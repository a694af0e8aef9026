#!/bin/sh
# What the feedback does and what three-pass steps are for: the default run with several seeds, and the same without three-pass steps.
# Usage, from the project's root after `make`:  sh scripts/feedback_experiment.sh [FOLDER [SEEDS]]
# Six runs with the three seeds "1 2 3" take about ten minutes on two cores.
# Leaves FOLDER/<run>.txt, what each run printed, and FOLDER/<run>/evaluation.json; docs/experiments.md is made of these.
set -e
folder=${1:-experiment} seeds=${2:-1 2 3}
mkdir -p "$folder"
run() { # name, seed, more flags
  name=$1 seed=$2
  shift 2
  ./train --out "$folder/$name" --seed "$seed" --threads 1 --sample-every 0 "$@" >"$folder/$name.txt" 2>&1
}
for seed in $seeds; do
  run "three-pass-$seed" "$seed" &
  run "two-pass-$seed" "$seed" --passes 0:100,0.3:20/80 &
  wait
done
