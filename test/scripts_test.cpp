// Scripts and make's targets: what they are for, what they refuse, and that none reports what it has not done.
#include <filesystem>

#include "program.h"

namespace {

// In the project's root, where tests are run.
class Scripts : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("Makefile") || !std::filesystem::exists("scripts"))
      GTEST_SKIP() << "needs the project's root, where it is run";
  }
};

Words scripts_that_end_in(const std::string& ending) {
  Words paths;
  for (const char* folder : {"scripts", "scripts/data", "test"})
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::string path = entry.path().string();
      if (path.ends_with(ending) && !path.ends_with("/recipe.sh")) paths.push_back(path);
    }
  return paths;
}

// Make, as from a shell and not from `make test`, whose variables it would take over.
Ran make(const std::string& words) { return shell("unset MAKEFLAGS MFLAGS MAKELEVEL; make " + words); }

void expect_make_fails(const std::string& words, const std::string& reason) {
  Ran ran = make(words);
  EXPECT_EQ(ran.status, 2) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "") << "nothing was done before";
  EXPECT_TRUE(has(ran.err, reason)) << ran.err;
}

void put_program(const std::string& path, const std::string& script) {
  put(path, "#!/bin/sh\n" + script + "\n");
  std::filesystem::permissions(path, std::filesystem::perms::all);
}

}  // namespace

TEST_F(Scripts, EveryScriptHasHelpAndRefusesWhatItDoesNotKnow) {
  ASSERT_FALSE(scripts_that_end_in(".sh").empty());
  for (const std::string& script : scripts_that_end_in(".sh")) {
    Ran help = shell("sh " + script + " --help");
    EXPECT_EQ(help.status, 0) << script << help.err;
    EXPECT_TRUE(has(help.out, script)) << script << " says how it is called:\n" << help.out;
    EXPECT_EQ(help.err, "") << script;
    Ran unknown = shell("sh " + script + " --nonsense");
    EXPECT_EQ(unknown.status, 1) << script;
    EXPECT_EQ(lines_of(unknown.err).size(), 1u) << script << unknown.err;
  }
}

// Also where the packages that they need are missing.
TEST_F(Scripts, EveryPythonScriptHasHelpAndRefusesWhatItDoesNotKnow) {
  if (shell("python3 --version").status != 0) GTEST_SKIP() << "needs python3";
  for (const std::string& script : scripts_that_end_in(".py")) {
    Ran help = shell("python3 -S -E " + script + " --help");
    EXPECT_EQ(help.status, 0) << script << help.err;
    EXPECT_TRUE(has(help.out, "usage: ")) << script << help.out;
    Ran unknown = shell("python3 -S -E " + script + " --nonsense");
    EXPECT_EQ(unknown.status, 2) << script;
    EXPECT_EQ(unknown.out, "") << script;
    EXPECT_TRUE(has(unknown.err, "error: ")) << script << unknown.err;
  }
}

TEST_F(Scripts, AnExperimentWithARunThatFailedFailsAndSaysWhich) {
  Scratch folder;
  std::string script = std::filesystem::absolute("scripts/feedback_experiment.sh").string();
  Setting there;
  there.folder = folder.path;
  expect_refused(shell("sh " + script, there), "feedback_experiment", "there is no ./train");
  put_program(folder / "train", "case \"$*\" in *two-pass-2*) echo the disk is full >&2; exit 1;; esac");
  Ran ran = shell("sh " + script + " runs '1 2'", there);
  expect_refused(ran, "feedback_experiment", "two-pass-2 failed: the disk is full");
  EXPECT_TRUE(file_exists(folder / "runs/three-pass-2.txt")) << "the other runs are made all the same";
  EXPECT_EQ(shell("sh " + script + " runs 1", there).status, 0);
  for (const char* seeds : {"' '", "'1 two'"})
    expect_refused(shell(std::string("sh ") + script + " runs " + seeds, there), "feedback_experiment",
                   "seeds are numbers");
}

// A tree of a page, with programs that do as they are told: ./train puts what its only word says, with a flag --out.
class Docs : public Scripts {
 protected:
  void SetUp() override {
    Scripts::SetUp();
    if (IsSkipped()) return;
    if (shell("git --version && bash --version").status != 0) GTEST_SKIP() << "needs git and bash";
    for (const char* name : {"docs", "scripts", "test"}) make_folder(folder_ / name);
    put(folder_ / "scripts/check_docs.sh", contents("scripts/check_docs.sh"));
    put(folder_ / ".gitignore", "/runs/\n");
    put(folder_ / "Makefile", "all:\n\ttouch made\n");
    put(folder_ / "README.md", "A page.\n");
    for (const char* name : {"train", "sample", "eval", "tokenize", "bench"})
      put_program(
          folder_ / name,
          "case $* in *--help) echo '  --out TEXT'; echo '  --[no-]echo' ;; *.conf*) shift 2; eval \"$1\" ;; *) "
          "eval \"$1\" ;; esac");
    Ran made = in_tree("git init -q && git add -A && git -c user.name=a -c user.email=a@b commit -q -m tree");
    ASSERT_EQ(made.status, 0) << made.err;
  }
  Ran in_tree(const std::string& command) {
    Setting there;
    there.folder = folder_.path;
    return shell(command, there);
  }
  // What is said of a page that has these lines.
  Ran check(const std::string& lines) {
    put(folder_ / "README.md", "A page.\n\n" + lines + "\nIts end.\n");
    return in_tree("sh scripts/check_docs.sh README.md");
  }
  void expect_found(const std::string& lines, const std::string& what) {
    Ran ran = check(lines);
    EXPECT_EQ(ran.status, 1) << lines;
    EXPECT_TRUE(has(ran.out, what)) << lines << "\nsaid: " << ran.out << ran.err;
    EXPECT_TRUE(has(ran.out, " 1 failed\n")) << lines << "\nsaid: " << ran.out << ran.err;
  }
  Scratch folder_;
};

TEST_F(Docs, ThatHoldRunWhereTheyWriteNothingOfTheReaders) {
  Ran ran = check("    make && ./train true   # a note\n    ./sample 'mkdir runs; echo 1 >runs/a'\n    cat runs/a\n");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "3 commands ran, 0 had only their flags looked up, 0 blocks hold none, 0 failed\n");
  EXPECT_FALSE(file_exists(folder_ / "runs/a") || file_exists(folder_ / "made")) << "the copy alone was written to";
  ran = check("    x = a + b\n\nand\n\n```sh\n# a note\ncat \\\n  README.md\n```\n");
  EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out, "1 commands ran, 0 had only their flags looked up, 1 blocks hold none, 0 failed\n");
}

TEST_F(Docs, ThatDoNotHoldAreNamedWithPageAndLine) {
  expect_found("    ./train true\n    ./train false # no\n", "README.md:4: exit status 1: ./train false # no\n");
  expect_found("    cat nothing | cat\n", "README.md:3: exit status 1: cat nothing | cat\n");
  expect_found("    cat nothing; cat README.md\n", "README.md:3: exit status 1: ");
  expect_found("    mkdir texts && echo 1 >texts/a\n", "README.md:3: writes texts/: ");
  expect_found("    echo 1 >>README.md\n", "README.md:3: writes README.md: ");
  expect_found("    echo 1 >$HOME/a\n", "README.md:3: writes home/a: ");
  expect_found("    ./train true\n    some words\n",
               "README.md:4: is no command, in a block of commands: some words\n");
  expect_found("    ./train true\n\nThe flag `--nosuch` is none.\n", "README.md:5: no program has a flag --nosuch\n");
  expect_found("    ./train true\n    ./train --dtype bf16 --no-echo\n", "README.md:4: ./train has no flag --dtype: ");
  EXPECT_NE(check("    x = a + b\n").status, 0) << "a page without commands was not checked";
}

TEST_F(Scripts, AGpuCheckWithoutAGpuFails) {
  Scratch folder;
  if (shell("nvidia-smi -L").status == 0) GTEST_SKIP() << "there is a GPU";
  std::string script = "sh scripts/gpu_check.sh " + (folder / "seen.txt");
  expect_refused(shell(script), "gpu_check", "this machine has no NVIDIA GPU");
  expect_refused(shell(script + " tests nonsense"), "gpu_check", "there is no part nonsense");
  EXPECT_FALSE(file_exists(folder / "seen.txt"));
}

TEST_F(Scripts, MakeSaysWhichCompilerIsMissingBeforeItDoesAnything) {
  expect_make_fails("cuda NVCC=", "there is no nvcc in PATH");
  expect_make_fails("CUDA=1 NVCC=", "CUDA=1 needs nvcc");
  expect_make_fails("fuzz CLANG=nosuch", "there is no nosuch in PATH; libFuzzer comes with clang");
  expect_make_fails("fuzz CLANG=false", "false links no program with libFuzzer");
  expect_make_fails("sanitize CXX=false", "false links no program with AddressSanitizer");
  Ran gtest = shell("sh test/find_gtest.sh nosuch");
  expect_refused(gtest, "find_gtest", "there is no compiler nosuch");
}

// What GoogleTest prints, by a program that stands for the tests.
TEST_F(Scripts, TestsThatDidNotRunAreNoSuccess) {
  Scratch folder;
  std::string tests = folder / "tests";
  const std::string passed = "echo '[       OK ] A.B (0 ms)'; ", failed = "echo '[  FAILED  ] A.C (0 ms)'; ";
  const std::string last = "echo '[==========] 1 test from 1 test suite ran. (0 ms total)'; ";
  auto run = [&](const std::string& script) {
    // Of 120 processes the last has a number of three digits.
    put_program(folder / "nproc", "echo 120");
    put_program(tests, "if [ $GTEST_SHARD_INDEX = 119 ]; then " + script + " else " + passed + last + " fi");
    return shell("PATH=" + folder.path + ":$PATH; sh test/run.sh " + tests + " . .");
  };
  EXPECT_EQ(run(passed + last).status, 0);
  EXPECT_TRUE(has(run(passed + last).out, "120 passed, 0 failed\n"));
  Ran ran = run(failed + last + "exit 1;");
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.out, "119 passed, 1 failed\n")) << ran.out;
  ran = run(passed + "exit 0;");
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(has(ran.out, "ended before its last test")) << ran.out;
  ran = run("echo 'a_test.cpp:1: Skipped'; echo needs curl; echo; echo '[  SKIPPED ] A.D (0 ms)'; " + last);
  EXPECT_EQ(ran.status, 0);
  EXPECT_EQ(ran.out, "not run: A.D: needs curl\n119 passed, 0 failed\n");
  expect_refused(shell("sh test/run.sh /no/such . ."), "run", "there is no program /no/such");
}
