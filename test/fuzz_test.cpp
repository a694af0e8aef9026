// Every parser of foreign bytes, on the corpus of its fuzz target and on mutations of it. `make fuzz` looks further; what
// it finds becomes a file in the corpus.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "files.h"
#include "fuzz/fuzz.h"
#include "fuzz/targets.h"
#include "json.h"
#include "random.h"

void PrintTo(const FuzzTarget& target, std::ostream* out) { *out << target.name; }

namespace {

using Corpus = std::vector<std::string>;

Corpus corpus_of(const std::string& target) {
  std::string folder = std::filesystem::path(__FILE__).parent_path() / "fuzz/corpus" / target;
  Corpus corpus;
  for (const std::string& name : list_folder(folder)) corpus.push_back(read_file(folder + "/" + name));
  return corpus;
}

// Too long to lie in a folder, or worth a look by any parser.
Corpus nasties() {
  constexpr int kMany = 100000;
  std::string objects, bytes;
  for (int i = 0; i < kMany; ++i) objects += "{\"a\":";
  for (int i = 0; i < 256; ++i) bytes += char(i);
  return {"",
          std::string(kMany, '['),
          objects,
          "1" + objects,
          "{\"model\":" + objects,
          std::string(kMany, '"'),
          std::string(kMany, '\0'),
          std::string(kMany, '\xff'),
          std::string(kMany, '\n'),
          std::string(kMany, 'a'),
          std::string(kMany, '9'),
          std::string(kMany, ' '),
          bytes,
          "\xef\xbb\xbf",
          "\xed\xa0\x80\xf4\x90\x80\x80\xc0\xaf"};
}

const std::vector<std::string>& words() {
  using namespace std::string_literals;
  static const std::vector<std::string> words = {"\0"s,
                                                 "\n",
                                                 "\r\n",
                                                 "\xff",
                                                 "\xc3",
                                                 "\xed\xa0\x80",
                                                 "é",
                                                 "\"",
                                                 "\\",
                                                 "\\u0000",
                                                 "\\ud800",
                                                 "{",
                                                 "}",
                                                 "[",
                                                 "]",
                                                 ",",
                                                 ":",
                                                 "=",
                                                 "/",
                                                 "#",
                                                 "-",
                                                 "-1",
                                                 "0",
                                                 "1e999",
                                                 "1e-999",
                                                 "4294967296",
                                                 "2147483647",
                                                 "16777215",
                                                 "16777216",
                                                 "9007199254740993",
                                                 "null",
                                                 "true",
                                                 "NaN",
                                                 " ",
                                                 "--",
                                                 "<|endoftext|>",
                                                 "\x00\x00\x00\x80"s,
                                                 "\xff\xff\xff\x7f"s,
                                                 "\xff\xff\xff\xff"s,
                                                 "\x00\x00\x00\x00"s};
  return words;
}

int place_in(const std::string& bytes, Random* random) { return random->below(int(bytes.size()) + 1); }

void mutate(std::string* bytes, const Corpus& corpus, Random* random) {
  int at = place_in(*bytes, random), n = random->below(16);
  bool inside = at < int(bytes->size());
  switch (random->below(8)) {
    case 0:
      if (inside) (*bytes)[at] ^= char(1 << random->below(8));
      return;
    case 1:
      if (inside) (*bytes)[at] = char(random->below(256));
      return;
    case 2:
      bytes->resize(at);
      return;
    case 3:
      bytes->erase(at, n);
      return;
    case 4:
      bytes->insert(at, bytes->substr(place_in(*bytes, random), n));
      return;
    case 5: {
      const std::string& other = corpus[random->below(int(corpus.size()))];
      *bytes = bytes->substr(0, at) + other.substr(place_in(other, random));
      return;
    }
    case 6:
      bytes->replace(at, random->below(4), words()[random->below(int(words().size()))]);
      return;
    default:
      bytes->insert(at, words()[random->below(int(words().size()))]);
  }
}

std::string quoted(const std::string& bytes) {
  constexpr size_t kMost = 3000;
  std::string shown;
  for (unsigned char c : bytes.substr(0, kMost))
    shown += c < 0x20 || c >= 0x7f ? text("\\x%02x", c) : std::string(1, c);
  return shown;
}

class Fuzz : public testing::TestWithParam<FuzzTarget> {
 protected:
  void run(const std::string& bytes) {
    try {
      GetParam().run(bytes);
    } catch (const std::exception& broken) {
      FAIL() << GetParam().name << ": " << broken.what() << "\non the bytes: " << quoted(bytes);
    }
  }
};

TEST_P(Fuzz, KeepsItsPromisesOnItsCorpus) {
  Corpus corpus = corpus_of(GetParam().name);
  EXPECT_FALSE(corpus.empty());
  for (const std::string& bytes : corpus) run(bytes);
}

TEST_P(Fuzz, KeepsItsPromisesOnNastyBytes) {
  for (const std::string& bytes : nasties()) run(bytes);
}

TEST_P(Fuzz, KeepsItsPromisesOnMutations) {
  constexpr int kMutations = 2000, kMostAtOnce = 4;
  Corpus corpus = corpus_of(GetParam().name);
  ASSERT_FALSE(corpus.empty());
  for (int i = 0; i < kMutations && !HasFailure(); ++i) {
    Random random(random_key(1, uint64_t(i)));
    std::string bytes = corpus[random.below(int(corpus.size()))];
    for (int n = 1 + random.below(kMostAtOnce); n > 0; --n) mutate(&bytes, corpus, &random);
    run(bytes);
  }
}

INSTANTIATE_TEST_SUITE_P(Parsers, Fuzz, testing::ValuesIn(fuzz_targets()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
