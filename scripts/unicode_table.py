#!/usr/bin/env python3
"""Writes src/unicode_table.inc: the class of every character, from Unicode 16.0.

That is the version of both libraries whose tokenizers are read, found by asking them about every code point:
tiktoken 0.14.0 (Rust's fancy-regex) and tokenizers 0.23.3 (Oniguruma) agree with it, and with each other, on
\\p{L}, \\p{Lu}, \\p{Lt}, \\p{Ll}, \\p{Lm}, \\p{Lo}, \\p{M}, \\p{N} and \\s. 15.1 and 17.0 differ by thousands of letters.
What \\w is to tokenizers (Rust's regex, for added tokens that are single words) is of the same version.

    pip install unicodedata2==16.0.0 tiktoken==0.14.0 tokenizers==0.23.3
    scripts/unicode_table.py >src/unicode_table.inc     writes the table
    scripts/unicode_table.py --check                    compares src/unicode_table.inc with the libraries
"""
import argparse
import itertools
import pathlib
import re
import sys

BLOCK = 128
LAST = 0x110000
# Unicode's White_Space, which is what \s means; unicodedata2 does not have the property.
WHITE_SPACE = {*range(0x09, 0x0E), 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F,
               0x3000}
# What \w has beyond letters, marks and numbers of \p{Nd} and \p{Nl}, but for \p{Pc}: Join_Control and the signs of
# Other_Alphabetic, which unicodedata2 does not have either.
WORD_SIGNS = {0x200C, 0x200D, *range(0x24B6, 0x24EA), *range(0x1F130, 0x1F14A), *range(0x1F150, 0x1F16A),
              *range(0x1F170, 0x1F18A)}
LETTERS = {"Ll": "l", "Lu": "u", "Lt": "u", "Lm": "o", "Lo": "o"}


def letter_of(code, category):
    """The table's letter for a character: src/unicode.cpp has the legend."""
    if code in (0x0A, 0x0D): return "e"
    if code in WHITE_SPACE: return "s"
    if category in LETTERS: return LETTERS[category]
    if category == "No": return "f"
    if category == "Pc" or code in WORD_SIGNS: return "_"
    return {"M": "m", "N": "n"}.get(category[0], ".")


def write():
    import unicodedata2
    version = unicodedata2.unidata_version
    if version != "16.0.0": sys.exit(f"unicodedata2 has Unicode {version}: pip install unicodedata2==16.0.0")
    letters = "".join(letter_of(c, unicodedata2.category(chr(c))) for c in range(LAST))
    blocks = [(at, letters[at:at + BLOCK]) for at in range(0, LAST, BLOCK)]
    print("// Written by scripts/unicode_table.py from Unicode 16.0: a character, and the classes from there on, which repeat "
          "up to\n// the next line's. unicode.cpp has the legend.")
    print("// clang-format off")
    for _, equal in itertools.groupby(blocks, key=lambda block: block[1]):
        at, row = next(equal)
        print(f'{{0x{at:06X}, "{row}"}},')
    print("// clang-format on")


def read():
    path = pathlib.Path(__file__).parent.parent / "src" / "unicode_table.inc"
    rows = re.findall(r'\{0x(\w+), "([^"]+)"\},', path.read_text())
    starts = [int(at, 16) for at, _ in rows] + [LAST]
    return "".join(row * ((end - at) // BLOCK) for (_, row), at, end in zip(rows, starts, starts[1:]))


def check():
    """Asks the libraries which of all code points a pattern matches: the others are dropped, or are what is left."""
    import tiktoken
    import tokenizers
    codes = [c for c in range(LAST) if not 0xD800 <= c < 0xE000]
    chunks = ["".join(map(chr, codes[i:i + 4096])) for i in range(0, len(codes), 4096)]
    bytes_alone = {bytes([b]): b for b in range(256)}

    def by_tiktoken(regex):
        encoding = tiktoken.Encoding("check", pat_str=regex, mergeable_ranks=bytes_alone, special_tokens={})
        return {c for chunk in chunks for c in bytes(encoding.encode_ordinary(chunk)).decode()}

    def by_tokenizers(regex):
        split = tokenizers.pre_tokenizers.Split(tokenizers.Regex(regex), "removed")
        return {c for chunk in chunks for c in set(chunk) - {c for s, _ in split.pre_tokenize_str(chunk) for c in s}}

    def words():
        """A token that is a single word isn't found behind a character of \\w."""
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
        tokenizer.add_tokens([tokenizers.AddedToken("<>", single_word=True)])
        texts = [chr(c) + "<>" for c in codes]
        return {text[0] for text, found in zip(texts, tokenizer.encode_batch(texts)) if not found.ids}

    table, differences = read(), 0
    for regex, letters in [(r"\p{L}", "luo"), (r"\p{Ll}", "l"), (r"[\p{Lu}\p{Lt}]", "u"), (r"[\p{Lm}\p{Lo}]", "o"),
                           (r"\p{M}", "m"), (r"\p{N}", "nf"), (r"\s", "se"), (r"[\r\n]", "e"),
                           (r"[^\s\p{L}\p{N}]", "m_."), (r"\w", "luomn_")]:
        ours = {chr(c) for c in codes if table[c] in letters}
        libraries = [("tiktoken", by_tiktoken), ("tokenizers", by_tokenizers)]
        if regex == r"\w": libraries = [("tokenizers", lambda _: words())]
        for library, ask in libraries:
            theirs = ask(regex)
            wrong = sorted(ours ^ theirs)
            differences += len(wrong)
            print(f"{regex:18} {library:10} {len(theirs):7} characters, {len(wrong)} differ",
                  " ".join(f"U+{ord(c):04X}" for c in wrong[:8]))
    sys.exit(1 if differences else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare the table that is there with the libraries")
    try:
        check() if parser.parse_args().check else write()
    except ImportError as missing:
        sys.exit(f"unicode_table: {missing}; pip install unicodedata2==16.0.0 tiktoken==0.14.0 tokenizers==0.23.3")
