#!/bin/sh
# TinyShakespeare: 40,000 lines of Shakespeare's plays, 1.1 MB, Andrej Karpathy's collection for char-rnn.
# Usage, from the project's root after `make`:  sh scripts/data/tinyshakespeare.sh [FOLDER]
#
# Needs curl; 3 MB of disk; some seconds.
# Leaves in FOLDER (data/tinyshakespeare): input.txt, the text as it is; documents.txt, the same cut between speeches
# into documents of about 4 KB; tok.json, a vocabulary of 1,024 learned from it; the shards train_*.bin and val_*.bin,
# a tenth of the documents; tokenizer.json. The last line it prints is the one to train with.
# A run that was stopped goes on where it was.
. "$(dirname "$0")/recipe.sh"
begin -- "$@"
need_tokenize
fetch https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt input.txt \
  1115394 86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed
if [ ! -f "$folder/documents.txt" ]; then
  awk '{ bytes += length($0) + 1 } $0 == "" && bytes > 4096 { print "<|endoftext|>"; bytes = 0; next } { print }' \
    "$folder/input.txt" >"$folder/documents.txt.partial"
  mv "$folder/documents.txt.partial" "$folder/documents.txt"
fi
make_tokenizer 1024 "$folder/documents.txt"
./tokenize data "$folder/documents.txt" --out "$folder" --tokenizer "$folder/tok.json" --val 0.1
finish tokenizer.json --model micro --out runs/shakespeare
