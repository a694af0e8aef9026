// Tokens that are found in a text before it is cut into pieces: as Hugging Face's tokenizers 0.23.3 find them.
#include <gtest/gtest.h>

#include <map>

#include "json.h"
#include "nfc.h"
#include "random.h"
#include "scratch.h"
#include "tokenizer.h"

namespace {

// A token's text, and its flags' letters: special, normalized, lstrip, rstrip, single_word.
struct Added {
  std::string text, flags;
};

Tokenizer load_text(const std::string& json) {
  Scratch scratch;
  put(scratch / "t.json", json);
  return Tokenizer::load(scratch / "t.json");
}

// Bytes, then ab 256, abc 257, de 258, def 259, " t" 260, " th" 261, " the" 262.
const Json& base() {
  static const Json json = parse_json(
      Tokenizer(Pattern::gpt2, {{'a', 'b'}, {256, 'c'}, {'d', 'e'}, {258, 'f'}, {' ', 't'}, {260, 'h'}, {261, 'e'}}, {})
          .to_json(),
      "base");
  return json;
}

// Modes: N, text is normalized; W, a piece that is a token is that token. A text that is a name in the vocabulary has
// that id, the others' follow the vocabulary.
std::string json_with(const std::vector<Added>& tokens, const std::string& modes) {
  Json root = base(), added = Json::array(), model = root.get("model", "");
  const Json& vocabulary = model.get("vocab", "");
  int next = int(vocabulary.members.size());
  for (const Added& token : tokens) {
    const Json* named = vocabulary.find(token.text);
    added.items.push_back(Json::object({{"id", named ? int(named->number) : next++},
                                        {"content", token.text},
                                        {"single_word", has(token.flags, "w")},
                                        {"lstrip", has(token.flags, "l")},
                                        {"rstrip", has(token.flags, "r")},
                                        {"normalized", has(token.flags, "n")},
                                        {"special", has(token.flags, "s")}}));
  }
  model.set("ignore_merges", has(modes, "W"));
  root.set("model", model);
  root.set("added_tokens", added);
  if (has(modes, "N")) root.set("normalizer", Json::object({{"type", "NFC"}}));
  return write_json(root);
}

Tokenizer load(const std::vector<Added>& tokens, const std::string& modes = "") {
  return load_text(json_with(tokens, modes));
}

std::string shown(const std::vector<Added>& tokens, const std::string& text) {
  std::string out = "`" + text + "` with";
  for (const Added& token : tokens) out += " `" + token.text + "` (" + token.flags + ")";
  return out;
}

// What Hugging Face's library gives, with encode_special_tokens, and without it where that is not the same.
struct Case {
  std::vector<Added> tokens;
  std::string modes, text;
  std::vector<int> ids, allowed = {};
};

const std::vector<Case>& cases() {
  static const std::vector<Case> cases = {
      // clang-format off
    {{{"bc", "s"}, {"ab", "n"}}, "", "abc", {256, 99}, {97, 263}},
    {{{"bc", ""}, {"ab", "n"}}, "", "abc", {97, 263}},
    {{{"bc", ""}, {"ab", ""}}, "", "abc", {256, 99}},
    {{{"bc", "n"}, {"ab", "n"}}, "", "abc", {256, 99}},
    {{{"bc", "n"}, {"ab", ""}}, "", "abc", {256, 99}},
    {{{"<|x|>", "s"}, {"<|x|>y", "n"}}, "", "<|x|>y", {264}, {263, 121}},
    {{{"<|x|>", ""}, {"<|x|>y", ""}}, "", "<|x|>y", {264}},
    {{{"<|x|>", ""}, {"<|x|>y", "s"}}, "", "<|x|>y", {60, 124, 120, 124, 62, 121}, {264}},
    {{{"<|x|>", "n"}, {"<|x|>y", "sn"}}, "", "<|x|>y", {60, 124, 120, 124, 62, 121}, {264}},
    {{{"<|x|>", "s"}, {"<|x|>y", "s"}}, "", "<|x|>y<|x|>", {60, 124, 120, 124, 62, 121, 60, 124, 120, 124, 62}, {264, 263}},
    {{{"aa", ""}, {"aaa", ""}}, "", "aaaaaaa", {264, 264, 97}},
    {{{"aba", ""}, {"bab", ""}}, "", "ababab", {263, 264}},
    {{{"x", "n"}, {"xyz", ""}, {"yz", "n"}}, "", "xyzxyxz", {263, 120, 121, 120, 122}},
    {{{"def", "s"}}, "", "def xdef", {259, 32, 120, 259}},
    {{{"def", ""}}, "", "def xdef", {259, 32, 120, 259}},
    {{{"def", "n"}}, "", "defdef ef", {259, 259, 32, 101, 102}},
    {{{"de", ""}}, "", "def", {258, 102}},
    {{{"a", "s"}}, "", "a abc", {97, 32, 257}, {97, 32, 97, 98, 99}},
    {{{"a", ""}}, "", "aba", {97, 98, 97}},
    {{{"\u0120the", ""}}, "", "the the\u0120the", {116, 104, 101, 262, 262}},
    {{{"\u00e9", ""}}, "", "\u00e9\u00c3\u00a9", {233, 195, 131, 194, 169}},
    {{{"def", "s"}}, "W", "def", {259}},
    {{{"abc", "w"}}, "", "abc xabc abc", {257, 32, 120, 257, 32, 257}},
    {{{"x", "w"}}, "", "x", {120}},
    {{{"x", "w"}}, "", "xx", {120, 120}},
    {{{"x", "w"}}, "", "x x", {120, 32, 120}},
    {{{"x", "w"}}, "", "_x", {95, 120}},
    {{{"x", "w"}}, "", "x-x", {120, 45, 120}},
    {{{"x", "w"}}, "", "\u00bdx", {194, 189, 120}},
    {{{"x", "w"}}, "", "x\u00e9", {120, 195, 169}},
    {{{"x", "w"}}, "", "\u00e9x x\u0301", {195, 169, 120, 32, 120, 204, 129}},
    {{{"x", "w"}}, "", "\u24b6x x\u200d", {226, 146, 182, 120, 32, 120, 226, 128, 141}},
    {{{"x", "w"}}, "", "\u8a9ex\u3002x", {232, 170, 158, 120, 227, 128, 130, 120}},
    {{{"x", "w"}}, "", "x\u00a0x", {120, 194, 160, 120}},
    {{{"x", "w"}}, "", "x1 x\u0663", {120, 49, 32, 120, 217, 163}},
    {{{"x", "w"}}, "", "x\u2167", {120, 226, 133, 167}},
    {{{"x", "w"}, {"xx", "w"}, {"a", ""}}, "", "xxx axax", {120, 120, 120, 32, 97, 120, 97, 120}},
    {{{"x", "wn"}, {"ab", ""}}, "", "abxab", {256, 120, 256}},
    {{{"x", "w"}, {"ab", "n"}}, "", "abxab", {256, 120, 256}},
    {{{"x", "w"}, {"xy", ""}}, "", "xy xxy", {263, 32, 120, 263}},
    {{{"x", "l"}}, "", "a  x  b", {97, 120, 32, 32, 98}},
    {{{"x", "r"}}, "", "a  x  b", {97, 32, 32, 120, 98}},
    {{{"x", "lr"}}, "", "a  x  b", {97, 120, 98}},
    {{{"x", "l"}}, "", "x", {120}},
    {{{"x", "r"}}, "", "x", {120}},
    {{{"x", "lr"}}, "", "x", {120}},
    {{{"x", "l"}}, "", " x ", {120, 32}},
    {{{"x", "r"}}, "", " x ", {32, 120}},
    {{{"x", "lr"}}, "", " x ", {120}},
    {{{"x", "l"}}, "", "\u3000x\u00a0\n b", {120, 194, 160, 10, 32, 98}},
    {{{"x", "r"}}, "", "\u3000x\u00a0\n b", {227, 128, 128, 120, 98}},
    {{{"x", "lr"}}, "", "\u3000x\u00a0\n b", {120, 98}},
    {{{"x", "l"}}, "", "\t\r\nx", {120}},
    {{{"x", "r"}}, "", "\t\r\nx", {9, 13, 10, 120}},
    {{{"x", "lr"}}, "", "\t\r\nx", {120}},
    {{{"x", "l"}}, "", "a\u200bx\u2028x", {97, 226, 128, 139, 120, 120}},
    {{{"x", "r"}}, "", "a\u200bx\u2028x", {97, 226, 128, 139, 120, 120}},
    {{{"x", "lr"}}, "", "a\u200bx\u2028x", {97, 226, 128, 139, 120, 120}},
    {{{"x", "l"}}, "", "  x  x  ", {120, 120, 32, 32}},
    {{{"x", "r"}}, "", "  x  x  ", {32, 32, 120, 120}},
    {{{"x", "lr"}}, "", "  x  x  ", {120, 120}},
    {{{"x", "lrw"}}, "", "a x b x", {97, 120, 98, 120}},
    {{{"x", "r"}, {"y", "l"}}, "", "x   y", {120, 121}},
    {{{"x", "l"}, {"y", "r"}}, "", "x   y  x", {120, 32, 32, 32, 121, 120}},
    {{{"x", "r"}, {"  ", ""}}, "", "x   y", {120, 263, 32, 121}},
    {{{"x", "r"}, {" ", ""}}, "", "x   y", {120, 263, 263, 263, 121}},
    {{{"x", "r"}, {" y", ""}}, "", "x   y", {120, 263}},
    {{{"x", "r"}, {"  ", "n"}}, "", "x   y   y", {120, 121, 263, 32, 121}},
    {{{" ", "r"}, {"x", "l"}}, "", "a   x", {97, 263, 263, 263, 120}},
    {{{"x", "rs"}, {"y", "ln"}}, "", "x  y x   y", {120, 121, 32, 120, 121}},
    {{{"x", "l"}, {"a ", ""}}, "", "a   x", {263, 120}},
    {{}, "N", "cafe\u0301 \u212b \u1100\u1161\u11a8", {99, 97, 102, 195, 169, 32, 195, 133, 32, 234, 176, 129}},
    {{{"e\u0301", ""}}, "N", "\u00e9e\u0301", {195, 169, 263}},
    {{{"e\u0301", "n"}}, "N", "\u00e9e\u0301", {263, 263}},
    {{{"\u00e9", ""}}, "N", "\u00e9e\u0301", {233, 195, 169}},
    {{{"\u00e9", "n"}}, "N", "\u00e9e\u0301", {233, 233}},
    {{{"e", ""}}, "N", "e\u0301e", {101, 204, 129, 101}},
    {{{"e", "n"}}, "N", "e\u0301e", {195, 169, 101}},
    {{{"e\u0301", "s"}, {"x", "n"}}, "N", "xe\u0301x\u0301", {120, 195, 169, 120, 204, 129}, {120, 263, 120, 204, 129}},
    {{{"e\u0301x", "nl"}}, "N", "\u00e9 x  e\u0301x", {195, 169, 32, 120, 263}},
    {{{"q\u0323\u0307", "n"}}, "N", "q\u0307\u0323", {263}},
    {{{"e\u0301", "sn"}}, "N", "a\u00e9b", {97, 195, 169, 98}, {97, 263, 98}},
      // clang-format on
  };
  return cases;
}

TEST(AddedTokens, AreFoundAsHuggingFacesLibraryFindsThem) {
  for (const Case& c : cases()) {
    Tokenizer t = load(c.tokens, c.modes);
    EXPECT_EQ(t.encode(c.text), c.ids) << shown(c.tokens, c.text);
    EXPECT_EQ(t.encode(c.text, true), c.allowed.empty() ? c.ids : c.allowed) << shown(c.tokens, c.text);
  }
}

TEST(AddedTokens, AndTheirFlagsAreWrittenAndReadBack) {
  for (const Case& c : cases()) {
    Tokenizer t = load(c.tokens, c.modes), again = load_text(t.to_json());
    EXPECT_EQ(again.checksum(), t.checksum()) << shown(c.tokens, c.text);
    EXPECT_EQ(again.to_json(), t.to_json()) << shown(c.tokens, c.text);
    Json written = parse_json(t.to_json(), ""), read = parse_json(json_with(c.tokens, c.modes), "");
    std::map<std::string, std::string> flags;
    for (const Json& token : read.get("added_tokens", "").items)
      flags[token.get_string("content", "")] = write_json(token);
    for (const Json& token : written.get("added_tokens", "").items)
      EXPECT_EQ(flags[token.get_string("content", "")], write_json(token));
    EXPECT_EQ(write_json(written.get("normalizer", "")), write_json(read.get("normalizer", "")));
    EXPECT_EQ(write_json(written.get("model", "")), write_json(read.get("model", ""))) << "a name stays one";
  }
}

// Texts that overlap, names of the vocabulary, spaces of all kinds.
const std::vector<std::string> kParts = {"a",  "b",  "ab", "abc", "def", "x",       "xx",     "<x>", "<", " ",
                                         "  ", "\n", "_",  "½",   "é",   "e\u0301", "\u3000", "語",  "Ġ", "\u0301"};

std::vector<Added> draw_tokens(Random* random) {
  std::map<std::string, Added> tokens;
  for (int n = random->below(12); n > 0; --n) {
    Added token;
    for (int parts = 1 + random->below(3); parts > 0; --parts) token.text += kParts[random->below(int(kParts.size()))];
    for (char flag : {'s', 'n', 'l', 'r', 'w'})
      if (random->below(3) == 0) token.flags += flag;
    tokens[nfc(token.text)] = token;  // two that are the same once they are normalized are refused
  }
  std::vector<Added> drawn;
  for (const auto& [text, token] : tokens) drawn.push_back(token);
  return drawn;
}

TEST(AddedTokens, OfAnyKindLeaveATokenizerThatIsReadBackAsItWasWritten) {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(random_key(9, uint64_t(seed)));
    std::string modes = std::vector<std::string>{"", "N", "W", "NW"}[random.below(4)];
    Tokenizer t = load(draw_tokens(&random), modes), again = load_text(t.to_json());
    ASSERT_EQ(again.checksum(), t.checksum()) << seed;
    ASSERT_EQ(again.to_json(), t.to_json()) << seed;
    Encoder encoder(t);
    for (int i = 0; i < 20; ++i) {
      std::string text;
      for (int n = random.below(12); n > 0; --n)
        text += random.below(9) ? kParts[random.below(int(kParts.size()))] : std::string(1, char(random.below(256)));
      for (bool allowed : {false, true}) {
        std::vector<int> ids = t.encode(text, allowed), remembered;
        ASSERT_EQ(again.encode(text, allowed), ids) << seed << ", " << text;
        encoder.encode(text, &remembered, allowed);
        ASSERT_EQ(remembered, ids) << seed << ", " << text;
        for (int id : ids) ASSERT_FALSE(t.bytes_of(id).empty());
      }
    }
  }
}

TEST(AddedTokens, ThatAreVocabularyEntriesDecodeAsTheseDo) {
  Tokenizer t = load({{"def", ""}, {"a", ""}, {"Ġthe", ""}});
  EXPECT_EQ(t.encode("a def the"), (std::vector<int>{'a', ' ', 259, 262}));
  EXPECT_EQ(t.decode({'a', ' ', 259, 262}), "a def the") << "Ġthe is the name of \" the\"";
  Tokenizer special = load({{"def", "s"}});
  EXPECT_EQ(special.encode("def"), (std::vector<int>{259})) << "merges go through its id";
  EXPECT_TRUE(special.is_special(259));
  EXPECT_EQ(special.decode({'x', 259}), "x");
  EXPECT_EQ(special.vocab(), 263);
}

TEST(AddedTokens, ThatAreTheSameOnceTheyAreNormalizedAreRefused) {
  std::string said = message_of([] { load({{"é", "n"}, {"e\u0301", "n"}}, "N"); });
  EXPECT_TRUE(has(said, "there twice once it is normalized")) << said;
  EXPECT_EQ(load({{"é", "n"}, {"e\u0301", ""}}, "N").encode("e\u0301é"), (std::vector<int>{263, 233}));
}

TEST(AddedTokens, InIdsThatHuggingFacesLibraryWouldGiveOthersAreNamesInTheVocabulary) {
  std::string json = json_with({{"<x>", "s"}, {"<y>", "s"}}, "");
  json.replace(json.find("264"), 3, "300");
  Tokenizer t = load_text(json);
  EXPECT_EQ(t.encode("<x><y>", true), (std::vector<int>{263, 300}));
  Json written = parse_json(t.to_json(), "");
  EXPECT_EQ(written.get("model", "").get("vocab", "").get_int("<y>", ""), 300);
  EXPECT_EQ(load_text(t.to_json()).checksum(), t.checksum());
}

TEST(AddedTokens, TheChecksumCoversTheirTextsAndFlags) {
  std::map<uint32_t, std::string> seen;
  auto differs = [&](const std::vector<Added>& tokens, const std::string& modes = "") {
    auto [at, is_new] = seen.emplace(load(tokens, modes).checksum(), shown(tokens, modes));
    EXPECT_TRUE(is_new) << shown(tokens, modes) << " has the checksum of " << at->second;
  };
  differs({});
  differs({}, "N");
  for (const char* flags : {"", "s", "l", "r", "w", "lr", "sl", "sr", "sw"}) differs({{"<x>", flags}});
  for (const char* flags : {"n", "sn", "nl"}) differs({{"<x>", flags}}, "N");
  for (const char* text : {"def", "a", "Ġthe", "<y>"}) differs({{text, ""}});
  differs({{"bc", ""}, {"ab", ""}});
  differs({{"bc", ""}, {"ab", "n"}});
  EXPECT_EQ(load({{"<x>", "sn"}}).checksum(), load({{"<x>", "s"}}).checksum()) << "alone they are found alike";
}

TEST(AddedTokens, TakeTimeInProportionToTheText) {
  std::vector<std::vector<Added>> sets = {{{" ", "r"}, {"x", "l"}},
                                          {{" ", "l"}, {"x", "r"}},
                                          {{"x", "lrw"}},
                                          {{" ", "lrn"}, {"x", "rw"}},
                                          {{std::string(50, ' '), "r"}, {" x", ""}}};
  for (const std::vector<Added>& tokens : sets)
    for (const char* unit : {" ", "x", "x ", "\u3000"})
      for (const char* end : {"", "x"}) {
        std::string text;
        while (text.size() < 400'000) text += unit;
        EXPECT_LE(load(tokens).encode(text + end, true).size(), text.size() + 1);
      }
}

TEST(NormalizedText, IsCutIntoPiecesBetweenAddedTokens) {
  Tokenizer t = load({{"x", ""}}, "N");
  EXPECT_EQ(t.encode("cafe\u0301"), t.encode("café"));
  EXPECT_EQ(t.decode(t.encode("cafe\u0301")), "café");
  EXPECT_EQ(t.encode("x\u0301"), (std::vector<int>{'x', 0xcc, 0x81})) << "a mark stays behind what was found";
  EXPECT_EQ(t.decode(t.encode("e\xff\u0301")), "e\xff\u0301");
}

}  // namespace
