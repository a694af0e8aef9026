#!/usr/bin/env python3
"""Checks that the tests notice every missing barrier.

In a copy of the source, each barrier of cuda/*.cu and cuda/*.cuh is deleted in turn, the tests are built and run, and
have to fail. Prints a line a barrier; exit status 1 if some deletion survives, 2 if the tests do not build or pass as
they are.

    python3 test/simt/delete_barriers.py            # all barriers, all tests of CUDA operations; ten minutes
    python3 test/simt/delete_barriers.py --filter 'Rmsnorm*' cuda/rmsnorm.cu cuda/reduce.cuh
"""
import argparse
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

BARRIER = re.compile(r"\b(__syncthreads|__syncwarp|copy_async_wait\s*<[^<>;]*>)\s*\(")
WITHOUT_BARRIERS = {"cuda/ptx.cuh"}  # defines them


def find_barriers(text):
    """The (begin, end) of each barrier's call, outside of comments."""
    calls = []
    for match in BARRIER.finditer(text):
        if "//" in text[text.rfind("\n", 0, match.start()) + 1 : match.start()]:
            continue
        end, depth = match.end(), 1
        while depth > 0:
            depth += {"(": 1, ")": -1}.get(text[end], 0)
            end += 1
        calls.append((match.start(), end))
    return calls


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Tests:
    """Builds and runs the tests of a copy of the source."""

    def __init__(self, tree, options):
        names = {"build": "build/barriers", "filter": options.filter}
        self.tree, self.seconds = tree, options.seconds
        self.build_command, self.run_command = options.build.format(**names), options.tests.format(**names)

    def build(self):
        return subprocess.run(self.build_command, shell=True, cwd=self.tree).returncode == 0

    def pass_(self):
        environment = dict(os.environ, GTEST_FAIL_FAST="1")
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        try:
            where = {"cwd": self.tree, "env": environment}
            run = subprocess.run(self.run_command, shell=True, timeout=self.seconds, **where, **quiet)
        except subprocess.TimeoutExpired:
            return False  # threads that wait forever are noticed, too
        return run.returncode == 0


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="whose barriers to delete; all of cuda/ if none is named")
    parser.add_argument("--filter", default="Cuda*-CudaEngine*", help="which tests to run, as --gtest_filter takes it")
    parser.add_argument("--build", default="make -s BUILD={build} {build}/tests", help="builds the tests, in the copy")
    parser.add_argument("--tests", default="{build}/tests --gtest_filter='{filter}'", help="runs them")
    parser.add_argument("--seconds", type=float, default=900, help="a run that takes longer has failed")
    return parser.parse_args()


def copy_source(to):
    def left_out(folder, names):
        at_root = os.path.samefile(folder, ".")
        return [n for n in names if at_root and (n in (".git", "build") or os.path.isfile(n) and os.access(n, os.X_OK))]

    shutil.copytree(".", to, ignore=left_out, symlinks=True)


def check_file(path, tests):
    """Deletes each barrier of a file in turn; returns how many there are and how many of them nobody missed."""
    place, text = os.path.join(tests.tree, path), read(path)
    barriers, survivors = find_barriers(text), 0
    for begin, end in barriers:
        began = time.monotonic()
        write(place, text[:begin] + "void()" + text[end:])
        if not tests.build():
            outcome = "DOES NOT COMPILE"
        else:
            outcome = "SURVIVES" if tests.pass_() else "noticed"
        survivors += outcome != "noticed"
        line = text.count("\n", 0, begin) + 1
        print(f"{path}:{line}: {text[begin:end]}: {outcome} ({time.monotonic() - began:.0f} s)", flush=True)
    write(place, text)
    return len(barriers), survivors


def main():
    options = parse_options()
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", ".."))
    files = options.files or sorted(set(glob.glob("cuda/*.cu") + glob.glob("cuda/*.cuh")) - WITHOUT_BARRIERS)
    with tempfile.TemporaryDirectory() as folder:
        tree = os.path.join(folder, "source")
        copy_source(tree)
        tests = Tests(tree, options)
        if not tests.build() or not tests.pass_():
            print("the tests do not build, or do not pass with all barriers in their places", file=sys.stderr)
            return 2
        counts = [check_file(path, tests) for path in files]
    barriers, survivors = (sum(column) for column in zip(*counts))
    print(f"{barriers} barriers deleted, {barriers - survivors} noticed, {survivors} not")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
