#!/bin/sh
# Downloads one file: whole and right, or not at all.
# Usage: sh scripts/data/fetch.sh URL FILE [BYTES [SHA256]]
#
# The bytes go to FILE.partial, which becomes FILE once its size and its SHA-256 are right, where they are given. A
# broken download goes on where it ended, now or in the next run. A FILE that is there and right is left alone. Two runs
# at once download once. URL may be hf:OWNER/DATASET/PATH, a file of a data set on huggingface.co, or on the mirror
# HF_ENDPOINT: then the hub is asked for what is not given. BYTES may be - for unknown.
#
# Needs curl, and sha256sum or shasum. FETCH_WAIT: seconds before the second try (1), doubled for every further one.
# On a mistake: one line, exit status 1.
set -u
export LC_ALL=C

fail() {
  echo "fetch: $1" >&2
  exit 1
}

size_of() { # bytes of a file, 0 where there is none
  [ -f "$1" ] && wc -c <"$1" | tr -d ' ' || echo 0
}

sha256_of() {
  if command -v sha256sum >/dev/null; then sha256sum <"$1"; else shasum -a 256 <"$1"; fi | cut -d ' ' -f 1
}

# Says in $wrong what is wrong with a file; "" where nothing is known to be.
judge() {
  wrong=
  has=$(size_of "$1")
  if [ "$bytes" != - ] && [ "$has" != "$bytes" ]; then
    wrong="has $has bytes instead of $bytes"
  elif [ -n "$sha256" ]; then
    has=$(sha256_of "$1")
    [ "$has" = "$sha256" ] || wrong="has the SHA-256 $has instead of $sha256"
  fi
}

# What befell curl: its exit status and the HTTP status.
reason() {
  case $1 in
  6) echo "the host is not found" ;;
  7) echo "no connection" ;;
  18 | 52 | 55 | 56 | 92) echo "the server broke off" ;;
  22) if [ "$2" = 404 ]; then echo "there is no such file (HTTP 404)"; else echo "the server refuses (HTTP $2)"; fi ;;
  23) echo "$file.partial cannot be written (is the disk full?)" ;;
  28) echo "the server is silent" ;;
  33) echo "the server cannot resume" ;;
  35 | 51 | 60 | 77) echo "no secure connection (curl's error $1)" ;;
  *) echo "curl's error $1" ;;
  esac
}

# Whether to try again after that; waits before it says yes.
again() {
  case $1 in
  1 | 2 | 3 | 23 | 26 | 27 | 51 | 60 | 77) return 1 ;;
  22) case $2 in 408 | 416 | 429 | 500 | 502 | 503 | 504) ;; *) return 1 ;; esac ;;
  esac
  tries=$((tries + 1))
  [ "$tries" -le 5 ] || return 1
  echo "$file: $(reason "$1" "$2") at $(size_of "$file.partial") bytes; again in $wait s"
  sleep "$wait"
  wait=$((wait * 2))
}

first_try() { tries=0 wait=${FETCH_WAIT:-1}; }

# Size and SHA-256 as the hub's headers have them: X-Linked-Size, X-Linked-ETag. A mirror may leave them out.
ask_hub() {
  first_try
  while :; do
    answer=$(curl -sIL --connect-timeout 30 --max-time 60 -w 'asked: %{http_code}\n' -- "$url")
    code=$?
    # shellcheck disable=SC2046  # three words
    set -- $(printf '%s\n' "$answer" | awk '
      { gsub(/[\r"]/, ""); name = tolower($1); sub(/^W\//, "", $2) }
      name == "x-linked-size:" && bytes == "" && $2 ~ /^[0-9]+$/ { bytes = $2 }
      name == "x-linked-etag:" && sum == "" && length($2) == 64 && $2 ~ /^[0-9a-f]+$/ { sum = $2 }
      name == "asked:" { status = $2 }
      END { print bytes == "" ? "-" : bytes, sum == "" ? "-" : sum, status }')
    if [ "$1$2" != -- ]; then
      [ "$1" = - ] || bytes=$1
      [ "$2" = - ] || sha256=$2
      return
    fi
    case $3 in [45]*) code=22 ;; esac
    [ "$code" != 0 ] || return
    again "$code" "$3" && continue
    # A mirror may refuse the question and still have the file.
    if [ "$code" = 22 ] && [ "$3" != 404 ] && [ "$tries" -le 5 ]; then return; fi
    fail "$url: $(reason "$code" "$3")"
  done
}

alive() { # a process that ended, but whom nobody has buried yet, is not
  kill -0 "$1" 2>/dev/null && ! grep -qs '^State:[[:space:]]*Z' "/proc/$1/status"
}

# One run at a time. Whoever works on the file is in FILE.lock: the script, and its curl, which outlives a script that is
# killed the hard way.
lock() {
  broken=0 told=
  until (set -C && echo "pid $$" >"$file.lock") 2>/dev/null; do
    [ -e "$file.lock" ] || [ -w "$folder" ] || fail "$folder cannot be written to"
    holder=
    for pid in $(sed -n 's/^pid //p' "$file.lock" 2>/dev/null); do
      if alive "$pid"; then holder=$pid; fi
    done
    if [ -n "$holder" ]; then
      [ -n "$told" ] ||
        echo "$file: waiting for process $holder, which downloads it (where it does not, remove $file.lock)"
      told=1
      sleep 0.2 2>/dev/null || sleep 1 # POSIX knows whole seconds alone
    else
      broken=$((broken + 1))
      [ "$broken" -lt 10 ] || fail "$file.lock cannot be written (is the disk full?)"
      rm -f "$file.lock"
    fi
  done
  trap 'rm -f "$file.lock"' EXIT
  trap 'stop 129' HUP
  trap 'stop 130' INT
  trap 'stop 143' TERM
}

curl_pid=
stop() {
  if [ -n "$curl_pid" ]; then kill "$curl_pid" && wait "$curl_pid"; fi 2>/dev/null
  [ ! -s "$file.partial" ] ||
    echo "$file: stopped at $(size_of "$file.partial") bytes; the same command goes on from there"
  exit "$1"
}

# Brings FILE.partial to its end.
download() {
  first_try
  if [ -t 2 ]; then progress=--progress-bar; else progress=-s; fi
  while :; do
    had=$(size_of "$file.partial")
    if [ "$bytes" != - ]; then
      [ "$had" = "$bytes" ] && return
      [ "$had" -lt "$bytes" ] || rm -f "$file.partial"
    fi
    # In the background, so that a signal to this script is heard at once.
    curl -fL "$progress" -C - -o "$file.partial" --connect-timeout 30 --speed-limit 1 --speed-time 60 \
      -w 'http %{http_code}\n' -- "$url" >>"$file.lock" &
    curl_pid=$!
    echo "pid $curl_pid" >>"$file.lock"
    wait "$curl_pid"
    code=$?
    curl_pid=
    http=$(sed -n 's/^http //p' "$file.lock" | tail -n 1)
    # Nothing lies beyond what is here, or the server can only begin at the beginning.
    if [ "$http" = 416 ]; then code=22; fi
    if [ "$http" = 416 ] || [ "$code" = 33 ]; then rm -f "$file.partial"; fi
    [ "$code" = 0 ] && return
    [ $(($(size_of "$file.partial") - had)) -lt 1048576 ] || first_try
    again "$code" "$http" && continue
    kept=
    [ ! -s "$file.partial" ] || kept="; the same command goes on from $(size_of "$file.partial") bytes"
    [ -s "$file.partial" ] || rm -f "$file.partial"
    fail "$url: $(reason "$code" "$http")$kept"
  done
}

case ${1-} in -h | --help) exec sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$0" ;; esac
case $# in 2 | 3 | 4) ;; *) fail "usage: fetch.sh URL FILE [BYTES [SHA256]] (--help says more)" ;; esac
url=$1 file=$2 bytes=${3:--} sha256=${4-}
case $bytes in -) ;; *[!0-9]*) fail "BYTES is a number or -, not $bytes" ;; esac
case $sha256 in *[!0-9a-f]*) fail "SHA256 is 64 hexadecimal digits, not $sha256" ;; esac
[ -z "$sha256" ] || [ ${#sha256} = 64 ] || fail "SHA256 is 64 hexadecimal digits, not $sha256"
command -v curl >/dev/null || fail "curl is missing: install it (on Debian or Ubuntu: apt install curl)"
command -v sha256sum >/dev/null || command -v shasum >/dev/null || fail "sha256sum is missing: install coreutils"
case $file in -*) file=./$file ;; esac
[ ! -d "$file" ] || fail "$file is a folder, not a file"
folder=$(dirname -- "$file")
mkdir -p -- "$folder" 2>/dev/null || fail "the folder $folder cannot be made"

lock
case $url in hf:*/*/*)
  path=${url#hf:}
  owner=${path%%/*} path=${path#*/}
  endpoint=${HF_ENDPOINT:-https://huggingface.co}
  url=${endpoint%/}/datasets/$owner/${path%%/*}/resolve/main/${path#*/}
  [ -n "$sha256" ] || ask_hub
  [ -n "$sha256" ] || echo "$file: $endpoint names no checksum, so none is checked"
  ;;
esac
if [ -f "$file" ]; then
  judge "$file"
  [ -n "$wrong" ] || { echo "$file: there already" && exit 0; }
  echo "$file: $wrong, so it is downloaded again"
else
  echo "$file: downloading$([ "$bytes" = - ] || echo " $bytes bytes")"
fi
download
judge "$file.partial"
if [ -n "$wrong" ]; then
  rm -f "$file.partial"
  fail "$url $wrong: it is not kept (has it changed, or does something on the way change it?)"
fi
mv -f -- "$file.partial" "$file" || fail "$file cannot be written"
