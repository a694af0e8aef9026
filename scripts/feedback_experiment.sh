#!/bin/sh
# What the feedback does and what three-pass steps are for: the default run with several seeds, and the same without three-pass steps.
# Usage, from the project's root after `make`:  sh scripts/feedback_experiment.sh [FOLDER [SEEDS]]     (default: experiment "1 2 3")
# Six runs with the three seeds take about ten minutes on two cores.
# Leaves FOLDER/<run>.txt, what each run printed, and FOLDER/<run>/evaluation.json; docs/experiments.md is made of these.
# The exit status is 1 where a run failed.
for word; do
  case $word in
  -h | --help) sed -n '2,6s/^# //p' "$0"; exit 0 ;;
  -*) echo "feedback_experiment: unknown option $word; --help says how it is called" >&2; exit 1 ;;
  esac
done
[ $# -le 2 ] || { echo 'feedback_experiment: too many words; seeds are one, such as "1 2 3"' >&2; exit 1; }
case ${2:-1} in *[!0-9\ ]*) seeds= ;; *[0-9]*) seeds=${2:-1 2 3} ;; *) seeds= ;; esac
[ -n "$seeds" ] || { echo "feedback_experiment: seeds are numbers, such as \"1 2 3\", not \"$2\"" >&2; exit 1; }
[ -x ./train ] || { echo "feedback_experiment: there is no ./train here: run make in the project's root first" >&2; exit 1; }
folder=${1:-experiment}
mkdir -p "$folder" || exit 1
run() { # name, seed, more flags
  name=$1 seed=$2
  shift 2
  ./train --out "$folder/$name" --seed "$seed" --threads 1 --sample-every 0 "$@" >"$folder/$name.txt" 2>&1 && return
  echo "feedback_experiment: $name failed: $(tail -n 1 "$folder/$name.txt")" >&2
  return 1
}
status=0
for seed in $seeds; do
  run "three-pass-$seed" "$seed" &
  other=$!
  run "two-pass-$seed" "$seed" --passes 0:100,0.2:20/80 || status=1
  wait "$other" || status=1
done
exit $status
