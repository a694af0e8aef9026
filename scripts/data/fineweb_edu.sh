#!/bin/sh
# FineWeb-Edu: pages of the web that teach something, already tokenized with GPT-2's vocabulary, in llm.c's format (the
# set karpathy/fineweb-edu-100B-gpt2-token-shards on huggingface.co, made of HuggingFaceFW/fineweb-edu's sample of 100
# billion tokens; licence ODC-By).
# Usage:  sh scripts/data/fineweb_edu.sh [FOLDER] [SHARDS]
#
# SHARDS: from 1 to 1001 of 100 million tokens each; 100 where it is left out, 10 billion tokens.
# Needs curl; 200 MB of disk and of download for every shard and one more, held out: 20 GB for a hundred, about half an
# hour at 100 Mbit/s. Nothing is left to tokenize.
# Leaves in FOLDER (data/fineweb_edu): edu_fineweb_train_000001.bin …, edu_fineweb_val_000000.bin, and GPT-2's
# vocabulary, vocab.bpe and encoder.json. The last line it prints is the one to train with. A run that was stopped goes
# on where it was; one with more shards fetches what is missing. Sizes and checksums are those that the hub names.
#
# HF_ENDPOINT: a mirror of https://huggingface.co.
. "$(dirname "$0")/recipe.sh"
begin 1001 100 -- "$@"
fetch_gpt2_vocabulary
fetch hf:karpathy/fineweb-edu-100B-gpt2-token-shards/edu_fineweb_val_000000.bin edu_fineweb_val_000000.bin
shard=1
while [ "$shard" -le "$shards" ]; do
  name=$(printf 'edu_fineweb_train_%06d.bin' "$shard")
  fetch "hf:karpathy/fineweb-edu-100B-gpt2-token-shards/$name" "$name"
  shard=$((shard + 1))
done
finish . --model d12 --dtype bf16 --out runs/fineweb_edu
