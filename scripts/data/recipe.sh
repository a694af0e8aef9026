# What the recipes share; each begins with:  . "$(dirname "$0")/recipe.sh"
# A recipe's comment at its head is its --help. Its words are a folder and, where it knows a number of shards, a number.
set -eu
recipe=$(basename "$0" .sh)
scripts=$(dirname "$0")

fail() {
  echo "$recipe: $1" >&2
  exit 1
}

[ "$recipe" != recipe ] || fail "this is what the recipes share; run one of them"

# begin [MOST_SHARDS SHARDS] -- WORDS…: sets $folder and, between 1 and the most, $shards.
begin() {
  most=0 shards=0 folder=
  [ "$1" = -- ] || { most=$1 shards=$2 && shift 2; }
  shift
  for word; do
    case $word in
    -h | --help)
      sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0"
      exit 0
      ;;
    -*) fail "there is no flag $word (--help says what there is)" ;;
    '') fail "the folder's name is empty" ;;
    *[!0-9]*)
      [ -z "$folder" ] || fail "two folders, $folder and $word; one is enough"
      folder=$word
      ;;
    *)
      [ "$most" -gt 0 ] || fail "$word: a number has no meaning here; a folder of that name is ./$word"
      if [ ${#word} -gt 6 ] || [ "$word" -lt 1 ] || [ "$word" -gt "$most" ]; then
        fail "the number of shards is from 1 to $most, not $word"
      fi
      shards=$word
      ;;
    esac
  done
  folder=${folder:-data/$recipe} folder=${folder%/}
}

fetch() { # URL NAME [BYTES [SHA256]]: into the folder
  url=$1 name=$2
  shift 2
  sh "$scripts/fetch.sh" "$url" "$folder/$name" "$@" || exit $?
}

# Whoever downloads gigabytes should know before that they cannot be used.
need_tokenize() {
  [ -x ./tokenize ] || fail "./tokenize is not here: run make, and then this from the project's root"
}

make_tokenizer() { # VOCABULARY TEXT…: the folder's tok.json
  vocabulary=$1
  shift
  [ -f "$folder/tok.json" ] || ./tokenize train --vocab "$vocabulary" --data "$@" --out "$folder/tok.json" || exit $?
}

# After the training shards: a held-out file of its own becomes val_000000.bin …. It is tokenized by itself and linked
# beside them. Can be stopped anywhere: while the folder held_out is there, its files are linked again.
hold_out() { # INPUT FLAGS…, as for ./tokenize data
  if [ -f "$folder/val_000000.bin" ] && [ ! -d "$folder/held_out" ]; then return; fi
  ./tokenize data "$@" --out "$folder/held_out" --val 0 || exit $?
  for from in "$folder"/held_out/train_*; do
    to=$folder/val_${from##*/train_}
    ln -f "$from" "$to" 2>/dev/null || cp "$from" "$to" || fail "$to cannot be written"
  done
  rm -r "$folder/held_out"
}

# GPT-2's vocabulary, for what is tokenized with it: vocab.bpe, encoder.json.
fetch_gpt2_vocabulary() {
  from=https://openaipublic.blob.core.windows.net/gpt-2/encodings/main
  fetch $from/vocab.bpe vocab.bpe 456318 1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5
  fetch $from/encoder.json encoder.json 1042301 196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783
}

quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

finish() { # TOKENIZER FLAGS…: the line to paste; the tokenizer is a name in the folder, or . for the folder
  tokenizer=$folder/$1
  [ "$1" != . ] || tokenizer=$folder
  shift
  echo "$folder is ready. To train on it:"
  echo "    ./train --data $(quoted "$folder/*.bin") --tokenizer $(quoted "$tokenizer") $*"
}
