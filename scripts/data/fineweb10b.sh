#!/bin/sh
# FineWeb, 10 billion tokens: pages of the web, already tokenized with GPT-2's vocabulary, in llm.c's format (the set
# kjj0/fineweb10B-gpt2 on huggingface.co, made of HuggingFaceFW/fineweb's sample; licence of the texts ODC-By).
# Usage:  sh scripts/data/fineweb10b.sh [FOLDER] [SHARDS]
#
# SHARDS: from 1 to 103 of 100 million tokens each; all where it is left out.
# Needs curl; 200 MB of disk and of download for every shard and one more, held out: 21 GB in all, about half an hour at
# 100 Mbit/s. Nothing is left to tokenize.
# Leaves in FOLDER (data/fineweb10b): fineweb_train_000001.bin …, fineweb_val_000000.bin, and GPT-2's vocabulary,
# vocab.bpe and encoder.json. The last line it prints is the one to train with. A run that was stopped goes on where it
# was; one with more shards fetches what is missing. Sizes and checksums are those that the hub names.
#
# HF_ENDPOINT: a mirror of https://huggingface.co.
. "$(dirname "$0")/recipe.sh"
begin 103 103 -- "$@"
fetch_gpt2_vocabulary
fetch hf:kjj0/fineweb10B-gpt2/fineweb_val_000000.bin fineweb_val_000000.bin
shard=1
while [ "$shard" -le "$shards" ]; do
  name=$(printf 'fineweb_train_%06d.bin' "$shard")
  fetch "hf:kjj0/fineweb10B-gpt2/$name" "$name"
  shard=$((shard + 1))
done
finish . --model d12 --dtype bf16 --out runs/fineweb
