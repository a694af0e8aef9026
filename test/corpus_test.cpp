// The built-in corpus: every answer is derived again from the text by a parser that shares nothing with the generator.
#include "corpus.h"

#include <gtest/gtest.h>

#include <cctype>
#include <cstring>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <sstream>

#include "error.h"
#include "tokenizer.h"

namespace {

struct Expected {
  int start;
  std::string words;
  int size;
  bool ends = false;  // end-of-text is part of the answer
};

// --- Parsers: what the answers in a text must be ---------------------------------------------------------------------

// The alphabet of a running sum's modulus, found by its first symbol.
std::string alphabet_of_sums(const std::string& text) {
  for (const char* alphabet : {"012", "ab", "ABCD", "vwxyz"})
    if (std::strchr(alphabet, text[0])) return alphabet;
  ADD_FAILURE() << text;
  return "0";
}

std::vector<Expected> answers_of_sums(const std::string& text) {
  std::vector<Expected> expected;
  std::string alphabet = alphabet_of_sums(text);
  int modulus = int(alphabet.size()), total = 0, digits = 0;
  for (int i = 0; i < int(text.size()); ++i) {
    EXPECT_TRUE(text[i] == '?' || alphabet.find(text[i]) < alphabet.size()) << text;
    if (text[i] == '?') {
      expected.push_back({++i, alphabet.substr(total % modulus, 1), digits});
      total = digits = 0;
    } else {
      total += int(alphabet.find(text[i]));
      ++digits;
    }
  }
  return expected;
}

std::vector<Expected> answers_of_registers(const std::string& text) {
  std::vector<Expected> expected;
  for (int i = 0; i < int(text.size()); i += 4) {
    EXPECT_TRUE(std::islower(text[i]) && (i + 3 == int(text.size()) || text[i + 3] == ';')) << text;
    if (text[i + 1] == '=') continue;
    int write = i - 4, writes = 0;  // search back for the last write of this register
    for (; write >= 0; write -= 4) {
      writes += text[write + 1] == '=';
      if (text[write] == text[i] && text[write + 1] == '=') break;
    }
    EXPECT_GE(write, 0) << text[i] << " is asked before it is written: " << text;
    if (write >= 0) expected.push_back({i + 2, text.substr(write + 2, 1), writes});
  }
  return expected;
}

std::vector<Expected> answers_of_counters(const std::string& text) {
  std::vector<Expected> expected;
  for (size_t i = 0; i < text.size();) {
    EXPECT_EQ(text.compare(i, 5, "need "), 0) << text;
    int need = text[i + 5] - '0';
    std::string marks;
    bool complete = false;
    for (i += 7; !complete && i < text.size(); ++i) {
      if (text[i] != '?') {
        marks += text[i];
        EXPECT_TRUE(text[i] == '+' || text[i] == '.') << text;
        continue;
      }
      complete = std::count(marks.begin(), marks.end(), '+') == need;
      expected.push_back({int(i + 1), complete ? "done;" : "more;", int(marks.size())});
      i += 5;
    }
    EXPECT_TRUE(complete) << text;
  }
  return expected;
}

std::vector<Expected> answers_of_memory(const std::string& text) {
  EXPECT_EQ(text.compare(0, 6, "state="), 0) << text;
  size_t ask = text.find("state?");
  for (size_t i = 9; i < ask; i += 4)
    EXPECT_TRUE(std::strchr("xyz", text[i]) && std::strchr("=+-", text[i + 1]) && text[i + 3] == ';') << text;
  return {{int(ask + 6), text.substr(6, 2) + ".", int(ask - 9) / 4, true}};
}

std::vector<Expected> answers_of_cups(const std::string& text) {
  std::vector<Expected> expected;
  std::string cups(text[10] - '0', ' ');  // what stands under each
  cups[text[5] - '1'] = 'o';
  int swaps = 0;
  for (int i = 12; i < int(text.size()); i += 3) {
    if (text[i] == '?') {
      expected.push_back({i + 1, std::to_string(cups.find('o') + 1), swaps});
      swaps = 0;
    } else {
      EXPECT_LT(text[i], text[i + 1]) << text;
      std::swap(cups.at(text[i] - '1'), cups.at(text[i + 1] - '1'));
      ++swaps;
    }
  }
  return expected;
}

std::vector<Expected> answers_of_chains(const std::string& text) {
  std::vector<Expected> expected;
  std::map<char, char> arrow;
  size_t i = 0;
  do {
    EXPECT_TRUE(text[i + 1] == '>' && arrow.emplace(text[i], text[i + 2]).second) << text;
    i += 4;
  } while (text[i - 1] == ' ');
  while (i < text.size()) {
    char place = text[i];
    int steps = text[i + 1] - '0';
    std::string words;
    for (int step = 0; step < steps; ++step) {
      place = arrow.at(place);
      words += '.';
    }
    words += std::string(1, place) + ";";
    expected.push_back({int(i + 3), words, steps});
    i += 3 + words.size();
  }
  return expected;
}

std::vector<Expected> answers_of_additions(const std::string& text) {
  long long a, b;
  int start;
  EXPECT_EQ(std::sscanf(text.c_str(), "%lld+%lld:%n", &a, &b, &start), 2) << text;
  std::ostringstream words;
  int digits = 0;
  for (long long power = 1; power <= a; power *= 10, ++digits) {
    long long carry = (a % power + b % power) / power, x = a / power % 10, y = b / power % 10;
    words << x << "+" << y << "+" << carry << "=" << x + y + carry << " ";
  }
  words << a + b << ".";
  return {{start, words.str(), digits, true}};
}

std::vector<Expected> answers_of_fractions(const std::string& text) {
  long long above, below, places;
  int start;
  EXPECT_EQ(std::sscanf(text.c_str(), "%lld/%lld to %lld:%n", &above, &below, &places, &start), 3) << text;
  EXPECT_TRUE(0 < above && above < below) << text;
  std::ostringstream words;
  std::string decimals;
  long long power = 10;
  for (int i = 0; i < places; ++i, power *= 10) {
    long long digit = above * power / below % 10;
    words << digit << "r" << above * power % below << " ";
    decimals += char('0' + digit);
  }
  return {{start, words.str() + "0." + decimals + ".", int(places), true}};
}

std::vector<Expected> expected_answers(const Puzzle& puzzle) {
  switch (puzzle.task) {
    case Task::sums:
      return answers_of_sums(puzzle.text);
    case Task::registers:
      return answers_of_registers(puzzle.text);
    case Task::counters:
      return answers_of_counters(puzzle.text);
    case Task::memory:
      return answers_of_memory(puzzle.text);
    case Task::cups:
      return answers_of_cups(puzzle.text);
    case Task::chains:
      return answers_of_chains(puzzle.text);
    case Task::additions:
      return answers_of_additions(puzzle.text);
    case Task::fractions:
      return answers_of_fractions(puzzle.text);
    case Task::stories:
      return {};
  }
  return {};
}

// --- Help ------------------------------------------------------------------------------------------------------------

TaskMix only(Task task) {
  TaskMix mix;
  mix.weight[int(task)] = 1;
  return mix;
}

std::vector<Puzzle> puzzles_of(Task task, Split split, uint64_t seed, int count, int longest) {
  std::vector<Puzzle> puzzles;
  for (int i = 0; i < count; ++i) puzzles.push_back(make_puzzle(only(task), split, seed, i, longest));
  return puzzles;
}

bool same(const Puzzle& a, const Puzzle& b) {
  auto same_answer = [](const Answer& x, const Answer& y) {
    return x.start == y.start && x.length == y.length && x.size == y.size;
  };
  return a.task == b.task && a.text == b.text &&
         std::equal(a.answers.begin(), a.answers.end(), b.answers.begin(), b.answers.end(), same_answer);
}

std::string message_of(const std::function<void()>& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// --- Each task -------------------------------------------------------------------------------------------------------

class EachTask : public testing::TestWithParam<int> {
 protected:
  Task task() const { return Task(GetParam()); }
};

TEST_P(EachTask, AnswersFollowFromTheText) {
  for (int longest : {32, 48, 64, 100, 256})
    for (Split split : {Split::train, Split::validation})
      for (const Puzzle& puzzle : puzzles_of(task(), split, 1, 300, longest)) {
        auto expected = expected_answers(puzzle);
        ASSERT_EQ(puzzle.answers.size(), expected.size()) << puzzle.text;
        for (size_t i = 0; i < expected.size(); ++i) {
          const Answer& answer = puzzle.answers[i];
          ASSERT_EQ(answer.start, expected[i].start) << puzzle.text;
          ASSERT_EQ(puzzle.text.substr(answer.start, answer.length), expected[i].words) << puzzle.text;
          ASSERT_EQ(answer.length, int(expected[i].words.size()) + expected[i].ends) << puzzle.text;
          ASSERT_EQ(puzzle.answers[i].size, expected[i].size) << puzzle.text;
        }
      }
}

TEST_P(EachTask, TextsFitAndAreClean) {
  for (int longest = 32; longest < 600; longest += longest < 70 ? 1 : 37)
    for (const Puzzle& puzzle : puzzles_of(task(), Split::train, 2, 60, longest)) {
      ASSERT_LE(int(puzzle.text.size()), longest) << puzzle.text;
      ASSERT_GE(puzzle.text.size(), 14u) << puzzle.text;
      ASSERT_EQ(puzzle.answers.empty(), task() == Task::stories) << puzzle.text;
      ASSERT_FALSE(std::isspace(puzzle.text.back())) << puzzle.text;
      for (char c : puzzle.text) ASSERT_TRUE(c >= ' ' && c <= '~') << puzzle.text;
    }
}

TEST_P(EachTask, LongerContextsAreUsed) {
  size_t longest = 0;
  for (const Puzzle& puzzle : puzzles_of(task(), Split::train, 3, 300, 200))
    longest = std::max(longest, puzzle.text.size());
  EXPECT_GT(longest, task() == Task::fractions ? 75u : 130u);  // fractions: at most nine places
}

TEST_P(EachTask, MostPuzzlesAreDifferent) {
  std::set<std::string> texts;
  for (const Puzzle& puzzle : puzzles_of(task(), Split::train, 4, 15000, 64)) texts.insert(puzzle.text);
  EXPECT_GT(texts.size(), 10000u);
  texts.clear();
  for (const Puzzle& puzzle : puzzles_of(task(), Split::validation, 4, 1000, 64)) texts.insert(puzzle.text);
  EXPECT_GT(texts.size(), 850u);
}

// What a puzzle's answers follow from, from its text: operands in either order, a fraction in lowest terms, else all.
std::string core_of(const Puzzle& puzzle) {
  long long a, b;
  if (puzzle.task == Task::additions && std::sscanf(puzzle.text.c_str(), "%lld+%lld", &a, &b) == 2)
    return std::to_string(std::min(a, b)) + "+" + std::to_string(std::max(a, b));
  if (puzzle.task == Task::fractions && std::sscanf(puzzle.text.c_str(), "%lld/%lld", &a, &b) == 2)
    return std::to_string(a / std::gcd(a, b)) + "/" + std::to_string(b / std::gcd(a, b));
  return puzzle.text;
}

TEST_P(EachTask, NoPuzzleIsInBothSplitsWhateverTheSeed) {
  std::set<std::string> trained;
  for (int longest : {32, 64})
    for (const Puzzle& puzzle : puzzles_of(task(), Split::train, 5, 6000, longest)) trained.insert(core_of(puzzle));
  for (int longest : {32, 64})
    for (const Puzzle& puzzle : puzzles_of(task(), Split::validation, 6, 1500, longest))
      ASSERT_FALSE(trained.count(core_of(puzzle))) << puzzle.text;
}

TEST_P(EachTask, APuzzleIsAFunctionOfItsArguments) {
  TaskMix mix = only(task());
  for (int64_t index : {0ll, 1ll, 77ll, 10000000000ll}) {
    Puzzle puzzle = make_puzzle(mix, Split::train, 1, index, 64);
    EXPECT_TRUE(same(puzzle, make_puzzle(mix, Split::train, 1, index, 64)));
    EXPECT_NE(puzzle.text, make_puzzle(mix, Split::train, 2, index, 64).text);
    EXPECT_NE(puzzle.text, make_puzzle(mix, Split::train, 1, index + 1, 64).text);
    EXPECT_NE(puzzle.text, make_puzzle(mix, Split::validation, 1, index, 64).text);
  }
}

INSTANTIATE_TEST_SUITE_P(Tasks, EachTask, testing::Range(0, kTasks),
                         [](const auto& info) { return std::string(name_of(Task(info.param))); });

TEST(Sums, AreTheSettingThatWasFoundToWork) {
  int choices = 0, questions = 0, long_gaps = 0, modulo_3 = 0;
  auto puzzles = puzzles_of(Task::sums, Split::validation, 1, 2000, 64);
  for (const Puzzle& puzzle : puzzles) {
    EXPECT_EQ(puzzle.text.size(), 64u);
    modulo_3 += alphabet_of_sums(puzzle.text) == "012";
    choices +=
        63 -
        int(puzzle.answers.size());  // neither an answer nor the first digit was a choice between asking and going on
    questions += int(puzzle.answers.size());
    for (const Answer& answer : puzzle.answers) long_gaps += answer.size >= 16 && answer.size <= 31;
  }
  EXPECT_NEAR(double(questions) / choices, 0.15, 0.006);
  EXPECT_NEAR(modulo_3 / 2000.0, 29.0 / 30, 0.02);
  EXPECT_GT(double(long_gaps) / questions, 0.04);
}

TEST(Sums, FillRowsOfAnyContext) {
  for (int longest : {48, 64, 96, 128, 256, 1000})
    for (const Puzzle& puzzle : puzzles_of(Task::sums, Split::train, 1, 100, longest)) {
      int length = int(puzzle.text.size());
      EXPECT_GE(length, 48);
      int parts = longest / length;
      EXPECT_EQ(length, longest / parts) << longest;
      EXPECT_EQ(parts & (parts - 1), 0) << longest;
    }
}

TEST(Stories, AreFluent) {
  for (int longest : {32, 64, 200})
    for (const Puzzle& puzzle : puzzles_of(Task::stories, Split::train, 1, 3000, longest)) {
      const std::string& story = puzzle.text;
      ASSERT_TRUE(std::isupper(story[0])) << story;
      ASSERT_TRUE(std::strchr(".!\"", story.back())) << story;
      for (const char* wrong : {"  ", "{", "}", " .", "..", " a a", " a e", " a i", " a o", " a u", "A a", "A o"})
        ASSERT_EQ(story.find(wrong), std::string::npos) << story;
      for (size_t i = 2; i < story.size(); ++i) {  // a sentence begins with a capital letter or a quotation
        if (story[i - 1] != ' ' || !std::strchr(".!", story[i - 2])) continue;
        ASSERT_TRUE(std::isupper(story[i]) || story[i] == '"') << story;
      }
    }
}

// --- Mixes -----------------------------------------------------------------------------------------------------------

std::vector<int> counts_of(const TaskMix& mix, int n) {
  std::vector<int> counts(kTasks);
  for (int i = 0; i < n; ++i) ++counts[int(make_puzzle(mix, Split::train, 1, i, 64).task)];
  return counts;
}

TEST(Mix, SumsIsMostlySums) {
  auto counts = counts_of(parse_task_mix("sums"), 5000);
  EXPECT_NEAR(counts[0], 4750, 70);
  for (int t = 1; t < kTasks; ++t) EXPECT_NEAR(counts[t], 31, 25) << name_of(Task(t));
}

TEST(Mix, AllIsEachTaskAlike) {
  for (int count : counts_of(parse_task_mix("all"), 9000)) EXPECT_NEAR(count, 1000, 130);
}

TEST(Mix, AListGivesWeights) {
  auto counts = counts_of(parse_task_mix("cups=1,sums=3,chains=0"), 4000);
  EXPECT_NEAR(counts[int(Task::sums)], 3000, 120);
  EXPECT_EQ(counts[int(Task::sums)] + counts[int(Task::cups)], 4000);
  EXPECT_EQ(counts_of(parse_task_mix("cups"), 10)[int(Task::cups)], 10);
  TaskMix two = parse_task_mix("stories,sums=2.5");
  EXPECT_EQ(two.weight[int(Task::stories)], 1);
  EXPECT_EQ(two.weight[int(Task::sums)], 2.5);
}

TEST(Mix, TheSplitDoesNotShiftIt) {
  TaskMix mix = parse_task_mix("additions=1,sums=1");
  int additions = 0;
  for (int i = 0; i < 4000; ++i) additions += make_puzzle(mix, Split::validation, 1, i, 32).task == Task::additions;
  EXPECT_NEAR(additions, 2000, 150);
}

TEST(Mix, MistakesGetOneLine) {
  auto message = [](const std::string& mix) { return message_of([&] { parse_task_mix(mix); }); };
  EXPECT_EQ(message("sums=2,cusp=1"), "no task \"cusp\" in the mix \"sums=2,cusp=1\": did you mean cups?");
  EXPECT_EQ(
      message("xyzzyxyzzy").find("no task \"xyzzyxyzzy\" in the mix \"xyzzyxyzzy\": there are all, sums, registers"),
      0u);
  EXPECT_EQ(message("sums=1,sums=2"), "the task sums stands twice in the mix \"sums=1,sums=2\"");
  EXPECT_EQ(message("sums=0"), "the mix \"sums=0\" has no task with a weight above 0");
  EXPECT_EQ(message("sums=1e308,cups=1e308"),
            "the weights of the mix \"sums=1e308,cups=1e308\" are too large to be added");
  for (const char* weight : {"x", "", "-1", "1x", "0x1", "nan", "inf"})
    EXPECT_NE(message(std::string("sums=") + weight).find("is no weight in the mix"), std::string::npos) << weight;
  for (const char* mix : {"", "sums,", ",sums", "sums,,cups"})
    EXPECT_EQ(message(mix).find("no task \"\" in the mix"), 0u) << message(mix);
}

TEST(Corpus, RefusesAContextThatFitsNoPuzzle) {
  EXPECT_EQ(message_of([] { make_puzzle(parse_task_mix("all"), Split::train, 1, 0, 31); }),
            "no puzzle fits 31 tokens: the built-in corpus takes a context of at least 32");
}

// --- Documents -------------------------------------------------------------------------------------------------------

// Bytes, and a vocabulary in which most pairs of digits, letters and signs are one token, so that a puzzle's borders
// would often lie within one.
std::vector<Tokenizer> tokenizers() {
  std::vector<Tokenizer::Merge> pairs;
  for (int left = ' '; left < 127; ++left)
    for (int right = ' '; right < 127; ++right) pairs.push_back({left, right});
  return {Tokenizer(), Tokenizer(Pattern::none, pairs, {"<|endoftext|>"})};
}

std::string text_of(const Tokenizer& tokenizer, const Tokens& tokens, int64_t begin, int64_t end) {
  std::string text;
  for (int64_t i = begin; i < end; ++i) text += tokenizer.bytes_of(tokens[i]);
  return text;
}

TEST(Corpus, IsItsPuzzlesAsDocuments) {
  TaskMix mix = parse_task_mix("all");
  std::vector<Puzzle> puzzles = make_puzzles(mix, Split::validation, 3, 500, 64);
  ASSERT_EQ(puzzles.size(), 500u);
  for (const Tokenizer& tokenizer : tokenizers()) {
    Tokens tokens = tokenize(as_documents(puzzles), tokenizer);
    int d = 0;
    for (Document document : Documents(tokens, tokenizer.end_of_text())) {
      ASSERT_LT(d, 500);
      EXPECT_TRUE(same(puzzles[d], make_puzzle(mix, Split::validation, 3, d, 64)));
      EXPECT_EQ(text_of(tokenizer, tokens, document.begin, document.end), puzzles[d++].text);
      EXPECT_LE(document.length(), 64);
    }
    EXPECT_EQ(d, 500);
  }
}

TEST(Corpus, TargetsAreTheAnswersAndAllOfAStory) {
  std::vector<Puzzle> puzzles = make_puzzles(parse_task_mix("all"), Split::train, 3, 500, 64);
  for (const Tokenizer& tokenizer : tokenizers()) {
    Tokens tokens = tokenize(as_documents(puzzles), tokenizer);
    const Puzzle* puzzle = puzzles.data();
    for (Document document : Documents(tokens, tokenizer.end_of_text())) {
      std::vector<uint8_t> expected(puzzle->text.size() + 1, puzzle->task == Task::stories), predictable;
      for (const Answer& answer : puzzle->answers)
        for (int i = 0; i < answer.length; ++i) expected.at(answer.start + i) = 1;
      for (int64_t i = document.begin; i < document.end; ++i)  // a token is as predictable as each of its bytes
        predictable.resize(predictable.size() + tokenizer.bytes_of(tokens[i]).size(), tokens.may_be_target(i));
      predictable.push_back(tokens.may_be_target(document.end));
      EXPECT_EQ(predictable, expected) << puzzle->text;
      EXPECT_EQ(end_is_predictable(*puzzle++), bool(expected.back()));
    }
  }
}

TEST(Corpus, APuzzlesTokensAreThoseOfItsDocumentAndItsAnswersAreFoundInThem) {
  std::vector<Puzzle> puzzles = make_puzzles(parse_task_mix("all"), Split::train, 4, 500, 100);
  puzzles.push_back({Task::sums, "answer", {{0, 3, 1}, {3, 2, 1}, {6, 1, 1}}});  // side by side; the end alone
  for (const Tokenizer& tokenizer : tokenizers()) {
    Tokens tokens = tokenize(as_documents(puzzles), tokenizer);
    const Puzzle* puzzle = puzzles.data();
    for (Document document : Documents(tokens, tokenizer.end_of_text())) {
      PuzzleTokens found = tokenize(*puzzle, tokenizer);
      bool with_end = !puzzle->answers.empty() && end_is_predictable(*puzzle);
      ASSERT_EQ(int64_t(found.tokens.size()), document.length() + with_end) << puzzle->text;
      for (size_t i = 0; i < found.tokens.size(); ++i)
        ASSERT_EQ(found.tokens[i], tokens[document.begin + int64_t(i)]) << puzzle->text;
      ASSERT_EQ(found.answers.size(), puzzle->answers.size());
      for (size_t a = 0; a < found.answers.size(); ++a) {
        auto [start, length] = found.answers[a];
        std::string said = text_of(tokenizer, tokens, document.begin + start, document.begin + start + length);
        std::string words = puzzle->text.substr(puzzle->answers[a].start, puzzle->answers[a].length);
        bool ends = puzzle->answers[a].length > int(words.size());
        EXPECT_EQ(said, words + (ends ? "<|endoftext|>" : "")) << puzzle->text;
        std::string before = text_of(tokenizer, tokens, document.begin, document.begin + start);
        EXPECT_EQ(int(before.size()), puzzle->answers[a].start) << puzzle->text;
      }
      ++puzzle;
    }
  }
}

TEST(Corpus, PacksIntoFullRows) {
  for (int T : {64, 128}) {
    std::vector<Puzzle> puzzles = make_puzzles(parse_task_mix("sums"), Split::train, 3, 4000, T);
    Tokens tokens = tokenize(as_documents(puzzles), Tokenizer());
    Loader loader({tokens}, vocabulary_of(Tokenizer()), Pack::documents, T, 1);
    EXPECT_GT(double(tokens.size() - 4001), 0.97 * double(loader.shard_rows() * T)) << T;
  }
}

}  // namespace
