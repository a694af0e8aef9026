#!/usr/bin/env python3
"""Cuts random and adversarial texts with src/pretokenizer.cpp and with both libraries, and compares the pieces.

    pip install tiktoken==0.14.0 tokenizers==0.23.3
    scripts/check_pretokenizer.py                 a million texts; minutes
    scripts/check_pretokenizer.py --characters    every character in its places too; ten minutes more
    scripts/check_pretokenizer.py --texts 10000 --seed 7

Every spelling that pattern_of_regex knows is given to both libraries; tiktoken's own cl100k, which means something else
to tokenizers, to tiktoken alone. Ends with status 1 where a text is cut differently.
"""
import argparse
import itertools
import pathlib
import random
import struct
import subprocess
import sys
import tempfile

import tiktoken
import tiktoken_ext.openai_public as openai
import tokenizers
from tokenizers import pre_tokenizers

ROOT = pathlib.Path(__file__).parent.parent

# Reads a pattern's name, or its regex, and texts, each a 32-bit size and bytes; writes each one's count of pieces and
# their ends.
HELPER = r"""
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>
#include "pretokenizer.h"
int main(int, char** arguments) {
  Pattern pattern;
  if (!pattern_of_regex(arguments[1], &pattern)) pattern = pattern_named(arguments[1]);
  std::string text;
  for (uint32_t size; std::fread(&size, 4, 1, stdin) == 1;) {
    text.resize(size);
    if (std::fread(text.data(), 1, size, stdin) != size) return 1;
    std::vector<uint32_t> ends = {0};
    for (size_t at = 0; at < size; ends.push_back(uint32_t(at))) at = piece_end(pattern, text, at);
    ends[0] = uint32_t(ends.size() - 1);
    std::fwrite(ends.data(), 4, ends.size(), stdout);
  }
}
"""

# Characters of every class, and what the patterns name.
NASTY = ["a", "b", "s", "t", "l", "L", "r", "e", "v", "d", "m", "A", "S", "E", "é", "É", "ǅ", "ſ", "\u212a", "ß", "ʰ", "ª",
         "中", "文", "ب", "ก", "あ", "𝐀", "𝒶", "1", "9", "٣", "½", "Ⅷ", "𝟘", "²", "\u0301", "\u0e31", "\u0903", "\u20dd", "\ufe0f",
         "'", "'", "'", "’", "/", "/", "!", ".", "-", "_", "^", "€", "😀", "👍🏽", "\u200d", "\u200b", "\0", "\x1f",
         "\ufeff", "\ufffd", "\U0010ffff", "\ue000", " ", " ", " ", "\t", "\n", "\n", "\r", "\r\n", "\v", "\f", "\x85", "\xa0",
         "\u1680", "\u2003", "\u2028", "\u202f", "\u3000"]
WORDS = ["don't", "DON'T", "we'll", "They'Re", "I'ſ", "'S", "the", "HTMLParser", "camelCase", "x1", "12345", "3.14",
         "https://a.b/c", "naïve", "Größe", "中文字", "นี่", "हिन्दी", "العربية", "e\u0301a",
         "\u0301", "A\u0301B", "ªABC", " \n ", "\r\n", "\n\n", "  ",
         "    ", "\t\t", " \t\n", "...", "!!\n", "//\n/", "-->", "{}", "= 0;\n", "'", "''", " '", "😀"]


def random_text(rng):
    kind = rng.random()
    if kind < 0.45: return "".join(rng.choices(NASTY, k=rng.randint(1, 14)))
    if kind < 0.7: return "".join(rng.choices(WORDS, k=rng.randint(1, 6)))
    if kind < 0.8: return "".join(rng.choices(" \n\t\r\u3000a1!'", k=rng.randint(1, 12)))
    if kind < 0.9: return "".join(rng.choices("aAª\u0301 's1/", k=rng.randint(1, 12)))
    codes = (rng.choice((0x80, 0x800, 0x3000, 0x10000, 0x20000, 0x110000)) for _ in range(rng.randint(1, 10)))
    characters = (chr(rng.randrange(most)) for most in codes)
    return "".join(" " if "\ud800" <= c <= "\udfff" else c for c in characters)


def every_character():
    """Each between letters, after an apostrophe, a space and a capital, before letters, and again and again."""
    codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    parts = ["a{0}b'{0}x {0}{0}{0}{0}1A{0}B\n{0}".format(chr(c)) for c in codes]
    return ["".join(parts[i:i + 8]) for i in range(0, len(parts), 8)]


def our_pieces(helper, pattern, texts):
    encoded = [text.encode() for text in texts]
    data = b"".join(struct.pack("<I", len(text)) + text for text in encoded)
    result = subprocess.run([helper, pattern], input=data, stdout=subprocess.PIPE, check=True).stdout
    numbers = memoryview(result).cast("I")
    at, pieces = 0, []
    for text in encoded:
        ends = [0, *numbers[at + 1:at + 1 + numbers[at]]]
        at += len(ends)
        pieces.append([text[a:b] for a, b in zip(ends, ends[1:])])
    return pieces


def by_tiktoken(regex, texts, pieces):
    """tiktoken gives tokens, not pieces. With our pieces as its vocabulary, and each two neighbours joined, its tokens
    are our pieces just where it cuts as we do: a piece of its own that holds a border of ours would merge across it."""
    words = {p for ours in pieces for p in ours} | {a + b for ours in pieces for a, b in zip(ours, ours[1:])}
    ranks = {bytes([b]): b for b in range(256)}
    for word in sorted(words, key=len):
        if len(word) > 1: ranks[word] = len(ranks)
    words = {rank: word for word, rank in ranks.items()}
    encoding = tiktoken.Encoding("check", pat_str=regex, mergeable_ranks=ranks, special_tokens={})
    return [[words[token] for token in encoding.encode_ordinary(text)] for text in texts]


def by_tokenizers(regex, texts, pieces):
    split = pre_tokenizers.Split(tokenizers.Regex(regex), "isolated")
    return [[piece.encode() for piece, _ in split.pre_tokenize_str(text)] for text in texts]


BYTE_LEVEL = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
SHOWN = [*range(33, 127), *range(161, 173), *range(174, 256)]  # the bytes that ByteLevel shows as themselves
BYTE_OF = {chr(b): b for b in SHOWN} | {chr(256 + i): b for i, b in enumerate(b for b in range(256) if b not in SHOWN)}


def by_byte_level(regex, texts, pieces):
    return [[bytes(BYTE_OF[c] for c in piece) for piece, _ in BYTE_LEVEL.pre_tokenize_str(text)] for text in texts]



openai.load_tiktoken_bpe = openai.data_gym_to_mergeable_bpe_ranks = lambda *_, **__: {}  # no download
CL100K = openai.cl100k_base()["pat_str"]
O200K = openai.o200k_base()["pat_str"]
GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
          r"|\s*[\r\n]+|\s+(?!\S)|\s+")
BOTH = {"tiktoken": by_tiktoken, "tokenizers": by_tokenizers}
SPELLINGS = {
    "gpt2": [(GPT2, BOTH | {"ByteLevel": by_byte_level}),
             (GPT2.replace(r" ?\p{L}+| ?\p{N}+", r" ?[\p{L}]+| ?[\p{N}]+"), BOTH),
             (GPT2.replace("'s|'t|'re|'ve|'m|'ll|'d", "'(?:[sdmt]|ll|ve|re)"), BOTH), (openai.r50k_pat_str, BOTH)],
    "cl100k": [(CL100K, {"tiktoken": by_tiktoken}), (CL100K.replace("{1,3}+", "{1,3}"), BOTH)],
    "llama3": [(LLAMA3, BOTH),
               (r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*"
                r"|\s*[\r\n]|\s+(?!\S)|\s+", BOTH)],
    "qwen2": [(LLAMA3.replace("{1,3}", ""), BOTH)],
    "o200k": [(O200K, BOTH)],
}


def build_helper(folder):
    source = pathlib.Path(folder) / "helper.cpp"
    source.write_text(HELPER)
    sources = [source, *(ROOT / "src" / name for name in ("pretokenizer.cpp", "unicode.cpp", "error.cpp"))]
    subprocess.run(["g++", "-std=c++20", "-O2", f"-I{ROOT}/include", "-o", source.with_suffix(""), *sources], check=True)
    return source.with_suffix("")


def compare(helper, pattern, texts, tally):
    ours = our_pieces(helper, pattern, texts)
    for regex, libraries in SPELLINGS[pattern]:
        if regex != CL100K: assert our_pieces(helper, regex, texts[:9]) == ours[:9], f"not known as {pattern}: {regex}"
        for name, pieces_of in libraries.items():
            wrong = [(text, a, b) for text, a, b in zip(texts, ours, pieces_of(regex, texts, ours)) if a != b]
            tally[pattern, regex, name] = tally.get((pattern, regex, name), 0) + len(wrong)
            for text, a, b in wrong[:3]: print(f"{pattern}, {name}: {text!r}\n  ours   {a}\n  theirs {b}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--texts", type=int, default=1_000_000)
    parser.add_argument("--characters", action="store_true")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng, tally, batch = random.Random(options.seed), {}, 4000
    characters = every_character() if options.characters else []
    with tempfile.TemporaryDirectory() as folder:
        helper = build_helper(folder)
        batches = [characters[i:i + batch] for i in range(0, len(characters), batch)]
        sizes = [min(batch, options.texts - done) for done in range(0, options.texts, batch)]
        for texts in itertools.chain(batches, ([random_text(rng) for _ in range(size)] for size in sizes)):
            for pattern in SPELLINGS: compare(helper, pattern, texts, tally)
    total = len(characters) + options.texts
    for (pattern, regex, library), wrong in tally.items():
        print(f"{pattern:7} {library:10} {total} texts, {wrong} cut differently: {regex}")
    sys.exit(1 if any(tally.values()) else 0)


if __name__ == "__main__":
    main()
