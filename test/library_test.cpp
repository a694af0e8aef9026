// What make install leaves: programs that call each other by their installed names, and a library that the example of
// docs/library.md links.
#include <filesystem>
#include <set>

#include "program.h"

namespace {

// Make, as from a shell and not from `make test`, whose variables it would take over.
Ran make(const std::string& words) { return shell("unset MAKEFLAGS MFLAGS MAKELEVEL; make " + words); }

// The project as it is built here, installed below a folder of the test's.
class Library : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("docs/example.cpp") || !std::filesystem::exists("train") ||
        !std::filesystem::equivalent(program_path("train"), "train"))
      GTEST_SKIP() << "needs the project's root and the usual build in it";
    Ran ran = make("install" + there_);
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  std::string installed(const std::string& name) const { return *bench / ("opt/" + name); }
  std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(installed("")))
      if (!entry.is_directory()) names.insert(std::filesystem::relative(entry.path(), installed("")).string());
    return names;
  }
  // The flags that fullband.pc has for where it lies, as a shell's words.
  std::string flags() const {
    if (shell("pkg-config --version").status == 0)
      return " $(PKG_CONFIG_PATH=" + installed("lib/pkgconfig") + " PKG_CONFIG_SYSROOT_DIR=" + bench->folder.path +
             " pkg-config --cflags --libs fullband)";
    return " $(sed -n 's|${libdir}|" + installed("lib") + "|; s|${includedir}|" + installed("include") +
           "|; s/^Cflags: //p; s/^Libs: //p' " + installed("lib/pkgconfig/fullband.pc") + ")";
  }
  Ran compile() const { return shell("${CXX:-g++} docs/example.cpp" + flags() + " -o " + (*bench / "example")); }
  std::unique_ptr<Bench> bench = std::make_unique<Bench>();
  std::string there_ = " DESTDIR=" + bench->folder.path + " PREFIX=/opt";
};

TEST_F(Library, IsInstalledWithItsHeadersAndProgramsAndTakenAwayWhole) {
  std::set<std::string> wanted = {"lib/libfullband.a", "lib/pkgconfig/fullband.pc"};
  for (const char* program : {"train", "sample", "eval", "tokenize"})
    wanted.insert(std::string("bin/fullband-") + program);
  for (const auto& header : std::filesystem::directory_iterator("include"))
    wanted.insert("include/fullband/" + header.path().filename().string());
  EXPECT_EQ(files(), wanted);
  std::string version = run("train", {"--version"}).out;  // Fullband 0.1.0 for …
  EXPECT_TRUE(has(contents(installed("lib/pkgconfig/fullband.pc")),
                  "\nVersion: " + version.substr(9, version.find(' ', 9) - 9) + "\n"));
  put(installed("include/fullband/of_an_older_version.h"), "");
  Ran ran = make("install" + there_);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(lines_of(ran.out).size(), 2u) << "what is built is not built again:\n" << ran.out;
  EXPECT_EQ(files(), wanted);
  put(installed("bin/another"), "");
  ran = make("uninstall" + there_);
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(files(), std::set<std::string>{"bin/another"});
}

TEST_F(Library, IsNotInstalledWhereItCannotBe) {
  put(*bench / "file", "");
  Ran ran = make("install PREFIX=" + (*bench / "file"));
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_TRUE(has(ran.err, "mkdir: ") && has(ran.err, *bench / "file")) << ran.err;
  EXPECT_FALSE(has(ran.out, "installed ")) << ran.out;
  ran = make("install DESTDIR=" + (*bench / "") + " PREFIX='/a folder'");
  EXPECT_EQ(ran.status, 2) << ran.out;
  EXPECT_TRUE(has(ran.err, "PREFIX is one folder without a space in its name, not /a folder\n")) << ran.err;
}

TEST_F(Library, ProgramsCallThemselvesAndEachOtherByTheNamesTheyAreInstalledBy) {
  for (const char* words : {"train --help", "sample --help", "eval --help", "tokenize", "tokenize data --help"}) {
    Ran ran = shell(installed("bin/fullband-") + words);
    EXPECT_EQ(ran.status, 0) << ran.err;
    EXPECT_FALSE(has(ran.out, "./train") || has(ran.out, "./sample") || has(ran.out, "./tokenize")) << ran.out;
    EXPECT_TRUE(has(ran.out, "fullband-")) << ran.out;
  }
  Ran ran = shell(installed("bin/fullband-eval") + " --model " + (*bench / "nothing"));
  EXPECT_TRUE(ran.err.starts_with("fullband-eval: ") && has(ran.err, "; fullband-train makes one")) << ran.err;
  Setting there;
  there.folder = bench->folder.path;
  for (const char* path : {"./train.txt", "./train_text/a.txt", "./train", "./sample.", "./evals"}) {
    ran = shell(installed("bin/fullband-train") + " --data " + path, there);
    EXPECT_TRUE(has(ran.err, std::string(" ") + path)) << "a path that was typed stays as it is: " << ran.err;
  }
  Words words = bench->tiny("out", 4);
  words.insert(words.begin(), installed("bin/fullband-train"));
  std::string out = Running(words, {}).wait().out;
  EXPECT_TRUE(has(out, "talk     " + installed("bin/fullband-sample") + " --model ")) << out;
}

TEST_F(Library, LinksTheExampleThatItsPageShowsWhichSaysWhatSampleSays) {
  EXPECT_TRUE(has(contents("docs/library.md"), "```cpp\n" + contents("docs/example.cpp") + "```\n")) << "copy it there";
  Ran ran = compile();
  ASSERT_EQ(ran.status, 0) << ran.err;
  bench->train(bench->tiny("out", 30));
  ran = shell((*bench / "example ") + (*bench / "out") + " 'the ' cat");
  EXPECT_EQ(ran.status, 0) << ran.err;
  std::string model = *bench / "out";
  Words words = {"--model", model, "--prompt", "the ", "--tokens", "40", "--temperature", "0", "--threads", "1"};
  std::string said = run("sample", words).out;
  EXPECT_EQ(ran.out.substr(0, said.size()), said);
  Setting request;
  request.input = "{\"prompt\": \"the \", \"continuation\": \"cat\"}\n";
  Json answer = parse_json(run("sample", {"--model", model, "--serve"}, request).out, "answer");
  double nats = -answer.get_number("logprob", "answer");
  EXPECT_TRUE(has(ran.out, text("\"cat\" instead: %.4f nats in %zu tokens", nats, answer.find("tokens")->items.size())))
      << ran.out;
  ran = shell((*bench / "example ") + (*bench / "nothing"));
  EXPECT_EQ(ran.status, 1);
  EXPECT_TRUE(ran.err.starts_with("example: ") && has(ran.err, "there is no such folder")) << ran.err;
}

}  // namespace
