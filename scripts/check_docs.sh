#!/bin/sh
# Runs the commands of README.md, of docs/*.md and of every program's --help as somebody who pastes them would, but small.
# Usage: sh scripts/check_docs.sh [PAGE…]      (default: README.md docs/*.md help)
#
# Each page has its own copy of the tree as git knows it, with the programs that make and make bench have built; its commands
# run there from top to bottom. A command fails where its exit status is not 0, or where it writes a file that git does not
# ignore, or into the home folder, or leaves a temporary file. Of make it is asked what it would do. What cannot run here has
# its flags looked up in --help, as have the flags that a page names in its text.
# Needs git and bash. The exit status is 0 where nothing failed.

# What makes a command small, for sed; ./train takes from $sizes what a command does not name, and make does nothing.
smaller='
s/\.\/train/& --config "$sizes"/g
s/(\.\/bench [a-z]+) --model [^ ]*/\1/g
s/\.\/bench [a-z]+/& --seconds 0.05/g
s/\.\/bench (step|decode|prefill)/& --model nano/g
s/--(layers|batch) [0-9]+/--\1 2/g
s/--(width|seq) [0-9]+/--\1 32/g
s/--vocab [0-9]+/--vocab 300/g
s/--steps [0-9]+/--steps 20/g
'
sizes='
layers = 2
width = 32
heads = 2
seq = 32
batch = 2
batch-tokens = 64
steps = 20
final-eval = 200
val-tokens = 200
'
make_nothing='make() { command make -n "$@" >/dev/null; }'
# What cannot run here: a pattern of the shell, and why.
unrunnable='
sh scripts/data/*|downloads a data set
*data/tinyshakespeare*|needs a data set that is downloaded
*data/fineweb10b*|needs a data set that is downloaded
*scripts/feedback_experiment.sh*|takes hours
*scripts/bench_peers.py*|needs PyTorch and oneDNN, and 20 minutes
*scripts/check_dump.py*|needs PyTorch
*scripts/check_tokenizers.py*|needs tiktoken and tokenizers
*scripts/gpu_check.sh*|needs a GPU
*scripts/digests.sh*|needs what make test builds
*--device cuda*|needs a GPU
*--dtype bf16*|needs a GPU
make CUDA=1*|needs nvcc
*make install*|writes into the home folder
g++*fullband*|needs the installed library
./example*|needs the installed library
*scripts/check_docs.sh*|is what runs
make test-long*|runs another script whatever make is asked
'
# Files that are the reader's own in the examples of --help.
readers_files='
cp README.md book.txt; cp README.md another.txt
mkdir texts; cp docs/*.md texts
echo "{\"text\": \"It was.\"}" >web.jsonl
iconv -f UTF-8 -t UTF-16LE README.md | tee train.bin >val.bin # numbers of 16 bits
'
# How the lines of a block of commands begin, as a regular expression.
begins='^(\./[a-z]+|make|sh|bash|python3|cat|zcat|gzip|head|printf|echo|mkdir|rm|git|[a-z]*[+][+]|[A-Z_]+=[^ ]*)( |$)'
# Flags in the text that are other programs'.
foreign=' --gtest_filter --cflags --libs '
programs='train sample eval tokenize bench'
subcommands='train encode decode data import inspect'

fail() { echo "check_docs: $1" >&2; exit 1; }
for page; do
  case $page in
  -h | --help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  -*) fail "unknown option $page; --help says how it is called" ;;
  esac
done
cd "$(dirname "$0")/.." || exit 1
[ $# -gt 0 ] || set -- README.md docs/*.md help
for page; do [ "$page" = help ] || [ -f "$page" ] || fail "there is no page $page"; done
for tool in git bash; do command -v $tool >/dev/null || fail "there is no $tool"; done
for program in $programs; do [ -x "$program" ] || fail "there is no ./$program here; make and make bench build it"; done
git rev-parse -q --verify HEAD >/dev/null || fail "this is no clone of the repository"

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
mkdir "$work/home" "$work/tmp" "$work/tree" "$work/help"
echo "$sizes" >"$work/sizes.conf"
export sizes="$work/sizes.conf" CCACHE_DISABLE=1 # whose folder is in the home folder
as_somebody() { git -c user.name=check_docs -c user.email=check_docs@localhost "$@"; }
tree=$(as_somebody stash create) # the changes that are not committed; empty where there are none
git archive "${tree:-HEAD}" | tar -xf - -C "$work/tree" || exit 1
commit_all() { (cd "$1" && git init -q && git add -A && as_somebody commit -q --allow-empty -m tree) || exit 1; } # FOLDER
commit_all "$work/tree"

# The --help of a command's program. A Python script's is in its source: it needs no Python here.
help_of() { # WORDS…
  case $1 in
  ./tokenize) case " $subcommands " in *" $2 "*) set -- "$1" "$2" ;; *) set -- "$1" ;; esac ;;
  ./example) return ;;
  ./*) set -- "$1" ;;
  sh) set -- sh "$2" ;;
  python3) sed 's/"--/ --/g' "$2"; return ;;
  *) return ;;
  esac
  page="$work/help/$(echo "$*" | tr -c 'a-z0-9\n' _)"
  [ -f "$page" ] || COLUMNS=120 "$@" --help >"$page"
  cat "$page"
}

# Flags of help that is read, one a line: --[no-]raw is --raw.
flags_in() { sed 's/--\[no-\]/--/g' | grep -o -e '--[a-z][a-z_-]*[a-z]'; }

# The commands of a page, each behind its line's number and a tab. Blocks are indented by four, or fenced with sh; in --help
# they stand under "Examples". Marked are a line in a block of commands that is none (!), and a block without any (-).
commands_of() { # FILE
  awk -v begins="$begins" '
    function begin() { if (inside) end(); inside = 1; commands = 0; start = FNR }
    function end() { if (inside && !commands) print start "\t-"; inside = 0; kept = "" }
    function take(line) {
      sub(/^ */, "", line)
      if (kept == "") first = FNR
      if (kept == "" && line !~ begins) { if (commands) print FNR "\t!" line; return }
      commands = 1
      line = kept line
      kept = line ~ /\\$/ ? substr(line, 1, length(line) - 1) : ""
      if (kept == "") print first "\t" line
    }
    /^Examples$/ { begin(); example = 1; next }
    example { if (/^  /) take($0); else { end(); example = 0 } next }
    /^ *```/ { if (fence == "") { begin(); fence = $0; commands = 0 } else { end(); fence = "" } next }
    fence ~ /sh$/ { if (!/^ *(#|$)/) take($0); next }
    fence != "" { next }
    /^    / { if (blank && !inside) begin(); if (inside) take($0); next }
    { end(); blank = /^$/ }
    END { end() }
  ' "$1"
}

is_known() { grep -qx -e "$1" -e "--${1#--no-}" "$2"; } # FLAG FILE

ran=0 looked_up=0 without=0 failed=0
# complain PLACE WHAT: counts a failure, and says it.
complain() { failed=$((failed + 1)); echo "$1: $2"; }

# Looks up the flags of a command that cannot run.
look_up() { # PLACE COMMAND WHY
  echo "not run: $1: $2 ($3)"
  looked_up=$((looked_up + 1))
  echo "$2" | awk '{ sub(/ # .*/, ""); gsub(/&&|;|[|]/, "\n"); print }' >"$work/parts"
  place=$1
  while read -r part; do
    # shellcheck disable=SC2086  # words
    set -- $part
    case $1 in
    make) case ${2-} in '' | *=*) ;; *) grep -q "^$2:" Makefile || complain "$place" "the Makefile has no $2" ;; esac ;;
    sh | python3) [ -f "$2" ] || { complain "$place" "there is no $2"; continue; } ;;
    esac
    help_of "$@" | flags_in >"$work/known"
    for flag in $(echo "$part" | flags_in); do
      is_known "$flag" "$work/known" || complain "$place" "$1 has no flag $flag: $part"
    done
  done <"$work/parts"
}

# Runs a command in a copy of the tree.
run() { # PLACE COMMAND COPY
  small=$(echo "$2" | sed -E "$smaller")
  (cd "$3" && HOME=$work/home TMPDIR=$work/tmp COLUMNS=80 timeout 300 bash -e -o pipefail -c "$make_nothing
    $small") >"$work/log" 2>&1 </dev/null
  status=$?
  ran=$((ran + 1))
  written=$(git -C "$3" status --porcelain | cut -c 4-; cd "$work" && find home tmp -mindepth 1)
  [ "$status" = 0 ] && [ -z "$written" ] && return
  [ "$status" = 0 ] || complain "$1" "exit status $status: $2"
  [ -z "$written" ] || complain "$1" "writes $(echo $written): $2"
  [ "$small" = "$2" ] || echo "  ran as: $small"
  tail -n 20 "$work/log" | sed 's/^/  /'
  git -C "$3" checkout -q . && git -C "$3" clean -fdq
  rm -rf "$work/home" "$work/tmp" && mkdir "$work/home" "$work/tmp"
}

check_command() { # PLACE COMMAND COPY
  case $2 in
  !*) complain "$1" "is no command, in a block of commands: ${2#!}"; return ;;
  -) without=$((without + 1)); return ;;
  esac
  echo "$unrunnable" | sed 1d >"$work/unrunnable"
  while IFS='|' read -r pattern why; do
    # shellcheck disable=SC2254  # a pattern
    [ -z "$pattern" ] || case $2 in $pattern) look_up "$1" "$2" "$why"; return ;; esac
  done <"$work/unrunnable"
  run "$1" "$2" "$3"
}

# Flags in a page's text, outside of its commands, are some program's.
check_text() { # PAGE; its commands are in the file commands
  grep -no -e '--[a-z][a-z_-]*[a-z]' "$1" >"$work/named"
  while IFS=: read -r line flag; do
    case $foreign in *" $flag "*) continue ;; esac
    grep -q "^$line	" "$work/commands" && continue
    is_known "$flag" "$work/all_flags" || complain "$1:$line" "no program has a flag $flag"
  done <"$work/named"
}

check_page() { # NAME FILE
  commands_of "$2" >"$work/commands"
  [ "$1" != "$2" ] || check_text "$1" # help names its own flags
  while IFS='	' read -r line command; do check_command "$1:$line" "$command" "$work/copy"; done <"$work/commands"
}

# Runs what follows for each program that has --help, as the words $@.
each_help() { # FUNCTION
  for program in $programs; do "$1" "./$program"; done
  for subcommand in $subcommands; do "$1" ./tokenize "$subcommand"; done
}
check_help() { help_of "$@" >"$work/page" && check_page "$* --help" "$work/page"; }

{
  each_help help_of
  for script in scripts/*.sh scripts/data/*.sh test/*.sh; do
    case $script in */recipe.sh | */check_docs.sh | *'*'*) ;; *) help_of sh "$script" ;; esac
  done
  for script in scripts/*.py; do [ ! -f "$script" ] || help_of python3 "$script"; done
} | flags_in >"$work/all_flags"

for page; do
  git clone -q "$work/tree" "$work/copy" || exit 1
  for program in $programs; do cp "$program" "$work/copy/"; done
  if [ "$page" = help ]; then
    (cd "$work/copy" && eval "$readers_files") && commit_all "$work/copy"
    each_help check_help
  else
    check_page "$page" "$page"
  fi
  rm -rf "$work/copy"
done
echo "$ran commands ran, $looked_up had only their flags looked up, $without blocks hold none, $failed failed"
[ "$failed" = 0 ] && [ "$ran" -gt 0 ]
