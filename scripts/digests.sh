#!/bin/sh
# Trains tiny models in every way there is, decodes with them, and holds a digest of each against scripts/digests.txt: not one
# bit of a result may change unless it is meant to.
# Usage: sh scripts/digests.sh [--write]      (--write: writes scripts/digests.txt anew)
#
# A run's digest is that of its weights, moments, losses and gradient norms; a decoding's that of its tokens and their
# log-probabilities. `base: …` are ways that must give base's own digest: threads, --recompute, instruction sets, a resumed run.
# Needs the programs, also the emulator's: make all build/emulated/train build/emulated/sample. FULLBAND_PROGRAMS and
# FULLBAND_EMULATED are their folders (., build/emulated).
# The exit status is 0 where every digest is as it was.

fail() { echo "digests: $1" >&2; exit 1; }
case $1 in
'' | --write) ;;
-h | --help) sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 0 ;;
*) fail "unknown option $1; --help says how it is called" ;;
esac
cd "$(dirname "$0")/.." || exit 1
expected=scripts/digests.txt
programs=${FULLBAND_PROGRAMS:-.} emulated=${FULLBAND_EMULATED:-build/emulated}
for program in "$programs/train" "$programs/sample" "$emulated/train" "$emulated/sample"; do
  [ -x "$program" ] || fail "there is no $program: make all build/emulated/train build/emulated/sample"
done
[ "$1" = --write ] || [ -f "$expected" ] || fail "there is no $expected; --write makes it"
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

cat >"$work/tiny.conf" <<'END'
data = stories
vocab = 300
layers = 2
width = 32
heads = 2
seq = 48
batch = 3
steps = 20
warmup = 5
lr = 0.01
passes = 3
eval-every = 0
sample-every = 0
save-every = 0
final-eval = 200
eval-passes = 0,1
seed = 3
threads = 1
device = cpu
END

digest() { sha256sum | cut -c1-16; }
folder_of() { echo "$work/$1" | tr ' :' '__'; }
weights_of() { cat "$1"/step_*20/model.safetensors "$1"/step_*20/optimizer.safetensors; } # OUT
# Runs a command in silence, or ends with what it said.
quietly() { "$@" >"$work/said" 2>&1 || { cat "$work/said" >&2; fail "this failed: $*"; }; }

train=$programs/train sample=$programs/sample # or the emulator's
# Trains a model of this name and prints its digest.
run() { # NAME FLAG…
  name=$1 out=$(folder_of "$1")
  shift
  quietly $train --config "$work/tiny.conf" --out "$out" "$@"
  { sed -n 's/.*"loss": \([^,]*\).*"loss_per_pass": \([^]]*\).*"grad_norm": \([^,]*\).*/\1 \2 \3/p' "$out/log.jsonl"
    weights_of "$out"; } | digest | sed "s/^/$name = /"
}
# Continues three prompts with the model of a run and prints the digest of what it said.
decode() { # RUN FLAG…
  model=$(folder_of "$1") name=$1
  shift
  printf 'One day\nTom and Anna\nThe\n' >"$work/prompts"
  quietly $sample --model "$model" --prompts "$work/prompts" --tokens 20 --seed 5 --json --logprobs --threads 1 "$@"
  digest <"$work/said" | sed "s/^/$name, decoded $* = /"
}

# --- What is trained, and what is decoded

all() {
  run base
  run 'base: two threads' --threads 2
  run 'base: norms recomputed' --recompute norms
  run 'base: layers recomputed' --recompute block
  for isa in avx512 avx2 neon plain; do # those that there are
    export FULLBAND_ISA=$isa
    $train --config "$work/tiny.conf" --dump "$work/step" >/dev/null 2>&1 && run "base: $isa" && rm "$work/step"
  done
  unset FULLBAND_ISA
  out=$(folder_of 'base: resumed')
  quietly $train --config "$work/tiny.conf" --out "$out" --save-every 7 --keep 0
  rm -r "$out"/step_*20 && quietly $train --resume "$out"
  [ "$(weights_of "$out" | digest)" = "$(weights_of "$(folder_of base)" | digest)" ] || echo 'base: resumed = another'

  for fusion in gate concat add; do
    for gradient in through detach last; do run "$fusion $gradient" --fusion $fusion --gradient $gradient; done
  done
  run plain --passes 1
  for mixin in half uniform off; do run "mix-in $mixin" --prefix-mixin $mixin --passes 0:40/30/30; done
  run jitter --jitter 0.05
  run 'lambda 0' --lambda 0
  run 'normed input' --plain-input normed
  run 'head gate' --head-gate
  run 'branch norm' --branch-norm
  run 'grouped heads' --heads 4 --kv-heads 2
  run window --window 9 --full-attention-every 2
  run stream --pack stream
  run 'micro-batches' --batch-tokens 432
  run cosine --schedule cosine --min-lr 0.001
  run 'z-loss' --z-loss 0.01 --cooldown 1
  run clip --clip 0.5
  run normuon --optimizer normuon
  run puzzles --data all
  run bytes --vocab 257

  for mode in standard soft fused sequential; do
    for weights in f32 bf16; do decode base --mode $mode --weights $weights; done
    decode base --mode $mode --temperature 0
  done
  decode base --top-k 20 --top-p 0.9
  decode 'concat through' --mode soft
  decode 'add through' --mode soft
  decode window --mode fused --prefill-passes 2
  decode plain

  train=$emulated/train sample=$emulated/sample
  for dtype in fp32 bf16; do run "cuda $dtype" --device cuda --dtype $dtype; done
  run 'cuda normuon' --device cuda --dtype bf16 --optimizer normuon --fusion concat --head-gate
  for mode in soft fused; do decode 'cuda fp32' --device cuda --mode $mode; done
  decode 'cuda fp32' --device cuda --weights bf16
}

all >"$work/digests" || exit 1
base=$(sed -n 's/^base = //p' "$work/digests")
if grep '^base: ' "$work/digests" | grep -v " = $base\$"; then fail "these should be base's: $base"; fi
grep -v '^base: ' "$work/digests" >"$work/kept" # the instruction sets are those of this machine
if [ "$1" = --write ]; then
  cp "$work/kept" "$expected"
  echo "$(wc -l <"$expected") digests are in $expected"
  exit
fi
diff "$expected" "$work/kept" >"$work/changed" || { cat "$work/changed"; fail "these have changed (<: as they were)"; }
echo "all $(wc -l <"$expected") digests are as they were, and $(grep -c '^base: ' "$work/digests") other ways give base's"
