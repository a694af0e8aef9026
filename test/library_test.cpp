// What make install leaves: programs that call each other by their installed names, and a library that the example of
// docs/library.md links.
#include <filesystem>

#include "program.h"

namespace {

// The project as it is built here, installed below a folder of the test's.
class Library : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists("docs/example.cpp") || !std::filesystem::exists("train") ||
        !std::filesystem::equivalent(program_path("train"), "train"))
      GTEST_SKIP() << "needs the project's root and the usual build in it";
    Ran ran = shell("unset MAKEFLAGS MFLAGS MAKELEVEL; make install DESTDIR=" + (*bench / "") + " PREFIX=/usr");
    ASSERT_EQ(ran.status, 0) << ran.err;
  }
  std::string installed(const std::string& name) const { return *bench / ("usr/" + name); }
  // Compiles the example with the flags of the installed fullband.pc.
  Ran compile() const {
    std::string sysroot =
        "sed -n 's|${libdir}|" + installed("lib") + "|; s|${includedir}|" + installed("include") + "|; ";
    auto flags = [&](const std::string& name) {
      return " $(" + sysroot + "s/^" + name + ": //p' " + installed("lib/pkgconfig/fullband.pc") + ")";
    };
    return shell("${CXX:-g++} docs/example.cpp" + flags("Cflags") + flags("Libs") + " -o " + (*bench / "example"));
  }
  std::unique_ptr<Bench> bench = std::make_unique<Bench>();
};

TEST_F(Library, IsInstalledWithItsHeadersAndProgramsAndTakenAwayWhole) {
  for (const char* program : {"train", "sample", "eval", "tokenize"})
    EXPECT_TRUE(file_exists(installed(std::string("bin/fullband-") + program)));
  for (const auto& header : std::filesystem::directory_iterator("include"))
    EXPECT_TRUE(file_exists(installed("include/fullband/" + header.path().filename().string())));
  std::string version = run("train", {"--version"}).out;  // Fullband 0.1.0 for …
  EXPECT_TRUE(has(contents(installed("lib/pkgconfig/fullband.pc")),
                  "\nVersion: " + version.substr(9, version.find(' ', 9) - 9) + "\n"));
  Ran ran = shell("unset MAKEFLAGS MFLAGS MAKELEVEL; make uninstall DESTDIR=" + (*bench / "") + " PREFIX=/usr");
  EXPECT_EQ(ran.status, 0) << ran.err;
  for (const auto& left : std::filesystem::recursive_directory_iterator(installed("")))
    EXPECT_TRUE(left.is_directory()) << left.path();
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
