#!/bin/sh
# OpenMathInstruct-1: problems of GSM8K's and MATH's training sets, each with many solutions by Mixtral, in words and
# Python, whose answers are right (Toshniwal et al. 2024, arXiv:2402.10176; NVIDIA's licence, which the set's page has).
# Usage, from the project's root after `make`:  sh scripts/data/openmathinstruct.sh [FOLDER]
#
# Needs curl; about 4 GB of disk, 1.5 GB of it downloaded: two minutes at 100 Mbit/s; then ./tokenize's time.
# Leaves in FOLDER (data/openmathinstruct): train.jsonl and validation.jsonl, whose problems are others; GPT-2's
# vocabulary, vocab.bpe and encoder.json, so that a model trained on FineWeb can go on here (--init-from); the shards
# train_*.bin and val_*.bin with their masks: a problem is read, its solution is what is learned; tokenizer.json. The
# last line it prints is the one to train with. A run that was stopped goes on where it was. Sizes and checksums are
# those that the hub names.
#
# HF_ENDPOINT: a mirror of https://huggingface.co.
. "$(dirname "$0")/recipe.sh"
begin -- "$@"
need_tokenize
fetch_gpt2_vocabulary
fetch hf:nvidia/OpenMathInstruct-1/correct_solutions/validation.jsonl validation.jsonl
fetch hf:nvidia/OpenMathInstruct-1/correct_solutions/train.jsonl train.jsonl
set -- --tokenizer "$folder/vocab.bpe" --prompt-field question --field generated_solution
./tokenize data "$folder/train.jsonl" --out "$folder" "$@" --val 0
hold_out "$folder/validation.jsonl" "$@"
finish tokenizer.json --model mini --out runs/math
