// From logits to tokens to texts: the sampler against the distribution it stands for; generate() on a model whose every
// token is known beforehand, and on one that says anything.
#include "generate.h"

#include <set>

#include "automaton.h"
#include "bytes.h"
#include "engine.h"
#include "random.h"
#include "scratch.h"

namespace {

// --- One token -----------------------------------------------------------------------------------------------------

std::vector<int> draws(const std::vector<float>& logits, const Sampling& sampling, int count) {
  std::vector<int> seen(logits.size());
  for (int i = 0; i < count; ++i)
    ++seen[sample_token(logits.data(), int(logits.size()), sampling, random_key(7, Purpose::sampling, 0, i))];
  return seen;
}

// Frequencies of the tokens that may be drawn, against softmax(logits / temperature) over those.
void expect_frequencies(const std::vector<float>& logits, const Sampling& sampling, const std::set<int>& allowed) {
  constexpr int kDraws = 20000;
  std::vector<int> seen = draws(logits, sampling, kDraws);
  double total = 0;
  for (int i : allowed) total += std::exp(double(logits[i]) / double(sampling.temperature));
  for (int i = 0; i < int(logits.size()); ++i) {
    double p = allowed.count(i) ? std::exp(double(logits[i]) / double(sampling.temperature)) / total : 0;
    EXPECT_NEAR(seen[i], p * kDraws, 4 * std::sqrt(p * (1 - p) * kDraws)) << "token " << i;
  }
}

const std::vector<float> kLogits = {0.5f, 2.0f, -1.0f, 2.0f, 1.5f, -30.0f};

TEST(SampleToken, GreedyTakesTheFirstBest) {
  for (uint64_t key = 0; key < 50; ++key) {
    EXPECT_EQ(sample_token(kLogits.data(), 6, {.temperature = 0}, key), 1);
    EXPECT_EQ(sample_token(kLogits.data(), 6, {.temperature = 0, .top_k = 3, .top_p = 0.5f}, key), 1);
    EXPECT_EQ(sample_token(kLogits.data(), 6, {.temperature = 9, .top_k = 1}, key), 1);
  }
  std::vector<float> equal(5, -3.0f), last = {-2, -2, -1}, one = {4};
  EXPECT_EQ(sample_token(equal.data(), 5, {.temperature = 0}, 1), 0);
  EXPECT_EQ(sample_token(last.data(), 3, {.temperature = 0}, 1), 2);
  EXPECT_EQ(sample_token(one.data(), 1, {}, 1), 0);
}

TEST(SampleToken, FollowsTheSoftmaxAtEachTemperature) {
  for (float temperature : {1.0f, 0.3f, 2.5f})
    expect_frequencies(kLogits, {.temperature = temperature}, {0, 1, 2, 3, 4, 5});
  expect_frequencies({0, 0, 0, 0}, {}, {0, 1, 2, 3});
}

TEST(SampleToken, TopKKeepsTheKBestAndOfEqualOnesTheFirst) {
  expect_frequencies(kLogits, {.top_k = 2}, {1, 3});
  expect_frequencies(kLogits, {.top_k = 3}, {1, 3, 4});
  expect_frequencies(kLogits, {.temperature = 0.7f, .top_k = 4}, {0, 1, 3, 4});
  expect_frequencies(kLogits, {.top_k = 100}, {0, 1, 2, 3, 4, 5});
  expect_frequencies({1, 2, 2, 2, 0}, {.top_k = 2}, {1, 2});
}

TEST(SampleToken, TopPKeepsTheSmallestSetThatReachesP) {
  // Probabilities 0.1, 0.4, 0.2, 0.3.
  std::vector<float> logits;
  for (double p : {0.1, 0.4, 0.2, 0.3}) logits.push_back(float(std::log(p)));
  expect_frequencies(logits, {.top_p = 0.05f}, {1});
  expect_frequencies(logits, {.top_p = 0.39f}, {1});
  expect_frequencies(logits, {.top_p = 0.41f}, {1, 3});
  expect_frequencies(logits, {.top_p = 0.69f}, {1, 3});
  expect_frequencies(logits, {.top_p = 0.71f}, {1, 2, 3});
  expect_frequencies(logits, {.top_p = 0.95f}, {0, 1, 2, 3});
  expect_frequencies(logits, {.top_p = 1.0f}, {0, 1, 2, 3});
}

TEST(SampleToken, TopPCountsWhatTopKAndTheTemperatureLeft) {
  std::vector<float> logits;
  for (double p : {0.1, 0.4, 0.2, 0.3}) logits.push_back(float(std::log(p)));
  // Of the three best, renormalised: 0.444, 0.333, 0.222.
  expect_frequencies(logits, {.top_k = 3, .top_p = 0.75f}, {1, 3});
  expect_frequencies(logits, {.top_k = 3, .top_p = 0.80f}, {1, 2, 3});
  // At temperature 1/2: squares, 1 16 4 9 of 30.
  expect_frequencies(logits, {.temperature = 0.5f, .top_p = 0.5f}, {1});
  expect_frequencies(logits, {.temperature = 0.5f, .top_p = 0.6f}, {1, 3});
}

TEST(SampleToken, TiesAtTheEdgeOfTopPGoToTheFirst) {
  expect_frequencies({0, 0, 0, 0}, {.top_p = 0.5f}, {0, 1});
  expect_frequencies({0, 0, 0, 0}, {.top_p = 0.51f}, {0, 1, 2});
}

TEST(SampleToken, IsAFunctionOfItsKey) {
  std::vector<float> logits = noise(300, 1, 2);
  for (Sampling sampling : {Sampling{}, Sampling{0.8f, 50, 0.9f}}) {
    std::set<int> seen;
    for (uint64_t i = 0; i < 100; ++i) {
      uint64_t key = random_key(3, Purpose::sampling, 1, i);
      int token = sample_token(logits.data(), 300, sampling, key);
      EXPECT_EQ(sample_token(logits.data(), 300, sampling, key), token);
      seen.insert(token);
    }
    EXPECT_GT(seen.size(), 10u);
  }
}

TEST(SampleToken, SurvivesLogitsWithoutBounds) {
  std::vector<float> huge = {-3e38f, 3e38f, 0}, infinite = {0, kInfinity, 1}, one_left = {-kInfinity, 2, -kInfinity};
  for (uint64_t key = 0; key < 20; ++key)
    for (Sampling sampling : {Sampling{}, Sampling{0.01f, 2, 0.9f}}) {
      EXPECT_EQ(sample_token(huge.data(), 3, sampling, key), 1);
      EXPECT_EQ(sample_token(infinite.data(), 3, sampling, key), 1);
      EXPECT_EQ(sample_token(one_left.data(), 3, sampling, key), 1);
    }
}

// --- Texts ---------------------------------------------------------------------------------------------------------

struct Told {
  std::vector<std::string> texts;
  std::vector<std::vector<std::string>> pieces;
  std::vector<Ending> endings;
  std::vector<Continuation> said;
};

Told tell(
    Decoder& decoder, const std::vector<std::vector<int>>& prompts, const Generation& g, int64_t first_number = 0,
    std::function<bool()> interrupted = [] { return false; }) {
  Told told;
  told.texts.resize(prompts.size()), told.pieces.resize(prompts.size());
  told.said = generate(
      decoder, Tokenizer(), prompts, first_number, g,
      [&](int i, const std::string& text) { told.texts[i] += text, told.pieces[i].push_back(text); }, interrupted);
  for (const Continuation& text : told.said) told.endings.push_back(text.ending);
  return told;
}

Generation greedy(int tokens, std::vector<std::string> stops = {}) {
  Generation g;
  g.tokens = tokens, g.stops = std::move(stops), g.sampling.temperature = 0;
  return g;
}

Generation drawn(int tokens, uint64_t seed, Sampling sampling = {}) {
  Generation g;
  g.tokens = tokens, g.seed = seed, g.sampling = sampling;
  return g;
}

// Follows an automaton from one prompt.
Told recite(const Automaton& automaton, const std::string& prompt, const Generation& g = greedy(256)) {
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {});
  return tell(decoder, {encode(prompt)}, g);
}

TEST(Generate, FollowsTheModelInEveryMode) {
  Automaton automaton("abcdefgh", 30);
  struct {
    DecodeMode mode;
    int prefill_passes;
    const char* text;  // after a prompt that the model would not have said itself: x and y repeat themselves
  } cases[] = {
      {DecodeMode::standard, 1, "bcde"},   {DecodeMode::soft, 1, "bcde"},
      {DecodeMode::fused, 1, "yyyy"},  // the last input is the state at y
      {DecodeMode::fused, 2, "xxxx"},  // … which was the state at x
      {DecodeMode::sequential, 1, "xxxx"},
  };
  for (auto [mode, prefill_passes, text] : cases) {
    Generation g = greedy(4);
    g.mode = mode, g.prefill_passes = prefill_passes;
    EXPECT_EQ(recite(automaton, "xya", g).texts[0], text) << name_of(mode) << ", " << prefill_passes;
    EXPECT_EQ(recite(automaton, "abc", g).texts[0], "defg") << "the state says what the prompt does";
  }
}

TEST(Generate, EndsAtTheEndOfText) {
  Automaton automaton("abc", 30);
  automaton.follow('c', kEndOfText);
  Told told = recite(automaton, "a");
  EXPECT_EQ(told.texts[0], "bc");
  EXPECT_EQ(told.endings[0], Ending::end_of_text);
  told = recite(automaton, "c");
  EXPECT_EQ(told.texts[0], "");
  EXPECT_EQ(told.endings[0], Ending::end_of_text);
}

TEST(Generate, EndsWithTheContext) {
  Automaton automaton("abcdefgh", 6);
  automaton.follow('h', 'a');
  Told told = recite(automaton, "ab");
  EXPECT_EQ(told.texts[0], "cdefg") << "4 positions are left, and the last one still says what comes next";
  EXPECT_EQ(told.endings[0], Ending::context);
  EXPECT_EQ(recite(automaton, "abcdef").texts[0], "g");
}

TEST(Generate, SaysNothingWhereNoTokensAreWanted) {
  Automaton automaton("ab", 6);
  Told told = recite(automaton, "a", greedy(0));
  EXPECT_EQ(told.texts[0], "");
  EXPECT_EQ(told.endings[0], Ending::tokens);
}

TEST(Generate, EndsBeforeAStop) {
  Automaton automaton("abcdefgh", 30);
  automaton.follow('h', 'a');
  struct {
    std::vector<std::string> stops;
    std::string text;
  } cases[] = {
      {{"d"}, "bc"},         {{"de"}, "bc"},
      {{"cdefg"}, "b"},      {{"b"}, ""},
      {{"ha"}, "bcdefg"},    {{"xyz", "fg"}, "bcde"},
      {{"fg", "cd"}, "b"},   {{"defgh", "ef"}, "bcd"},
      {{"cdx", "de"}, "bc"}, {{"ab", "ghabc"}, "bcdefgh"},
  };
  for (const auto& [stops, text] : cases) {
    Told told = recite(automaton, "a", greedy(20, stops));
    EXPECT_EQ(told.texts[0], text) << testing::PrintToString(stops);
    EXPECT_EQ(told.endings[0], Ending::stop);
  }
}

TEST(Generate, HoldsBackWhatCouldBeginAStopAndSaysItWhenItIsNone) {
  Automaton automaton("abcdefgh", 30);
  Told told = recite(automaton, "a", greedy(5, {"cdx", "efgh"}));
  EXPECT_EQ(told.texts[0], "bcdef") << "e and f wait for g, and go out at the end";
  EXPECT_EQ(told.endings[0], Ending::tokens);
  EXPECT_EQ(told.pieces[0], (std::vector<std::string>{"b", "", "", "cd", "", "ef"}));
}

TEST(Generate, AStopThatTheLastTokenCompletesIsAStop) {
  Automaton automaton("abcdefgh", 30);
  Told told = recite(automaton, "a", greedy(4, {"de"}));
  EXPECT_EQ(told.texts[0], "bc");
  EXPECT_EQ(told.endings[0], Ending::stop);
}

TEST(Generate, StopsMayBeginInsideAToken) {
  Automaton automaton("aa", 30);  // a a a …
  automaton.follow('a', 'a');
  Told told = recite(automaton, "a", greedy(10, {"aab"}));
  EXPECT_EQ(told.texts[0], "aaaaaaaaaa") << "the stop's beginning moves on with the text";
  told = recite(automaton, "a", greedy(10, {"aaa"}));
  EXPECT_EQ(told.texts[0], "");
}

TEST(Generate, StreamsWholeCharacters) {
  Automaton automaton("a€ßz", 30);
  Told told = recite(automaton, "a", greedy(6));
  EXPECT_EQ(told.texts[0], "€ßz");
  EXPECT_EQ(told.pieces[0], (std::vector<std::string>{"", "", "€", "", "ß", "z", ""}));
  told = recite(automaton, "a", greedy(4));
  EXPECT_EQ(told.texts[0], "€\xc3") << "a character that the end cuts goes out as it is";
  told = recite(automaton, "a", greedy(6, {"ß"}));
  EXPECT_EQ(told.texts[0], "€");
}

TEST(Generate, CanBeInterrupted) {
  Automaton automaton("abcdefgh", 30);
  automaton.follow('h', 'a');
  int asked = 0;
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {2});
  Told told = tell(decoder, {encode("a"), encode("e")}, greedy(9), 0, [&] { return ++asked == 4; });
  EXPECT_EQ(told.texts, (std::vector<std::string>{"bcde", "fgha"}));
  EXPECT_EQ(told.endings, (std::vector<Ending>(2, Ending::interrupted)));
}

TEST(Generate, EachPromptEndsInItsOwnWay) {
  Automaton automaton("abcdefgh", 12);
  automaton.follow('h', 'a'), automaton.follow('x', 'y'), automaton.follow('y', kEndOfText);
  Generation g = greedy(9, {"fg"});
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {4});
  Told told = tell(decoder, {encode("x"), encode("a"), encode("f"), encode("bcdefghbcdg")}, g);
  EXPECT_EQ(told.texts, (std::vector<std::string>{"y", "bcde", "ghabcde", "ha"}));
  EXPECT_EQ(told.endings, (std::vector<Ending>{Ending::end_of_text, Ending::stop, Ending::stop, Ending::context}));
}

// --- A model that says anything ------------------------------------------------------------------------------------

struct Babbler {
  Babbler() : model(config()) { fill_with_noise(model); }
  static ModelConfig config() {
    ModelConfig config = tiny_config();
    config.vocab = kByteVocab, config.context = 24;
    return config;
  }
  Told tell(const std::vector<std::vector<int>>& prompts, const Generation& g, int64_t first_number = 0,
            int rows = 256) {
    Decoder decoder(cpu_kernels(), model.config, model.params, {int(prompts.size()), rows, 0});
    return ::tell(decoder, prompts, g, first_number);
  }
  Model model;
};

TEST(Generate, ATextDependsOnItsPromptNumberAndSeedAlone) {
  Babbler babbler;
  std::vector<std::vector<int>> prompts = {encode("one"), encode("a second prompt"), encode("3"), encode("one")};
  for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential}) {
    Generation g = drawn(15, 5, {1, 40, 0.95f});
    g.mode = mode;
    Told together = babbler.tell(prompts, g, 10);
    EXPECT_EQ(babbler.tell(prompts, g, 10, 3).texts, together.texts) << "in chunks";
    for (int i = 0; i < 4; ++i) {
      Told alone = babbler.tell({prompts[i]}, g, 10 + i);
      EXPECT_EQ(alone.texts[0], together.texts[i]) << name_of(mode) << ", prompt " << i;
      EXPECT_EQ(alone.endings[0], together.endings[i]);
    }
    EXPECT_NE(together.texts[0], together.texts[3]) << "the same prompt under another number";
    Told others = babbler.tell({prompts[2], prompts[0]}, g, 12);
    EXPECT_EQ(others.texts[0], together.texts[2]) << "with other mates";
    g.seed = 6;
    EXPECT_NE(babbler.tell(prompts, g, 10).texts, together.texts);
  }
}

TEST(Generate, TokensAreDrawnWithTheKeyOfTheirPosition) {
  Babbler babbler;
  Generation g = drawn(8, 9, {1.3f, 0, 1});
  Decoder decoder(cpu_kernels(), babbler.model.config, babbler.model.params, {1});
  std::vector<int> prompt = encode("by hand");
  decoder.prefill({prompt}, g.mode);
  std::string want;
  for (int n = 0; n < 8; ++n) {
    uint64_t key = random_key(9, Purpose::sampling, 4, prompt.size() + n);
    int token = sample_token(decoder.logits({0}), kByteVocab, g.sampling, key);
    if (token == kEndOfText) break;
    want += decode({token});
    if (n < 7) decoder.advance({0}, {token});
  }
  EXPECT_EQ(babbler.tell({prompt}, g, 4).texts[0], want);
}

TEST(Generate, APrefixOfALongerTextIsTheShorterText) {
  Babbler babbler;
  Generation g = drawn(12, 2);
  std::string longer = babbler.tell({encode("p")}, g).texts[0];
  g.tokens = 5;
  std::string shorter = babbler.tell({encode("p")}, g).texts[0];
  EXPECT_EQ(longer.substr(0, shorter.size()), shorter);
}

// --- What a program that links the library may get wrong -------------------------------------------------------------

TEST(Generate, WhatIsOutOfRangeIsAMistakeThatIsNamed) {
  Automaton automaton("abcdefgh", 6);
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {.sequences = 2});
  auto mistake = [&](const std::vector<std::vector<int>>& prompts, const Generation& g) {
    return message_of([&] { tell(decoder, prompts, g); });
  };
  Generation good = greedy(2);
  EXPECT_EQ(mistake({{1}, {2}, {3}}, good), "3 prompts for a decoder of 2: give it as many `sequences`");
  EXPECT_EQ(mistake({{1}, {}}, good), "prompt 2 has no tokens; end-of-text begins a new text");
  EXPECT_EQ(mistake({{1, 257}}, good), "the prompt has the id 257; this model's go from 0 to 256");
  EXPECT_EQ(mistake({{-1}}, good), "the prompt has the id -1; this model's go from 0 to 256");
  EXPECT_EQ(mistake({std::vector<int>(7, 1)}, good), "the prompt has 7 tokens; this model's context is 6");
  Generation wrong = good;
  wrong.most = {1};
  EXPECT_EQ(mistake({{1}, {2}}, wrong), "`most` has 1 numbers for 2 prompts");
  EXPECT_TRUE(has(mistake({{1}}, greedy(2, {"x", ""})), "a stop is empty"));
  for (Sampling sampling : {Sampling{-1, 0, 1}, Sampling{NAN, 0, 1}, Sampling{1, -1, 1}, Sampling{1, 0, 1.5f},
                            Sampling{1, 0, -0.5f}, Sampling{1, 0, NAN}})
    EXPECT_TRUE(
        has(mistake({{1}}, drawn(2, 1, sampling)), "temperature and top_k are 0 or more, top_p is from 0 to 1"));
  EXPECT_EQ(mistake({{1}, {2}}, good), "") << "the decoder is as good as before";
}

TEST(Generate, AModelWithoutFeedbackRefusesModesThatNeedIt) {
  ModelConfig config = Babbler::config();
  config.fusion = Fusion::none;
  Model plain(config);
  fill_with_noise(plain);
  Decoder decoder(cpu_kernels(), plain.config, plain.params, {});
  for (DecodeMode mode : {DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential}) {
    Generation g = greedy(2);
    g.mode = mode;
    EXPECT_TRUE(has(message_of([&] { tell(decoder, {{1}}, g); }), "needs a model with feedback"));
    EXPECT_TRUE(has(message_of([&] { score(decoder, {1}, {2}, mode); }), "needs a model with feedback"));
  }
}

// --- Probabilities ---------------------------------------------------------------------------------------------------

TEST(LogProbability, IsThatOfTheSoftmax) {
  const float logits[] = {0, 1, -2, 100};
  double total = 0;
  for (float logit : logits) total += std::exp(double(logit));
  for (int i = 0; i < 4; ++i) EXPECT_NEAR(log_probability(logits, 4, i), double(logits[i]) - std::log(total), 1e-12);
  const float equal[] = {7, 7, 7};
  EXPECT_NEAR(log_probability(equal, 3, 1), -std::log(3.0), 1e-15);
}

TEST(Score, GivesAContinuationTheLogprobsThatItHadWhenItWasDrawn) {
  Automaton automaton("abcdefgh", 32);
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {});
  for (DecodeMode mode : {DecodeMode::standard, DecodeMode::soft, DecodeMode::fused, DecodeMode::sequential}) {
    Generation g = drawn(6, 3, {.temperature = 50});
    g.mode = mode, g.logprobs = true;
    Continuation said = tell(decoder, {encode("abc")}, g).said[0];
    ASSERT_EQ(said.logprobs.size(), said.tokens.size());
    EXPECT_EQ(score(decoder, encode("abc"), said.tokens, mode), said.logprobs);
  }
  EXPECT_TRUE(score(decoder, encode("abc"), {}, DecodeMode::soft).empty());
  EXPECT_TRUE(tell(decoder, {encode("abc")}, drawn(6, 3)).said[0].logprobs.empty()) << "where none are wanted";
}

TEST(Score, RefusesWhatTheModelCannotHave) {
  Automaton automaton("abcdefgh", 6);
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {});
  auto mistake = [&](const std::vector<int>& prompt, const std::vector<int>& continuation) {
    return message_of([&] { score(decoder, prompt, continuation, DecodeMode::soft); });
  };
  EXPECT_EQ(mistake({}, {1}), "the prompt has no tokens; end-of-text begins a new text");
  EXPECT_EQ(mistake({300}, {1}), "the prompt has the id 300; this model's go from 0 to 256");
  EXPECT_EQ(mistake({1}, {2, -3}), "the continuation has the id -3; this model's go from 0 to 256");
  EXPECT_EQ(mistake({1, 2, 3, 4}, {1, 2, 3, 4}), "prompt and continuation have 8 tokens; this model's context is 6");
  EXPECT_EQ(mistake({1, 2, 3, 4}, {1, 2, 3}), "") << "the last position still says what comes next";
}

TEST(Generate, EachPromptMayHaveItsOwnMostTokens) {
  Automaton automaton("abcdefgh", 32);
  Decoder decoder(cpu_kernels(), automaton.config(), automaton.params(), {.sequences = 3});
  Generation g = greedy(256);
  g.most = {2, 0, 4};
  Told told = tell(decoder, {encode("a"), encode("a"), encode("b")}, g);
  EXPECT_EQ(told.texts, (std::vector<std::string>{"bc", "", "cdef"}));
}

TEST(Ending, IsDescribedInWords) {
  EXPECT_STREQ(describe(Ending::end_of_text), "end of text");
  EXPECT_STREQ(describe(Ending::stop), "stop");
  EXPECT_STREQ(describe(Ending::tokens), "all tokens generated");
  EXPECT_STREQ(describe(Ending::context), "end of the context");
  EXPECT_STREQ(describe(Ending::interrupted), "interrupted");
}

}  // namespace
