// scripts/data: a file is downloaded whole and right or not at all, whatever the server does and whoever is killed; and
// every recipe from its first byte to the line for training, against a server on this machine.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <condition_variable>
#include <list>
#include <map>
#include <mutex>

#include "program.h"

namespace {

std::string noise(size_t n, uint32_t state = 1) {
  std::string bytes(n, '\0');
  for (char& c : bytes) c = char((state = state * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// What lies at a path, and what the server does wrong about it.
struct Page {
  std::string bytes;
  int status = 200;        // another: an error, with a text that is no file
  int times = 1 << 30;     // how often the error comes before the page does
  int breaks = 0;          // how often the server breaks off,
  size_t break_after = 0;  // after so many bytes;
  bool hangs = false;      // it first waits for release()
  bool ranges = true;      // false: it answers with the whole file
  std::string location;    // redirects there
  std::string linked;      // X-Linked-ETag, with X-Linked-Size
};

struct Request {
  std::string method, path, range;
};

// HTTP/1.1 on 127.0.0.1, one request a connection, one thread a connection.
class Server {
 public:
  std::map<std::string, Page> pages;  // before the first request

  Server() {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    check(bind(socket_, reinterpret_cast<sockaddr*>(&address), size) == 0 && listen(socket_, 16) == 0 &&
              getsockname(socket_, reinterpret_cast<sockaddr*>(&address), &size) == 0,
          "no socket on 127.0.0.1");
    url = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port));
    acceptor_ = std::thread([this] {
      for (int client; (client = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC)) >= 0;)
        clients_.emplace_back([this, client] { serve(client), close(client); });
    });
  }
  ~Server() {
    release();
    shutdown(socket_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& client : clients_) client.join();
    close(socket_);
  }

  std::vector<Request> requests() {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  Words ranges_of(const std::string& path) {
    Words ranges;
    for (const Request& r : requests())
      if (r.method == "GET" && r.path == path) ranges.push_back(r.range);
    return ranges;
  }
  void release() {
    std::lock_guard lock(mutex_);
    released_ = true;
    changed_.notify_all();
  }

  std::string url;

 private:
  void serve(int client) {
    std::string head;
    for (char c; head.find("\r\n\r\n") == std::string::npos && recv(client, &c, 1, 0) == 1;) head += c;
    Request request;
    request.method = head.substr(0, head.find(' '));
    size_t path = request.method.size() + 1, range = head.find("\r\nRange: ");
    request.path = head.substr(path, head.find(' ', path) - path);
    if (range != std::string::npos) request.range = head.substr(range + 9, head.find("\r\n", range + 2) - range - 9);

    Page page;
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(request);
      auto found = pages.find(request.path);
      if (found == pages.end()) {
        page.status = 404;
      } else {
        page = found->second;
        if (page.status != 200 && found->second.times-- <= 0) page.status = 200;
        if (request.method == "GET" && found->second.breaks-- <= 0) page.breaks = 0;
      }
    }
    if (page.status != 200) page.bytes = "<html>This is no file</html>";

    size_t begin = 0;
    std::string status = std::to_string(page.status) + " Some words", more;
    if (page.status == 200 && page.ranges && request.range.rfind("bytes=", 0) == 0) {
      begin = std::stoul(request.range.substr(6));
      std::string size = std::to_string(page.bytes.size());
      status = "206 Partial Content";
      more = "Content-Range: bytes " + std::to_string(begin) + "-" + std::to_string(page.bytes.size() - 1) + "/" + size;
      if (begin >= page.bytes.size()) status = "416 No Such Range", more = "Content-Range: bytes */" + size;
      more += "\r\n";
      begin = std::min(begin, page.bytes.size());
    }
    if (page.status == 200 && !page.location.empty()) {
      status = "302 Found", more = "Location: " + page.location + "\r\n";
      if (!page.linked.empty())
        more +=
            "X-Linked-Size: " + std::to_string(page.bytes.size()) + "\r\nX-Linked-ETag: \"" + page.linked + "\"\r\n";
      page.bytes.clear();
    }
    std::string body = page.bytes.substr(begin);
    say(client, "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more +
                    "Connection: close\r\n\r\n");
    if (request.method == "HEAD") return;
    if (page.breaks > 0) body.resize(std::min(body.size(), page.break_after));
    say(client, body);
    if (page.breaks > 0 && page.hangs) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return released_; });
    }
  }
  static void say(int client, std::string_view bytes) {
    while (!bytes.empty()) {
      ssize_t sent = send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return;
      bytes.remove_prefix(size_t(sent));
    }
  }

  int socket_;
  std::thread acceptor_;
  std::list<std::thread> clients_;  // the acceptor's, until it is joined
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> requests_;
  bool released_ = false;
};

std::string sha256(const std::string& bytes) {
  Setting setting;
  setting.input = bytes;
  return shell("if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi", setting).out.substr(0, 64);
}

std::string scripts() { return std::filesystem::absolute("scripts/data").string(); }

// A server, and a folder to download into.
class Fetch : public testing::Test {
 protected:
  void SetUp() override {
    if (shell("command -v curl").status != 0) GTEST_SKIP() << "needs curl";
    if (!std::filesystem::exists(scripts() + "/fetch.sh")) GTEST_SKIP() << "needs scripts/data, where it is run";
    setting_.folder = folder_.path;
    setting_.seconds = 20;
    // Nothing that this machine's user has set for curl.
    setting_.variables = {{"NO_PROXY", "*"},
                          {"no_proxy", "*"},
                          {"CURL_HOME", folder_.path},
                          {"HOME", folder_.path},
                          {"HF_ENDPOINT", server_.url},
                          {"FETCH_WAIT", "0"}};
    server_.pages["/file"].bytes = bytes_;
  }
  // What to say for the path, and what should come.
  Words words(const std::string& path) { return {"sh", scripts() + "/fetch.sh", server_.url + path, "file"}; }
  Words checked(const std::string& path) { return words(path) + Words{std::to_string(bytes_.size()), sha256(bytes_)}; }
  Ran fetch(const Words& words) { return Running(words, setting_).wait(); }
  Ran fetch_well(const Words& words) {
    Ran ran = fetch(words);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.err, "");
    EXPECT_TRUE(contents(folder_ / "file") == bytes_) << "wrong bytes";
    EXPECT_EQ(there(), Words{"file"});
    return ran;
  }
  Words there(const std::string& name = ".") {
    Words names;
    for (const auto& entry : std::filesystem::directory_iterator(folder_ / name))
      names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  Page& file() { return server_.pages["/file"]; }

  Scratch folder_;
  Server server_;
  Setting setting_;
  std::string bytes_ = noise(300000);
};

}  // namespace

// --- One file

TEST_F(Fetch, DownloadsAFile) {
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.ranges_of("/file"), Words{""});
}

TEST_F(Fetch, NeedsNeitherSizeNorChecksumAndMakesTheFolder) {
  Words words = this->words("/file");
  words.back() = "new/folder/file";
  EXPECT_EQ(fetch(words).status, 0);
  EXPECT_TRUE(contents(folder_ / "new/folder/file") == bytes_);
  EXPECT_EQ(there("new/folder"), Words{"file"});
}

TEST_F(Fetch, ABrokenDownloadGoesOnWhereItEnded) {
  file().breaks = 2, file().break_after = 100000;
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.ranges_of("/file"), (Words{"", "bytes=100000-", "bytes=200000-"}));
}

TEST_F(Fetch, ABrokenDownloadOfUnknownSizeGoesOnToo) {
  file().breaks = 3, file().break_after = 70000;
  fetch_well(words("/file"));
}

TEST_F(Fetch, GivesUpAfterSomeTriesAndTheNextRunGoesOn) {
  file().breaks = 7, file().break_after = 10000;
  expect_refused(fetch(checked("/file")), "fetch", "broke off; the same command goes on from 60000 bytes");
  EXPECT_EQ(there(), Words{"file.partial"});
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.ranges_of("/file").back(), "bytes=70000-");
}

TEST_F(Fetch, AServerWithoutRangesStillGivesTheRightFile) {
  file().breaks = 2, file().break_after = 100000, file().ranges = false;
  fetch_well(checked("/file"));
}

TEST_F(Fetch, APartialFileThatIsWholeIsNotAskedForAgain) {
  put(folder_ / "file.partial", bytes_);
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.requests().size(), 0u);
}

TEST_F(Fetch, APartialFileThatIsTooLongOrOfUnknownSizeBeginsAgain) {
  put(folder_ / "file.partial", bytes_ + "more");
  fetch_well(checked("/file"));
  std::filesystem::remove(folder_ / "file");
  for (const std::string& partial : {bytes_, bytes_ + "more"}) {
    put(folder_ / "file.partial", partial);
    fetch_well(words("/file"));
    std::filesystem::remove(folder_ / "file");
  }
}

TEST_F(Fetch, APageThatSaysThereIsNoFileNeverBecomesTheFile) {
  expect_refused(fetch(checked("/nowhere")), "fetch", "/nowhere: there is no such file (HTTP 404)");
  expect_refused(fetch(words("/nowhere")), "fetch", "/nowhere: there is no such file (HTTP 404)");
  EXPECT_EQ(server_.requests().size(), 2u) << "asking again would not help";
  file().status = 403;
  expect_refused(fetch(words("/file")), "fetch", "the server refuses (HTTP 403)");
  EXPECT_EQ(there(), Words{});
}

TEST_F(Fetch, AServerInTroubleIsAskedAgain) {
  file().status = 503, file().times = 2;
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.requests().size(), 3u);
  server_.pages["/never"].status = 500;
  Words words = this->words("/never");
  words.back() = "never";
  expect_refused(fetch(words), "fetch", "the server refuses (HTTP 500)");
  EXPECT_EQ(there(), Words{"file"});
}

TEST_F(Fetch, AnErrorHalfwayLosesNothing) {
  put(folder_ / "file.partial", bytes_.substr(0, 1000));
  file().status = 404;
  expect_refused(fetch(checked("/file")), "fetch", "HTTP 404); the same command goes on from 1000 bytes");
  EXPECT_EQ(there(), Words{"file.partial"});
  file().status = 200;
  fetch_well(checked("/file"));
}

TEST_F(Fetch, NobodyAtTheAddressIsOneLine) {
  Words words = checked("/file");
  words[2] = "http://127.0.0.1:1/file";
  expect_refused(fetch(words), "fetch", "http://127.0.0.1:1/file: no connection");
  EXPECT_EQ(there(), Words{});
}

TEST_F(Fetch, WrongBytesAreNotKept) {
  for (const std::string& wrong : {noise(bytes_.size(), 7), bytes_.substr(1), bytes_ + "x", std::string()}) {
    file().bytes = wrong;
    expect_refused(fetch(checked("/file")), "fetch", "instead of");
    EXPECT_EQ(there(), Words{}) << wrong.size() << " bytes";
  }
}

TEST_F(Fetch, AWrongBeginningIsNoticedAtTheEnd) {
  put(folder_ / "file.partial", noise(100, 9));
  expect_refused(fetch(checked("/file")), "fetch", "SHA-256");
  EXPECT_EQ(there(), Words{});
  fetch_well(checked("/file"));
}

TEST_F(Fetch, AFileThatIsRightIsLeftAloneAndAWrongOneReplaced) {
  fetch_well(checked("/file"));
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.requests().size(), 1u);
  put(folder_ / "file", noise(bytes_.size(), 3));
  fetch_well(checked("/file"));
  EXPECT_EQ(server_.requests().size(), 2u);
}

TEST_F(Fetch, FollowsRedirectsAndGoesOnThroughThem) {
  server_.pages["/old"].location = "/older";
  server_.pages["/older"].location = server_.url + "/file";
  file().breaks = 1, file().break_after = 1234;
  fetch_well(checked("/old"));
  EXPECT_EQ(server_.ranges_of("/file"), (Words{"", "bytes=1234-"}));
}

TEST_F(Fetch, AKilledDownloadLeavesNoFileAndTheNextRunFinishesIt) {
  file().breaks = 1, file().break_after = 150000, file().hangs = true;
  Words words = checked("/file");
  Running killed(words, setting_);
  auto size = [&] {
    std::error_code missing;
    auto bytes = std::filesystem::file_size(folder_ / "file.partial", missing);
    return missing ? 0 : bytes;
  };
  ASSERT_TRUE(killed.until([&] { return size() > 0 && lines_of(contents(folder_ / "file.lock")).size() == 2; }));
  killed.kill(SIGKILL);
  EXPECT_EQ(killed.wait().status, 128 + SIGKILL);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "file"));

  // Its curl lives on, and writes: the next run waits for it, and does not write between.
  Running next(words, setting_);
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  EXPECT_TRUE(next.runs());
  EXPECT_EQ(server_.requests().size(), 1u);
  server_.release();
  Ran ran = next.wait();
  EXPECT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "waiting for process")) << ran.out;
  EXPECT_TRUE(contents(folder_ / "file") == bytes_);
  EXPECT_EQ(there(), Words{"file"});
  EXPECT_EQ(server_.ranges_of("/file"), (Words{"", "bytes=150000-"}));
}

TEST_F(Fetch, CtrlCLeavesOnlyThePartialFile) {
  for (int signal : {SIGINT, SIGTERM}) {
    file().breaks = 1, file().break_after = 150000, file().hangs = true;
    Running running(checked("/file"), setting_);
    // Its own number and curl's.
    auto held = [&] { return lines_of(contents(folder_ / "file.lock")); };
    ASSERT_TRUE(running.until([&] { return there().size() == 2 && held().size() == 2; }));
    pid_t curl = std::stoi(held()[1].substr(4));
    running.kill(signal);
    EXPECT_EQ(running.wait().status, 128 + signal);
    EXPECT_NE(kill(curl, 0), 0) << "curl ends with the script";
    EXPECT_EQ(there(), Words{"file.partial"});
    fetch_well(checked("/file"));
    std::filesystem::remove(folder_ / "file");
  }
}

TEST_F(Fetch, TwoAtOnceDownloadOnce) {
  file().breaks = 1, file().break_after = 150000, file().hangs = true;
  Words words = checked("/file");
  Running one(words, setting_);
  ASSERT_TRUE(one.until([&] { return std::filesystem::exists(folder_ / "file.lock"); }));
  Running two(words, setting_);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  server_.release();
  EXPECT_EQ(one.wait().status, 0);
  Ran second = two.wait();
  EXPECT_EQ(second.status, 0);
  EXPECT_TRUE(has(second.out, "there already")) << second.out;
  EXPECT_EQ(server_.requests().size(), 2u) << "the second after the break";
  EXPECT_EQ(there(), Words{"file"});
}

TEST_F(Fetch, ALockThatNobodyHoldsIsNoLock) {
  put(folder_ / "file.lock", "pid 999999999\nhttp 1\n");
  fetch_well(checked("/file"));
}

TEST_F(Fetch, MistakesAreOneLine) {
  Words all = checked("/file"), none = {"sh", scripts() + "/fetch.sh"};
  expect_refused(fetch(none), "fetch", "usage");
  expect_refused(fetch(all + Words{"more"}), "fetch", "usage");
  expect_refused(fetch({all[0], all[1], all[2], all[3], "many"}), "fetch", "not many");
  expect_refused(fetch({all[0], all[1], all[2], all[3], "7", "abc"}), "fetch", "not abc");
  expect_refused(fetch({all[0], all[1], all[2], "."}), "fetch", "is a folder");
  put(folder_ / "blocked", "");
  expect_refused(fetch({all[0], all[1], all[2], "blocked/file"}), "fetch", "the folder blocked cannot be made");
  std::filesystem::remove(folder_ / "blocked");

  // A machine without curl.
  std::filesystem::create_directory(folder_ / "bin");
  for (const char* tool : {"sh", "sha256sum", "wc", "tr"})
    shell("ln -s \"$(command -v " + std::string(tool) + ")\" " + (folder_ / "bin/"));
  Setting bare = setting_;
  bare.variables.push_back({"PATH", folder_ / "bin"});
  expect_refused(Running(all, bare).wait(), "fetch", "curl is missing: install it");
  std::filesystem::remove_all(folder_ / "bin");

  EXPECT_EQ(there(), Words{});
  EXPECT_EQ(server_.requests().size(), 0u);
  Ran help = fetch(none + Words{"--help"});
  EXPECT_EQ(help.status, 0);
  EXPECT_TRUE(has(help.out, "Usage: sh scripts/data/fetch.sh URL FILE") && !has(help.out, "set -u")) << help.out;
}

TEST_F(Fetch, AFullDiskIsOneLine) {
  ASSERT_EQ(symlink("/dev/full", (folder_ / "file.partial").c_str()), 0);
  expect_refused(fetch(checked("/file")), "fetch", "file.partial cannot be written (is the disk full?)");
  EXPECT_EQ(server_.requests().size(), 1u);
  EXPECT_EQ(there(), Words{});
}

// --- The hub

TEST_F(Fetch, TheHubNamesSizeAndChecksum) {
  Page& page = server_.pages["/datasets/owner/set/resolve/main/a/file"];
  page.bytes = bytes_, page.linked = sha256(bytes_), page.location = server_.url + "/file";
  Words words = {"sh", scripts() + "/fetch.sh", "hf:owner/set/a/file", "file"};
  Ran ran = fetch_well(words);
  EXPECT_TRUE(has(ran.out, "300000 bytes")) << ran.out;
  fetch_well(words);
  EXPECT_EQ(server_.ranges_of("/file").size(), 1u);

  std::filesystem::remove(folder_ / "file");
  file().bytes = noise(bytes_.size(), 5);
  expect_refused(fetch(words), "fetch", "SHA-256");
  EXPECT_EQ(there(), Words{});
}

TEST_F(Fetch, WhatIsGivenIsNotAskedOfTheHub) {
  server_.pages["/datasets/owner/set/resolve/main/file"].location = "/file";
  Words words = checked("/file");
  words[2] = "hf:owner/set/file";
  fetch_well(words);
  EXPECT_EQ(server_.requests().front().method, "GET");
}

TEST_F(Fetch, AMirrorWithoutChecksumsIsToldOf) {
  server_.pages["/datasets/owner/set/resolve/main/file"].bytes = bytes_;
  Words words = {"sh", scripts() + "/fetch.sh", "hf:owner/set/file", "file"};
  EXPECT_TRUE(has(fetch_well(words).out, "names no checksum"));
  words[2] = "hf:owner/set/nowhere", words[3] = "nowhere";
  expect_refused(fetch(words), "fetch", "there is no such file (HTTP 404)");
  EXPECT_EQ(there(), Words{"file"});
}

TEST_F(Fetch, AHubInTroubleIsAskedAgain) {
  Page& page = server_.pages["/datasets/owner/set/resolve/main/file"];
  page.status = 429, page.times = 2;
  page.bytes = bytes_, page.linked = sha256(bytes_), page.location = "/file";
  Words words = {"sh", scripts() + "/fetch.sh", "hf:owner/set/file", "file"};
  EXPECT_FALSE(has(fetch_well(words).out, "names no checksum"));
}

// --- The recipes

namespace {

const Words kRecipes = {"tinyshakespeare", "tinystories", "fineweb10b", "fineweb_edu", "openmathinstruct"};

// A project's root with the recipes, in which the addresses and checksums of the world are those of this server, and
// with a ./tokenize that writes down how it was called, as many lines as calls.
class Recipe : public Fetch {
 protected:
  void SetUp() override {
    Fetch::SetUp();
    if (IsSkipped()) return;
    std::filesystem::create_directories(folder_ / "scripts");
    std::filesystem::copy(scripts(), folder_ / "scripts/data");
    put(folder_ / "tokenize", R"(#!/bin/sh
echo "$*" >>calls
out= mask=
while [ $# -gt 0 ]; do
  case $1 in --out) out=$2 ;; --prompt-field) mask=1 ;; esac
  shift
done
case $out in *.json) echo {} >"$out" && exit ;; esac
mkdir -p "$out" && echo tokens >"$out/train_000000.bin" && echo {} >"$out/tokenizer.json"
[ -z "$mask" ] || echo mask >"$out/train_000000.mask"
)");
    chmod((folder_ / "tokenize").c_str(), 0755);
  }
  // A file that the script wants from an address, with the size and checksum in the script, if it has any.
  void serve(const std::string& script, const std::string& path, const std::string& bytes, const std::string& old_size,
             const std::string& old_sum) {
    std::string file = folder_ / ("scripts/data/" + script + ".sh"), text = contents(file);
    auto replace = [&](const std::string& from, const std::string& to) {
      size_t at = text.find(from);
      ASSERT_NE(at, std::string::npos) << from;
      text.replace(at, from.size(), to);
    };
    replace(old_size, std::to_string(bytes.size()));
    replace(old_sum, sha256(bytes));
    put(file, text);
    server_.pages[path].bytes = bytes;
  }
  void serve_hub(const std::string& path, const std::string& bytes) {
    Page& page = server_.pages["/datasets/" + path];
    page.bytes = bytes, page.linked = sha256(bytes), page.location = "/storage/" + path;
    server_.pages["/storage/" + path].bytes = bytes;
  }
  void redirect(const std::string& script, const std::string& from) {
    std::string file = folder_ / ("scripts/data/" + script + ".sh"), text = contents(file);
    ASSERT_TRUE(has(text, from));
    text.replace(text.find(from), from.size(), server_.url);
    put(file, text);
  }
  void serve_gpt2() {
    redirect("recipe", "https://openaipublic.blob.core.windows.net/gpt-2/encodings/main");
    serve("recipe", "/vocab.bpe", "#version: 0.2\n", "456318",
          "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5");
    serve("recipe", "/encoder.json", "{}", "1042301",
          "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783");
  }
  Ran run(const std::string& recipe, const Words& words = {}) {
    return fetch(Words{"sh", "scripts/data/" + recipe + ".sh"} + words);
  }
  // Runs it, twice: the second time nothing is downloaded. Returns the line for training.
  std::string make(const std::string& recipe, const Words& words = {}) {
    Ran ran = run(recipe, words);
    EXPECT_EQ(ran.status, 0) << ran.out << ran.err;
    EXPECT_EQ(ran.err, "");
    size_t gets = downloads();
    EXPECT_GT(gets, 0u);
    Ran second = run(recipe, words);
    EXPECT_EQ(second.status, 0) << second.out << second.err;
    EXPECT_EQ(downloads(), gets);
    Words lines = lines_of(ran.out);
    EXPECT_EQ(lines.back(), lines_of(second.out).back());
    return lines.back();
  }
  size_t downloads() {
    size_t n = 0;
    for (const Request& r : server_.requests()) n += r.method == "GET";
    return n;
  }
  Words calls() { return lines_of(contents(folder_ / "calls")); }
};

std::string plays() {
  std::string text;
  for (int i = 0; i < 400; ++i) text += "SPEAKER " + std::to_string(i) + ":\nWords, words, words.\n\n";
  return text;
}

}  // namespace

TEST_F(Recipe, SaysWhatItNeedsAndMakesAndNothingElse) {
  for (const std::string& recipe : kRecipes) {
    Ran help = run(recipe, {"--help"});
    EXPECT_EQ(help.status, 0) << help.err;
    for (const char* part : {"Usage", "Needs curl", "of disk", "Leaves in FOLDER"})
      EXPECT_TRUE(has(help.out, part)) << recipe << ": " << part;
    EXPECT_TRUE(has(help.out, "scripts/data/" + recipe + ".sh [FOLDER]")) << help.out;
    EXPECT_TRUE(has(help.out, "data/" + recipe + ")")) << help.out;
    EXPECT_FALSE(has(help.out, "#!") || has(help.out, "fetch ") || has(help.out, "recipe.sh\"")) << help.out;
    expect_refused(run(recipe, {"--no"}), recipe, "there is no flag --no");
    expect_refused(run(recipe, {"a", "b"}), recipe, "two folders, a and b");
    expect_refused(run(recipe, {"0"}), recipe, "0");
    expect_refused(run(recipe, {"99999999999999999999"}), recipe, "99999999999999999999");
  }
  EXPECT_EQ(server_.requests().size(), 0u);
}

TEST_F(Recipe, WithoutTokenizeNothingIsDownloaded) {
  std::filesystem::remove(folder_ / "tokenize");
  for (const char* recipe : {"tinyshakespeare", "tinystories", "openmathinstruct"})
    expect_refused(run(recipe), recipe, "./tokenize is not here: run make");
  EXPECT_EQ(server_.requests().size(), 0u);
}

TEST_F(Recipe, TinyShakespeare) {
  redirect("tinyshakespeare", "https://raw.githubusercontent.com/karpathy/char-rnn/master/data");
  serve("tinyshakespeare", "/tinyshakespeare/input.txt", plays(), "1115394",
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  EXPECT_EQ(
      make("tinyshakespeare"),
      "    ./train --data 'data/tinyshakespeare/*.bin' --tokenizer 'data/tinyshakespeare/tokenizer.json' --model micro "
      "--out runs/shakespeare");
  std::string folder = "data/tinyshakespeare", documents = contents(folder_ / (folder + "/documents.txt"));
  EXPECT_TRUE(contents(folder_ / (folder + "/input.txt")) == plays());
  EXPECT_EQ(calls(), (Words{"train --vocab 1024 --data " + folder + "/documents.txt --out " + folder + "/tok.json",
                            "data " + folder + "/documents.txt --out " + folder + " --tokenizer " + folder +
                                "/tok.json --val 0.1",
                            calls().back()}));
  EXPECT_EQ(calls()[1], calls()[2]) << "the second run trains no other tokenizer, and goes on with the same command";

  // Cut between speeches, and nothing lost.
  const std::string end = "\n<|endoftext|>\n";
  size_t cuts = 0;
  for (size_t at; (at = documents.find(end)) != std::string::npos; ++cuts) documents.replace(at, end.size(), "\n\n");
  EXPECT_EQ(cuts, plays().size() / 4130);
  EXPECT_TRUE(documents == plays());
}

TEST_F(Recipe, TinyShakespeareElsewhere) {
  redirect("tinyshakespeare", "https://raw.githubusercontent.com/karpathy/char-rnn/master/data");
  serve("tinyshakespeare", "/tinyshakespeare/input.txt", plays(), "1115394",
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  std::string line = make("tinyshakespeare", {"it's a folder/"});
  EXPECT_TRUE(has(line, R"(--data 'it'\''s a folder/*.bin' --tokenizer 'it'\''s a folder/tokenizer.json')")) << line;
  Ran said = shell("set -- " + line.substr(line.find("--data")) + "; echo \"$2\"");
  EXPECT_EQ(said.out, "it's a folder/*.bin\n");
  EXPECT_EQ(there("it's a folder").size(), 5u);
}

TEST_F(Recipe, ATokenizerThatFailsEndsIt) {
  redirect("tinyshakespeare", "https://raw.githubusercontent.com/karpathy/char-rnn/master/data");
  serve("tinyshakespeare", "/tinyshakespeare/input.txt", plays(), "1115394",
        "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed");
  put(folder_ / "tokenize", "#!/bin/sh\necho 'tokenize: no' >&2\nexit 1\n");
  Ran ran = run("tinyshakespeare");
  expect_refused(ran, "tokenize", "no");
  EXPECT_FALSE(has(ran.out, "./train"));
}

TEST_F(Recipe, TinyStories) {
  const std::string path = "/datasets/roneneldan/TinyStories/resolve/main/TinyStoriesV2-GPT4-";
  serve("tinystories", path + "train.txt", "One.\n<|endoftext|>\nTwo.\n", "2227753162",
        "6418d412de72888f52b5142c761ac21a582f7d1166f0bfbdb5f03ccfdec90443");
  serve("tinystories", path + "valid.txt", "Three.\n", "22502601",
        "6874bae9a4c1a4e7edcf0e53b86c17817e9cf881fc75ff2368da457b80c0585d");
  EXPECT_TRUE(has(make("tinystories", {"here"}), "./train --data 'here/*.bin' --tokenizer 'here/tokenizer.json'"));
  const std::string flags = " --separator <|endoftext|>", tokenizer = " --tokenizer here/tok.json";
  Words expected = {"train --vocab 8192 --data here/train.txt --out here/tok.json",
                    "data here/train.txt --out here" + tokenizer + flags + " --val 0",
                    "data here/valid.txt" + tokenizer + flags + " --out here/held_out --val 0",
                    "data here/train.txt --out here" + tokenizer + flags + " --val 0"};
  EXPECT_EQ(calls(), expected);
  EXPECT_EQ(there("here"),
            (Words{"tok.json", "tokenizer.json", "train.txt", "train_000000.bin", "val_000000.bin", "valid.txt"}));
}

TEST_F(Recipe, FineWeb) {
  serve_gpt2();
  const std::string set = "kjj0/fineweb10B-gpt2/resolve/main/fineweb_";
  uint32_t seed = 0;
  for (const char* name : {"val_000000", "train_000001", "train_000002", "train_000003"})
    serve_hub(set + name + ".bin", noise(5000, ++seed));
  EXPECT_EQ(make("fineweb10b", {"2"}),
            "    ./train --data 'data/fineweb10b/*.bin' --tokenizer 'data/fineweb10b' --model d12 --dtype bf16 --out "
            "runs/fineweb");
  Words two = {"encoder.json", "fineweb_train_000001.bin", "fineweb_train_000002.bin", "fineweb_val_000000.bin",
               "vocab.bpe"};
  EXPECT_EQ(there("data/fineweb10b"), two);
  size_t before = downloads();
  EXPECT_EQ(run("fineweb10b", {"data/fineweb10b", "3"}).status, 0);
  EXPECT_EQ(downloads(), before + 2) << "the third, and its redirect";
  expect_refused(run("fineweb10b", {"4"}), "fetch", "fineweb_train_000004.bin: there is no such file (HTTP 404)");
  expect_refused(run("fineweb10b", {"104"}), "fineweb10b", "from 1 to 103, not 104");
  EXPECT_EQ(calls(), Words{});
}

TEST_F(Recipe, FineWebEdu) {
  serve_gpt2();
  const std::string set = "karpathy/fineweb-edu-100B-gpt2-token-shards/resolve/main/edu_fineweb_";
  serve_hub(set + "val_000000.bin", noise(4000, 1));
  serve_hub(set + "train_000001.bin", noise(4000, 2));
  EXPECT_TRUE(has(make("fineweb_edu", {"1", "web"}), "--data 'web/*.bin' --tokenizer 'web' "));
  EXPECT_EQ(there("web"),
            (Words{"edu_fineweb_train_000001.bin", "edu_fineweb_val_000000.bin", "encoder.json", "vocab.bpe"}));
}

TEST_F(Recipe, OpenMathInstruct) {
  serve_gpt2();
  const std::string set = "nvidia/OpenMathInstruct-1/resolve/main/correct_solutions/";
  serve_hub(set + "train.jsonl", "{\"question\": \"1+1?\", \"generated_solution\": \"2\"}\n");
  serve_hub(set + "validation.jsonl", "{\"question\": \"1+2?\", \"generated_solution\": \"3\"}\n");
  EXPECT_TRUE(has(make("openmathinstruct", {"math"}), "--data 'math/*.bin' --tokenizer 'math/tokenizer.json'"));
  const std::string flags = " --tokenizer math/vocab.bpe --prompt-field question --field generated_solution";
  Words expected = {"data math/train.jsonl --out math" + flags + " --val 0",
                    "data math/validation.jsonl" + flags + " --out math/held_out --val 0",
                    "data math/train.jsonl --out math" + flags + " --val 0"};
  EXPECT_EQ(calls(), expected);
  EXPECT_EQ(there("math"),
            (Words{"encoder.json", "tokenizer.json", "train.jsonl", "train_000000.bin", "train_000000.mask",
                   "val_000000.bin", "val_000000.mask", "validation.jsonl", "vocab.bpe"}));
}
