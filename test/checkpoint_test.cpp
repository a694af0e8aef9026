// Checkpoints: whole or absent, whatever is full, killed, cut or changed.
#include "checkpoint.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "files.h"
#include "scratch.h"

namespace {

struct TinyRun {
  std::vector<float> weights = std::vector<float>(1000, 0.5f);
  CheckpointContents contents(int64_t step) const {
    CheckpointContents c;
    c.model = {{"w", "F32", {10, 100}, weights.data()}};
    c.optimizer = {{"m.w", "F32", {10, 100}, weights.data()}, {"v.w", "F32", {10, 100}, weights.data()}};
    c.config = Json::object({{"width", 64}});
    c.state = Json::object({{"step", step}, {"note", "é"}});
    return c;
  }
};

std::string save(const Scratch& out, int64_t step, Keep keep = {}, float weight = 0.5f) {
  TinyRun run;
  run.weights.assign(1000, weight);
  return save_checkpoint(out.path, step, run.contents(step), keep);
}

float weight_in(const std::string& checkpoint) {
  return SafetensorsFile(checkpoint + "/model.safetensors").floats("w", {10, 100})[0];
}

std::vector<std::string> names(const Scratch& out) { return list_folder(out.path); }

void cut_by_one(const std::string& path) { ASSERT_EQ(truncate(path.c_str(), off_t(contents(path).size()) - 1), 0); }

void change_a_byte(const std::string& path) {
  std::string bytes = contents(path);
  bytes[bytes.size() / 2] ^= 1;
  put(path, bytes);
}

TEST(Checkpoint, AJsonFileIsReadOnlyWhereItsChecksumHolds) {
  Scratch out;
  std::string path = save(out, 1);
  EXPECT_EQ(find_checkpoint(path).read_json("config.json").get_int("width", "c"), 64);
  EXPECT_EQ(find_checkpoint(path).read_json("state.json").get_int("step", "s"), 1);
  std::string bytes = contents(path + "/config.json");
  put(path + "/config.json", bytes.replace(bytes.find("64"), 2, "65"));
  EXPECT_TRUE(has(message_of([&] { find_checkpoint(path); }), path + "/config.json: its bytes have changed"));
}

TEST(Checkpoint, WhatIsSavedIsThere) {
  Scratch out;
  std::string path = save(out, 1000);
  EXPECT_EQ(path, out / "step_00001000");
  EXPECT_EQ(list_folder(path), (std::vector<std::string>{"config.json", "manifest.json", "model.safetensors",
                                                         "optimizer.safetensors", "state.json"}));
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00001000"});
  EXPECT_EQ(weight_in(path), 0.5f);
  EXPECT_EQ(SafetensorsFile(path + "/optimizer.safetensors").tensors()[0].name, "m.w");
  EXPECT_EQ(parse_json(contents(path + "/config.json"), "c").get_int("width", "c"), 64);
  EXPECT_EQ(parse_json(contents(path + "/state.json"), "s").get_string("note", "s"), "é");
  EXPECT_NO_THROW(find_checkpoint(path));
}

TEST(Checkpoint, TheManifestHoldsSizesAndChecksums) {
  Scratch out;
  std::string path = save(out, 1), name = path + "/manifest.json";
  Json manifest = parse_json(contents(name), name);
  EXPECT_EQ(manifest.get_int("format", name), 1);
  const Json& files = manifest.get("files", name);
  EXPECT_EQ(files.members.size(), 4u);
  std::string config = contents(path + "/config.json");
  EXPECT_EQ(files.get("config.json", name).get_int("bytes", name), int64_t(config.size()));
  EXPECT_EQ(files.get("config.json", name).get_string("crc32c", name),
            text("%08x", crc32c(0, config.data(), config.size())));
}

TEST(Checkpoint, TheFolderIsMadeWithItsParents) {
  Scratch out;
  EXPECT_EQ(save_checkpoint(out / "a/b//", 5, TinyRun().contents(5), {}), out / "a/b/step_00000005");
  EXPECT_EQ(find_checkpoint(out / "a/b").folder(), out / "a/b/step_00000005");
}

TEST(Checkpoint, StepsAreReadFromNames) {
  EXPECT_EQ(checkpoint_step("step_00001000"), 1000);
  EXPECT_EQ(checkpoint_step("out/step_00000000/"), 0);
  EXPECT_EQ(checkpoint_step("step_123456789012"), 123456789012);
  EXPECT_EQ(checkpoint_step("out/.step_00000007.replaced"), 7);
  for (const char* other :
       {"", "/", "step_", "step_1", "step_000000001", "step_0000000x", "step_-0000001", "step_00000001x",
        "xstep_00000001", ".step_00000001.partial", ".step_00000001", "step_99999999999999999999", "."})
    EXPECT_EQ(checkpoint_step(other), -1) << other;
}

TEST(Checkpoint, ListsWholeOnesByStep) {
  Scratch out;
  for (int64_t step : {20, 3, 100000000}) save(out, step);
  save(out, 50);
  std::filesystem::remove(out / "step_00000050/state.json");
  make_folder(out / "step_00000060");
  make_folder(out / "other");
  put(out / "step_00000070", "a file");
  EXPECT_EQ(list_checkpoints(out.path + "/"),
            (std::vector<std::string>{out / "step_00000003", out / "step_00000020", out / "step_100000000"}));
  EXPECT_TRUE(list_checkpoints(out / "no").empty());
}

TEST(Checkpoint, OnlyTheNewestAreKept) {
  Scratch out;
  for (int step = 1; step <= 5; ++step) save(out, step, {2});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000005"}));
  save(out, 6, {1});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000006"}));
  save(out, 7, {0});
  EXPECT_EQ(names(out).size(), 2u);
}

TEST(Checkpoint, TheOneJustWrittenIsKeptEvenWhereNewerOnesAre) {
  Scratch out;
  for (int step : {10, 20, 30}) save(out, step);
  save(out, 5, {2});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000005", "step_00000030"}));
}

TEST(Checkpoint, ThoseOfEveryNthStepStayForGood) {
  Scratch out;
  for (int step = 1; step <= 9; ++step) save(out, step, {2, 4});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000007", "step_00000008", "step_00000009"}))
      << "8 is none of the newest two";
  save(out, 10, {1, 4});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000008", "step_00000010"}));
  save(out, 12, {1, 4});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000008", "step_00000010", "step_00000012"}));
}

TEST(Checkpoint, BrokenOnesDoNotCountAsKept) {
  Scratch out;
  save(out, 1);
  save(out, 2);
  cut_by_one(out / "step_00000002/model.safetensors");
  save(out, 3, {2});
  EXPECT_EQ(list_checkpoints(out.path), (std::vector<std::string>{out / "step_00000001", out / "step_00000003"}));
}

TEST(Checkpoint, RenamedOnesDoNotCountAsKeptAndAreNotDeleted) {
  Scratch out;
  save(out, 1);
  rename_path(out / "step_00000001", out / "step_00000099");
  for (int step : {2, 3, 4}) save(out, step, {1});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000099"}));
  rename_path(out / "step_00000099", out / "step_00000000");
  save(out, 5, {1});
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000000", "step_00000005"}));
}

TEST(Checkpoint, SavingAStepAgainReplacesIt) {
  Scratch out;
  save(out, 1, {0}, 1.0f);
  put(out / "step_00000001/extra", "x");
  std::string path = save(out, 1, {1}, 2.0f);
  EXPECT_EQ(weight_in(path), 2.0f);
  EXPECT_EQ(list_folder(path).size(), 5u);
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00000001"});
}

TEST(Checkpoint, AFullDiskLosesNothingAndLeavesNothing) {
  Scratch out;
  save(out, 1, {0}, 1.0f);
  for (size_t bytes : {0, 100, 4000, 6000}) {
    FullDisk disk(bytes);
    EXPECT_TRUE(has(message_of([&] { save(out, 1, {1}, 2.0f); }), "File too large")) << bytes;
    EXPECT_TRUE(has(message_of([&] { save(out, 2, {1}, 2.0f); }), out.path)) << bytes;
  }
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00000001"});
  find_checkpoint(out / "step_00000001");
  EXPECT_EQ(weight_in(out / "step_00000001"), 1.0f);
}

TEST(Checkpoint, WhereItCannotBeWrittenIsNamed) {
  Scratch out;
  put(out / "file", "x");
  EXPECT_TRUE(
      has(message_of([&] { save_checkpoint(out / "file", 1, TinyRun().contents(1), {}); }), "a file has that name"));
  EXPECT_TRUE(
      has(message_of([&] { save_checkpoint("/proc/fullband", 1, TinyRun().contents(1), {}); }), "/proc/fullband"));
  put(out / "step_00000001", "x");
  EXPECT_TRUE(has(message_of([&] { save(out, 1); }), "step_00000001: a file has that name"));
  EXPECT_EQ(contents(out / "step_00000001"), "x");
}

TEST(Checkpoint, TensorsThatCannotBeWrittenLeaveNothing) {
  Scratch out;
  TinyRun run;
  CheckpointContents wrong = run.contents(1);
  wrong.optimizer[0].dtype = "F33";
  EXPECT_TRUE(has(message_of([&] { save_checkpoint(out.path, 1, wrong, {}); }), "unknown dtype"));
  EXPECT_TRUE(names(out).empty());
}

TEST(Checkpoint, WhatAKillLeftHalfWrittenIsRemovedByTheNextSave) {
  Scratch out;
  make_folder(out / ".step_00000001.partial");
  put(out / ".step_00000001.partial/model.safetensors", "half");
  make_folder(out / ".step_00000009.partial");
  EXPECT_TRUE(list_checkpoints(out.path).empty());
  save(out, 1);
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00000001"});
  find_checkpoint(out / "step_00000001");
}

TEST(Checkpoint, AKillBetweenSettingAsideAndReplacingLosesNothing) {
  Scratch out;
  std::string path = save(out, 4, {0}, 1.0f), aside = out / ".step_00000004.replaced";
  rename_path(path, aside);
  EXPECT_EQ(list_checkpoints(out.path), std::vector<std::string>{aside});
  EXPECT_EQ(find_checkpoint(out.path).folder(), aside);
  EXPECT_EQ(find_checkpoint(path).folder(), aside);
  EXPECT_EQ(find_checkpoint(out.path).folder(), aside);
  EXPECT_EQ(checkpoint_step(aside), 4);
  {
    FullDisk disk(100);  // the next save gives it its name back, and then may fail
    EXPECT_NE(message_of([&] { save(out, 5); }), "");
  }
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00000004"});
  EXPECT_EQ(weight_in(find_checkpoint(out.path).folder()), 1.0f);
}

TEST(Checkpoint, AKillAfterReplacingLeavesTheNewOne) {
  Scratch out;
  std::string path = save(out, 4, {0}, 1.0f), aside = out / ".step_00000004.replaced";
  rename_path(path, aside);
  std::filesystem::copy(aside, path);
  EXPECT_EQ(list_checkpoints(out.path), std::vector<std::string>{path});
  save(out, 5);
  EXPECT_EQ(names(out), (std::vector<std::string>{"step_00000004", "step_00000005"}));
}

TEST(Checkpoint, NoKillLeavesLessThanOneSoundCheckpoint) {
  Scratch out;
  save(out, 1);
  for (int round = 0; round < 8; ++round) {
    pid_t child = fork();
    if (child == 0) {
      for (int step = 1;; ++step) save(out, 1 + step % 3, {1});
    }
    usleep(useconds_t(3000 + 4700 * round));
    kill(child, SIGKILL);
    waitpid(child, nullptr, 0);
    std::string found = find_checkpoint(out.path).folder();
    EXPECT_NO_THROW(find_checkpoint(found));
    EXPECT_EQ(find_checkpoint(out.path).folder(), found);
  }
  save(out, 9, {1});
  EXPECT_EQ(names(out), std::vector<std::string>{"step_00000009"});
}

TEST(FindCheckpoint, TakesAFolderOrTheLatestInIt) {
  Scratch out;
  save(out, 1);
  std::string second = save(out, 2);
  EXPECT_EQ(find_checkpoint(out.path).folder(), second);
  EXPECT_EQ(find_checkpoint(out.path + "/").folder(), second);
  EXPECT_EQ(find_checkpoint(out / "step_00000001/").folder(), out / "step_00000001");
  rename_path(second, out / "best");
  EXPECT_EQ(find_checkpoint(out / "best").folder(), out / "best");
}

TEST(FindCheckpoint, SaysWhatWasFound) {
  Scratch out;
  EXPECT_TRUE(has(message_of([&] { find_checkpoint(""); }), "name is empty"));
  EXPECT_EQ(message_of([&] { find_checkpoint(out / "no"); }), (out / "no") + ": there is no such folder");
  EXPECT_EQ(message_of([&] { find_checkpoint(out.path); }),
            out.path + ": no checkpoint is there (no folder step_NNNNNNNN)");
  EXPECT_EQ(message_of([&] { find_checkpoint(out / "step_00000001"); }),
            (out / "step_00000001") + ": there is no such folder");
  put(out / "file", "");
  EXPECT_EQ(message_of([&] { find_checkpoint(out / "file"); }),
            (out / "file") + " is a file; a checkpoint is a folder");
  make_folder(out / "step_00000001");
  EXPECT_EQ(message_of([&] { find_checkpoint(out / "step_00000001"); }),
            (out / "step_00000001/manifest.json") + " is missing: the checkpoint is not whole");
  EXPECT_TRUE(
      has(message_of([&] { find_checkpoint(out.path); }), "none of its 1 checkpoints is whole; of the newest: "));
}

TEST(FindCheckpoint, SkipsBrokenOnesWithALineForEach) {
  Scratch out;
  for (int step : {1, 2, 3, 4}) save(out, step);
  change_a_byte(out / "step_00000002/model.safetensors");
  std::filesystem::remove(out / "step_00000003/manifest.json");
  cut_by_one(out / "step_00000004/config.json");
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_checkpoint(out.path).folder(), out / "step_00000001");
  std::string warnings = testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(warnings.begin(), warnings.end(), '\n'), 3);
  for (const char* part : {"step_00000002/model.safetensors: its bytes have changed",
                           "step_00000003/manifest.json is missing", "step_00000004/config.json has "})
    EXPECT_TRUE(has(warnings, part)) << warnings;
}

TEST(FindCheckpoint, AFolderThatHoldsAnotherStepThanItsNameSaysIsBroken) {
  Scratch out;
  for (int step : {10, 20}) save(out, step);
  rename_path(out / "step_00000020", out / "step_00000099");
  std::string says = (out / "step_00000099") +
                     " holds step 20, not the one of its name: it was renamed; call it step_00000020 again";
  EXPECT_EQ(message_of([&] { find_checkpoint(out / "step_00000099"); }), says);
  testing::internal::CaptureStderr();
  EXPECT_EQ(find_checkpoint(out.path).folder(), out / "step_00000010");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "warning: skipping a broken checkpoint: " + says + "\n");
  rename_path(out / "step_00000010", out / "step_00000020");
  EXPECT_TRUE(has(message_of([&] { find_checkpoint(out.path); }), "none of its 2 checkpoints is whole"));
  EXPECT_TRUE(has(message_of([&] { find_checkpoint(out / "step_00000020"); }), "holds step 10, not"));
  rename_path(out / "step_00000020", out / "best");
  EXPECT_EQ(find_checkpoint(out / "best").folder(), out / "best") << "a name of one's own says no step";
}

TEST(FindCheckpoint, WhereNoneIsSoundTheFailureIsAllThatIsSaid) {
  Scratch out;
  for (int step : {1, 2}) save(out, step);
  for (int step : {1, 2}) change_a_byte(out / text("step_%08d/state.json", step));
  testing::internal::CaptureStderr();
  std::string message = message_of([&] { find_checkpoint(out.path); });
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(has(message, "none of its 2 checkpoints is whole; of the newest: ")) << message;
  EXPECT_TRUE(has(message, "step_00000002/state.json: its bytes have changed")) << message;
}

TEST(FindCheckpoint, ANamedOneIsItOrAFailure) {
  Scratch out;
  for (int step : {1, 2}) save(out, step);
  change_a_byte(out / "step_00000002/optimizer.safetensors");
  testing::internal::CaptureStderr();
  EXPECT_TRUE(has(message_of([&] { find_checkpoint(out / "step_00000002"); }), "its bytes have changed"));
  EXPECT_EQ(find_checkpoint(out / "step_00000001").folder(), out / "step_00000001");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(FindCheckpoint, FilesThatTheManifestDoesNotListAreNoneOfIt) {
  Scratch out;
  std::string path = save(out, 1);
  put(path + "/tokenizer.json", "{}");
  Checkpoint found = find_checkpoint(path);
  EXPECT_TRUE(found.has("state.json") && !found.has("tokenizer.json") && !found.empty());
  EXPECT_TRUE(Checkpoint().empty() && !Checkpoint().has("state.json"));
}

TEST(FindCheckpoint, NamesTheFileThatIsMissingTruncatedOrChanged) {
  for (const char* name : {"model.safetensors", "optimizer.safetensors", "config.json", "state.json"}) {
    Scratch out;
    std::string path = save(out, 1), file = path + "/" + name;
    auto verdict = [&] { return message_of([&] { find_checkpoint(path); }); };
    change_a_byte(file);
    EXPECT_TRUE(has(verdict(), file + ": its bytes have changed")) << verdict();
    cut_by_one(file);
    EXPECT_TRUE(has(verdict(), file + " has ")) << verdict();
    std::filesystem::remove(file);
    EXPECT_EQ(verdict(), file + " is missing: the checkpoint is not whole");
    make_folder(file);
    EXPECT_EQ(verdict(), file + " is missing: the checkpoint is not whole");
  }
  EXPECT_TRUE(has(message_of([] { find_checkpoint("/no/such"); }), "there is no such folder"));
}

TEST(FindCheckpoint, AManifestThatIsNotOneIsNamed) {
  Scratch out;
  std::string path = save(out, 1), manifest = path + "/manifest.json", good = contents(manifest);
  auto verdict = [&](const std::string& bytes) {
    put(manifest, bytes);
    std::string message = message_of([&] { find_checkpoint(path); });
    EXPECT_EQ(message.find(manifest), 0u) << message;
    return message.substr(std::min(manifest.size(), message.size()));
  };
  for (size_t n = 0; n + 1 < good.size(); n += 7) verdict(good.substr(0, n));
  EXPECT_EQ(verdict("{}"), ": `format` is missing");
  EXPECT_EQ(verdict("[]"), ": should be an object with a member `format`");
  EXPECT_EQ(verdict(R"({"format": 2})"), ": format 2 is unknown; this program reads format 1");
  EXPECT_EQ(verdict(R"({"format": 1})"), ": `files` is missing");
  EXPECT_EQ(verdict(R"({"format": 1, "files": 3})"), ": does not list model.safetensors");
  EXPECT_EQ(verdict(R"({"format": 1, "files": {"../../etc/passwd": {}}})"),
            ": file `../../etc/passwd`: should be a plain name");
  EXPECT_EQ(verdict(R"({"format": 1, "files": {"a": {"bytes": 1}}})"), ": file `a`: `crc32c` is missing");
  for (const char* crc : {"", "123", "1234567g", "0x123456", "-1234567", "123456789"})
    EXPECT_EQ(verdict(R"({"format": 1, "files": {"a": {"bytes": 1, "crc32c": ")" + std::string(crc) + "\"}}}"),
              ": file `a`: `crc32c` should be eight hexadecimal digits")
        << crc;
  EXPECT_TRUE(list_checkpoints(out.path).empty());
  put(manifest, good);
  EXPECT_NO_THROW(find_checkpoint(path));
}

TEST(Checkpoint, TwoSavesOfTheSameContentsAreTheSameBytes) {
  Scratch a, b;
  std::string first = save(a, 1), second = save(b, 1);
  for (const std::string& name : list_folder(first))
    EXPECT_EQ(contents(first + "/" + name), contents(second + "/" + name));
}

}  // namespace
