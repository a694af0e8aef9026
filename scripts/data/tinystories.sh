#!/bin/sh
# TinyStories: 2.7 million short stories in the words of a small child, written by GPT-4 (Eldan and Li 2023,
# arXiv:2305.07759; licence CDLA-Sharing-1.0). The second version, which has GPT-4's stories alone.
# Usage, from the project's root after `make`:  sh scripts/data/tinystories.sh [FOLDER]
#
# Needs curl; about 3.5 GB of disk, 2.25 GB of it downloaded: three minutes at 100 Mbit/s; then ./tokenize's time.
# Leaves in FOLDER (data/tinystories): the two texts; tok.json, a vocabulary of 8,192 learned from the stories; the
# shards train_*.bin, about 0.55 billion tokens, and val_*.bin, the authors' own held-out stories; tokenizer.json. The
# last line it prints is the one to train with. A run that was stopped goes on where it was.
#
# HF_ENDPOINT: a mirror of https://huggingface.co.
. "$(dirname "$0")/recipe.sh"
begin -- "$@"
need_tokenize
fetch hf:roneneldan/TinyStories/TinyStoriesV2-GPT4-valid.txt valid.txt \
  22502601 6874bae9a4c1a4e7edcf0e53b86c17817e9cf881fc75ff2368da457b80c0585d
fetch hf:roneneldan/TinyStories/TinyStoriesV2-GPT4-train.txt train.txt \
  2227753162 6418d412de72888f52b5142c761ac21a582f7d1166f0bfbdb5f03ccfdec90443
make_tokenizer 8192 "$folder/train.txt"
./tokenize data "$folder/train.txt" --out "$folder" --tokenizer "$folder/tok.json" --separator '<|endoftext|>' --val 0
hold_out "$folder/valid.txt" --tokenizer "$folder/tok.json" --separator '<|endoftext|>'
finish tokenizer.json --model mini --out runs/stories
