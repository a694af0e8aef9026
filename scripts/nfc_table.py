#!/usr/bin/env python3
"""Writes src/nfc_table.inc: what canonical composition (NFC) knows of characters, from Unicode 9.0.

That is the version of the normalizers in tokenizers 0.23.3: there, and so here, characters that came later stay as they
are. What Unicode says of a character's composition never changes, so a newer version's data serves, without the
characters that are younger. scripts/check_tokenizers.py holds the result against the library.

    pip install unicodedataplus==16.0.0
    scripts/nfc_table.py >src/nfc_table.inc
"""
import argparse
import itertools
import sys

if __name__ == "__main__":  # --help needs nothing that may be missing
    argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter).parse_args()

try:
    import unicodedataplus as unicode
except ImportError as missing:
    sys.exit(f"nfc_table: {missing}; pip install unicodedataplus==16.0.0")

VERSION = (9, 0)


def known():
    """That version's characters with a combining class or a canonical decomposition, but for Hangul's syllables."""
    for code in range(sys.maxunicode + 1):
        c = chr(code)
        if unicode.combining(c) or canonical(c):
            age = unicode.age(c)
            if age != "Unassigned" and tuple(map(int, age.split("."))) <= VERSION:
                yield c


def canonical(c):
    """One step of the decomposition: one or two characters, or none."""
    parts = unicode.decomposition(c)
    return "" if parts.startswith("<") else "".join(chr(int(part, 16)) for part in parts.split())


def marks(characters):
    """First and last of neighbours of one combining class, and the class."""
    classes = [(ord(c), unicode.combining(c)) for c in characters if unicode.combining(c)]
    for _, group in itertools.groupby(enumerate(classes), key=lambda at: (at[1][0] - at[0], at[1][1])):
        group = [mark for _, mark in group]
        yield f"{{0x{group[0][0]:X}, 0x{group[-1][0]:X}, {group[0][1]}}}"


def decompositions(characters):
    """The parts (0: there is no second one), the character, whether the parts compose to it; in the parts' order."""
    rows = sorted((canonical(c), c) for c in characters if canonical(c))
    for parts, c in rows:
        first, second = (*map(ord, parts), 0)[:2]
        composes = "true" if unicode.normalize("NFC", parts) == c else "false"
        yield f"{{0x{first:X}, 0x{second:X}, 0x{ord(c):X}, {composes}}}"


def write_array(declaration, rows):
    print(f"constexpr {declaration}[] = {{")
    line = ""
    for row in rows:
        if len(line) + len(row) > 118:
            print(line.rstrip())
            line = ""
        line += row + ", "
    print(line.rstrip())
    print("};")


def main():
    if unicode.unidata_version != "16.0.0": sys.exit("pip install unicodedataplus==16.0.0")
    characters = list(known())
    print("// Written by scripts/nfc_table.py from Unicode 9.0: combining classes and canonical decompositions.\n"
          "// nfc.cpp has the columns' names.\n// clang-format off")
    write_array("Mark kMarks", marks(characters))
    write_array("Decomposition kDecompositions", decompositions(characters))
    print("// clang-format on")


if __name__ == "__main__":
    main()
