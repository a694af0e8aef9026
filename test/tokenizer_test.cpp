// Text as tokens and back: against the rule done naively, and the files of others.
#include "tokenizer.h"

#include <gtest/gtest.h>

#include <array>
#include <map>

#include "error.h"
#include "files.h"
#include "json.h"
#include "random.h"
#include "scratch.h"

namespace {

std::string all_bytes() {
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes += char(i);
  return bytes;
}

// A text of n characters from these.
std::string draw_text(Random* random, const std::vector<std::string>& alphabet, int n) {
  std::string text;
  for (int i = 0; i < n; ++i) text += alphabet[random->below(int(alphabet.size()))];
  return text;
}

// A tokenizer whose merges are drawn from what is there, so that merges overlap and depend on each other.
struct Drawn {
  std::vector<Tokenizer::Merge> merges;
  std::vector<std::string> bytes;
};
Drawn draw_merges(Random* random, const std::string& letters, int count) {
  Drawn d;
  for (int i = 0; i < 256; ++i) d.bytes.push_back(std::string(1, char(i)));
  std::map<std::string, int> known;
  for (int i = 0; i < 256; ++i) known[d.bytes[i]] = i;
  std::vector<int> used;
  for (char c : letters) used.push_back(static_cast<unsigned char>(c));
  while (int(d.merges.size()) < count) {
    int left = used[random->below(int(used.size()))], right = used[random->below(int(used.size()))];
    std::string both = d.bytes[left] + d.bytes[right];
    if (both.size() > 24 || known.count(both)) continue;
    known[both] = int(d.bytes.size());
    used.push_back(int(d.bytes.size()));
    d.merges.push_back({left, right});
    d.bytes.push_back(both);
  }
  return d;
}

// The rule, one merge at a time: the pair of lowest rank, the leftmost of equals.
std::vector<int> merge_naively(const Drawn& d, const std::string& text) {
  std::map<std::pair<int, int>, int> rank;
  for (size_t i = 0; i < d.merges.size(); ++i) rank[{d.merges[i].left, d.merges[i].right}] = int(i);
  std::vector<int> tokens;
  for (unsigned char byte : text) tokens.push_back(byte);
  for (;;) {
    int best = -1, best_rank = 0;
    for (size_t i = 0; i + 1 < tokens.size(); ++i) {
      auto found = rank.find({tokens[i], tokens[i + 1]});
      if (found != rank.end() && (best < 0 || found->second < best_rank)) best = int(i), best_rank = found->second;
    }
    if (best < 0) return tokens;
    tokens[best] = 256 + best_rank;
    tokens.erase(tokens.begin() + best + 1);
  }
}

TEST(Tokenizer, EveryByteIsItsOwnTokenAndComesBack) {
  Tokenizer bytes;
  std::vector<int> tokens = bytes.encode(all_bytes());
  ASSERT_EQ(tokens.size(), 256u);
  for (int i = 0; i < 256; ++i) EXPECT_EQ(tokens[i], i);
  EXPECT_EQ(bytes.decode(tokens), all_bytes());
  EXPECT_TRUE(bytes.encode("").empty());
  EXPECT_EQ(bytes.vocab(), 257);
  EXPECT_EQ(bytes.end_of_text(), 256);
}

TEST(Tokenizer, SpecialsAndForeignIdsDecodeToNothing) {
  Tokenizer bytes;
  EXPECT_EQ(bytes.decode({'a', 256, 'b', -1, 257, 100000, 'c'}), "abc");
  EXPECT_EQ(bytes.bytes_of(256), "<|endoftext|>");
  EXPECT_EQ(bytes.bytes_of(-1), "");
  EXPECT_EQ(bytes.bytes_of(255), "\xff");
}

TEST(Tokenizer, SpecialsInATextAreTextUnlessTheyAreAllowed) {
  Tokenizer t(Pattern::gpt2, {{'a', 'b'}}, {"<|endoftext|>", "<s>", "<s><s>"});
  for (int token : t.encode("<s>ab<|endoftext|>")) EXPECT_LT(token, 257);
  EXPECT_EQ(t.encode("<s>ab<|endoftext|>", true), (std::vector<int>{258, 256, 257}));
  EXPECT_EQ(t.encode("<s><s><s>b", true), (std::vector<int>{259, 258, 'b'})) << "the longest of the leftmost";
  EXPECT_EQ(t.encode("<s", true), (std::vector<int>{'<', 's'}));
}

TEST(Tokenizer, MergesAsTheRuleSaysInPiecesOfAnyLength) {
  std::string letters = "aab";
  for (int seed = 0; seed < 60; ++seed) {
    Random random(random_key(1, uint64_t(seed)));
    Drawn d = draw_merges(&random, letters, 1 + random.below(40));
    Tokenizer t(Pattern::none, d.merges, {"<|endoftext|>"});
    for (int n : {1, 2, 3, 10, 60, 95, 96, 97, 98, 300}) {
      std::string text = draw_text(&random, {"a", "b", "aa"}, n);
      std::vector<int> tokens = t.encode(text);
      ASSERT_EQ(tokens, merge_naively(d, text)) << "seed " << seed << ", " << text;
      ASSERT_EQ(t.decode(tokens), text);
    }
  }
}

TEST(Tokenizer, AnEncoderRemembersRight) {
  Random random(7);
  Drawn d = draw_merges(&random, " abc", 60);
  Tokenizer t(Pattern::gpt2, d.merges, {"<|endoftext|>"});
  Encoder encoder(t);
  for (int round = 0; round < 20; ++round) {
    std::string text = draw_text(&random, {" ", "a", "b", "c", "ab", " ca", "abcabcabcabcabcabc", "é"}, 2000);
    std::vector<int> whole, by_pieces;
    encoder.encode(text, &whole);
    for (size_t at = 0, end; at < text.size(); at = end) {
      end = piece_end(Pattern::gpt2, text, at);
      std::vector<int> piece = merge_naively(d, text.substr(at, end - at));
      by_pieces.insert(by_pieces.end(), piece.begin(), piece.end());
    }
    ASSERT_EQ(whole, by_pieces);
  }
}

TEST(Tokenizer, ManyOfAnythingTakesNoLongerThanItShould) {
  std::vector<Tokenizer::Merge> merges;
  for (unsigned char c : {'^', 'a', ' ', '\n'}) {
    merges.push_back({c, c});
    for (int i = 0; i < 6; ++i) merges.push_back({255 + int(merges.size()), 255 + int(merges.size())});
  }
  for (Pattern pattern : {Pattern::none, Pattern::gpt2, Pattern::cl100k, Pattern::qwen2, Pattern::o200k}) {
    Tokenizer t(pattern, merges, {"<|endoftext|>"});
    for (std::string unit : {"^", "a", " ", "\n", " \n", "語", "\xff", "a^", "'"}) {
      std::string text;
      while (text.size() < 300'000) text += unit;
      EXPECT_EQ(t.decode(t.encode(text)), text) << name_of(pattern) << ", " << unit;
    }
  }
}

TEST(Tokenizer, DecodingAnyIdsNeverFails) {
  Random random(3);
  Drawn d = draw_merges(&random, "ab\xc3\xa9", 30);
  Tokenizer t(Pattern::o200k, d.merges, {"<|endoftext|>"});
  std::vector<int> ids;
  for (int i = 0; i < 10000; ++i) ids.push_back(random.below(400) - 50);
  EXPECT_FALSE(t.decode(ids).empty());
}

TEST(Tokenizer, IdsWithoutATokenizerAreShownAsIds) {
  Tokenizer t = Tokenizer::ids_only(300, 299);
  EXPECT_EQ(t.decode({17, 299, 5}), "<17><5>");
  EXPECT_EQ(t.end_of_text(), 299);
  EXPECT_FALSE(t.reads_text());
  EXPECT_NE(message_of([&] { t.encode("x"); }), "");
}

// --- Files

std::string small_json(const std::string& model_extra = "", const std::string& root_extra = "",
                       const std::string& pre = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":true})",
                       const std::string& vocabulary_extra = "", const std::string& merges = R"(["a b","ab c"])") {
  Json vocabulary = parse_json(Tokenizer().to_json(), "bytes").get("model", "").get("vocab", "");
  std::string named;
  for (const auto& [name, id] : vocabulary.members)
    named += (named.empty() ? "" : ",") + write_json(Json(name)) + ":" + write_json(id);
  return R"({"added_tokens":[{"id":258,"content":"<|endoftext|>","single_word":false,"lstrip":false,"rstrip":false,)"
         R"("normalized":false,"special":true}],"normalizer":null,"pre_tokenizer":)" +
         pre + R"(,"model":{"type":"BPE",)" + model_extra + R"("vocab":{)" + named + R"(,"ab":256,"abc":257)" +
         vocabulary_extra + R"(},"merges":)" + merges + "}" + root_extra + "}";
}

Tokenizer load_text(const std::string& text, const std::string& pattern = "", const std::string& end_token = "") {
  Scratch scratch;
  put(scratch / "t.json", text);
  return Tokenizer::load(scratch / "t.json", pattern, end_token);
}

TEST(TokenizerJson, IsReadBackAsItWasWritten) {
  Random random(11);
  Drawn d = draw_merges(&random, "ab \n\xe8\xaa\x9e", 80);
  for (Pattern pattern :
       {Pattern::none, Pattern::gpt2, Pattern::cl100k, Pattern::llama3, Pattern::qwen2, Pattern::o200k}) {
    Tokenizer t(pattern, d.merges, {"<|endoftext|>", "<|x|>"}), again = load_text(t.to_json());
    EXPECT_EQ(again.pattern(), pattern);
    EXPECT_EQ(again.checksum(), t.checksum());
    EXPECT_EQ(again.to_json(), t.to_json());
    EXPECT_EQ(again.vocab(), t.vocab());
    EXPECT_EQ(again.end_of_text(), t.end_of_text());
    std::string text = draw_text(&random, {"a", "b", " ", "\n", "語", "<|x|>"}, 500);
    EXPECT_EQ(again.encode(text), t.encode(text));
    EXPECT_EQ(again.encode(text, true), t.encode(text, true));
  }
}

TEST(TokenizerJson, MayHaveMergesInOneStringAndInTwo) {
  EXPECT_EQ(load_text(small_json()).encode("abcab"), (std::vector<int>{257, 256}));
  EXPECT_EQ(
      load_text(small_json("", "", R"({"type":"ByteLevel","add_prefix_space":false})", "", R"([["a","b"],["ab","c"]])"))
          .encode("abcab"),
      (std::vector<int>{257, 256}));
}

TEST(TokenizerJson, APieceThatIsATokenMayComeBeforeItsMerges) {
  std::string unreachable = R"(["b c"])", words = R"(,"bc":259)";
  EXPECT_EQ(load_text(small_json("", "", R"({"type":"ByteLevel","add_prefix_space":false})", words, unreachable))
                .encode("abc"),
            (std::vector<int>{'a', 259}));
  EXPECT_EQ(load_text(small_json(R"("ignore_merges":true,)", "", R"({"type":"ByteLevel","add_prefix_space":false})",
                                 words, unreachable))
                .encode("abc"),
            (std::vector<int>{257}));
}

TEST(TokenizerJson, AddedTokensThatAreNotSpecialAreFoundInAnyText) {
  std::string json = small_json();
  std::string added = R"({"id":259,"content":"  ","single_word":false,"lstrip":false,"rstrip":false,)"
                      R"("normalized":false,"special":false},)";
  json.insert(json.find('[') + 1, added);
  EXPECT_EQ(load_text(json).encode("a  b"), (std::vector<int>{'a', 259, 'b'}));
  EXPECT_EQ(load_text(json).decode({'a', 259, 'b'}), "a  b");
}

TEST(TokenizerJson, AnAddedTokenStandsForItsText) {
  std::string json = small_json("", "", R"({"type":"ByteLevel","add_prefix_space":false})", R"(,"éé":259)");
  json.insert(json.find('[') + 1, R"({"id":259,"content":"éé","special":false},)");
  EXPECT_EQ(load_text(json).encode("aéé"), (std::vector<int>{'a', 259}));
  EXPECT_EQ(load_text(json).decode({'a', 259}), "aéé") << "not the bytes 0xe9 0xe9, which éé is among the others";
  EXPECT_EQ(load_text(load_text(json).to_json()).checksum(), load_text(json).checksum());
}

TEST(TokenizerJson, AnAddedTokenIsThereOnceWithOneId) {
  auto refusal = [](const std::string& added) {
    std::string json = small_json();
    json.insert(json.find('[') + 1, added);
    return message_of([&] { load_text(json); });
  };
  std::string once = R"({"id":256,"content":"ab","special":true},)";
  EXPECT_TRUE(has(refusal(once + once), "added token `ab` is there twice"));
  EXPECT_TRUE(has(refusal(R"({"id":4294967552,"content":"ab","special":true},)"), "id 4294967552, but 256"));
}

TEST(TokenizerJson, WhatIsWrongOrUnknownIsNamed) {
  std::string byte_level = R"({"type":"ByteLevel","add_prefix_space":false})";
  struct Case {
    std::string text, says;
  };
  std::vector<Case> cases = {
      {"", "empty"},
      {"{}", "vocab.bpe"},
      {std::string(100000, '['), "tokenizer"},
      {"{\"model\":" + std::string(100000, '['), "deeper"},
      {small_json("", "", R"({"type":"Whitespace"})"), "Whitespace"},
      {small_json("", "", R"({"type":"ByteLevel","add_prefix_space":true})"), "add_prefix_space"},
      {small_json("", "",
                  R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":"\\d+"},)"
                  R"("behavior":"Isolated","invert":false},)" +
                      byte_level + "]}"),
       "unknown pattern `\\d+`"},
      {small_json("", "", "null"), "pre-tokenizer"},
      {small_json(R"("dropout":0.1,)"), "dropout"},
      {small_json(R"("end_of_word_suffix":"</w>",)"), "end_of_word_suffix"},
      {small_json(R"("byte_fallback":true,)"), "byte_fallback"},
      {small_json("", "", byte_level, R"(,"x1":256)"), "two tokens"},
      {small_json("", "", byte_level, R"(,"x1":-1)"), "out of range"},
      {small_json("", "", byte_level, R"(,"x1":99999999999)"), "out of range"},
      {small_json("", "", byte_level, R"(,"x1":1e300)"), "out of range"},
      {small_json("", "", byte_level, R"(,"x1":16777215)"), "too far away"},
      {small_json("", "", byte_level, R"(,"x1":1.5)"), "whole number"},
      {small_json("", "", byte_level, R"(,"":300)"), "empty"},
      {small_json("", "", byte_level, "", R"(["a b","a b"])"), "twice"},
      {small_json("", "", byte_level, "", R"(["a x"])"), "no token"},
      {small_json("", "", byte_level, "", R"(["a zz"])"), "`zz` is no token"},
      {small_json("", "", byte_level, "", R"(["a"])"), "two tokens"},
      {small_json("", "", byte_level, "", R"(["a  b"])"), "two tokens"},
      {small_json("", "", byte_level, "", R"([["a"]])"), "two tokens"},
      {small_json("", "", byte_level, "", R"([7])"), "two tokens"},
  };
  for (const Case& c : cases) {
    std::string said = message_of([&] { load_text(c.text); });
    EXPECT_TRUE(has(said, c.says)) << c.text.substr(0, 80) << " … said: " << said;
    EXPECT_EQ(said.find('\n'), std::string::npos);
  }
  std::string json = small_json();
  json.replace(json.find("\"normalizer\":null"), 17, "\"normalizer\":{\"type\":\"NFKC\"}");
  EXPECT_TRUE(has(message_of([&] { load_text(json); }), "NFKC"));
  json = small_json();
  json.replace(json.find("BPE"), 3, "WordPiece");
  EXPECT_TRUE(has(message_of([&] { load_text(json); }), "WordPiece"));
  json = small_json();
  json.replace(json.find("\"!\":33,"), 7, "");
  EXPECT_TRUE(has(message_of([&] { load_text(json); }), "one of the 256 bytes has no token, the first is 0x21"));
  json.replace(json.find("\"#\":35,"), 7, "");
  EXPECT_TRUE(has(message_of([&] { load_text(json); }), "2 of the 256 bytes have no token, the first is 0x21"));
  EXPECT_EQ(load_text(small_json(R"("dropout":0.0,)")).checksum(), load_text(small_json()).checksum());
}

TEST(TokenizerJson, OfQwensKindIsRead) {
  std::string pre = R"({"type":"Sequence","pretokenizers":[{"type":"Split","pattern":{"Regex":)" +
                    write_json(Json(regex_of(Pattern::qwen2))) +
                    R"(},"behavior":"Isolated","invert":false},{"type":"ByteLevel","add_prefix_space":false,)"
                    R"("trim_offsets":false,"use_regex":false}]})";
  std::string json = small_json("", "", pre);
  auto normalized = [&](const std::string& normalizer) {
    std::string changed = json;
    return changed.replace(changed.find("\"normalizer\":null"), 17, "\"normalizer\":" + normalizer);
  };
  std::string sequence = R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"NFC"}]})";
  for (const std::string& normalizer : {std::string(R"({"type":"NFC"})"), sequence}) {
    Tokenizer t = load_text(normalized(normalizer)), again = load_text(t.to_json());
    EXPECT_EQ(t.encode("ab1 cafe\u0301"), t.encode("ab1 caf\u00e9"));
    EXPECT_NE(t.checksum(), load_text(json).checksum());
    EXPECT_EQ(again.checksum(), t.checksum());
    EXPECT_EQ(again.encode("e\u0301"), t.encode("\u00e9"));
  }
  EXPECT_EQ(load_text(normalized(R"({"type":"Sequence","normalizers":[]})")).checksum(), load_text(json).checksum());
  std::string lower = R"({"type":"Sequence","normalizers":[{"type":"NFC"},{"type":"Lowercase"}]})";
  EXPECT_TRUE(has(message_of([&] { load_text(normalized(lower)); }), "`Lowercase` is not supported"));
  EXPECT_TRUE(has(message_of([&] { load_text(normalized(R"({"type":"NFD"})")); }), "`NFD` is not supported"));
}

TEST(TokenizerJson, NamesThatAreNoBytesCharactersStayAsTheyAre) {
  std::string words = R"(,"語":259,"èªŀ":260)";  // the second is that of 語's bytes
  Tokenizer t =
      load_text(small_json(R"("ignore_merges":true,)", "", R"({"type":"ByteLevel","add_prefix_space":false})", words));
  EXPECT_EQ(t.encode("語"), (std::vector<int>{260}));
  EXPECT_EQ(t.decode({259, 260}), "語語");
  Tokenizer again = load_text(t.to_json());
  EXPECT_EQ(again.to_json(), t.to_json());
  EXPECT_EQ(again.checksum(), t.checksum());
}

// tiktoken's file of these tokens.
std::string ranks_of(const std::vector<std::string>& tokens) {
  constexpr char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string file;
  for (size_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string& t = tokens[rank];
    for (size_t i = 0; i < t.size(); i += 3) {
      uint32_t bits = 0;
      for (size_t j = 0; j < 3; ++j) bits = bits << 8 | (i + j < t.size() ? static_cast<unsigned char>(t[i + j]) : 0);
      for (size_t j = 0; j < 4; ++j) file += i + j <= t.size() ? digits[bits >> (18 - 6 * j) & 63] : '=';
    }
    file += " " + std::to_string(rank) + "\n";
  }
  return file;
}

TEST(Ranks, TwoTokensBecomeOneWhereTheirBytesAreAToken) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 256; ++i) tokens.push_back(std::string(1, char(i)));
  for (const char* token : {"aa", "ab", "aab", "bcd", "abcd"}) tokens.push_back(token);
  Tokenizer t = load_text(ranks_of(tokens), "gpt2");
  EXPECT_EQ(t.vocab(), 261);
  EXPECT_EQ(t.encode("aaa"), (std::vector<int>{256, 'a'})) << "the leftmost of equals";
  EXPECT_EQ(t.encode("aab"), (std::vector<int>{258}));
  EXPECT_EQ(t.encode("bcd"), (std::vector<int>{259})) << "a piece that is a token, though no merges lead to it";
  EXPECT_EQ(t.encode("xbcd"), (std::vector<int>{'x', 'b', 'c', 'd'})) << "in a longer piece merges have to lead there";
  Tokenizer again = load_text(t.to_json());
  EXPECT_EQ(again.checksum(), t.checksum()) << "it is the same tokenizer";
  for (const char* text : {"aaa", "aab", "bcd", "xbcd", "abcd", "aaaab"}) EXPECT_EQ(again.encode(text), t.encode(text));
}

// Bytes, pairs of bytes, and " the" with a rank of its own.
std::vector<std::string> many_tokens(size_t count, size_t rank_of_the) {
  std::vector<std::string> tokens;
  for (int i = 0; i < 256; ++i) tokens.push_back(std::string(1, char(i)));
  for (int i = 0; tokens.size() < count; ++i)
    tokens.push_back(tokens.size() == rank_of_the ? " the" : std::string{char(i >> 8), char(i & 255)});
  return tokens;
}

TEST(Ranks, ThatAreKnownAreToldByTheirNumberAndOneRankAndHaveTheirOwnPatternAndSpecials) {
  std::string r50k = ranks_of(many_tokens(50256, 262)), other = ranks_of(many_tokens(50256, 263));
  for (const char* pattern : {"", "gpt2"}) {
    Tokenizer t = load_text(r50k, pattern);
    EXPECT_EQ(t.pattern(), Pattern::gpt2);
    EXPECT_EQ(t.end_of_text(), 50256);
  }
  EXPECT_TRUE(has(message_of([&] { load_text(r50k, "qwen2"); }), "has the ranks of r50k_base, which cut as gpt2"));
  EXPECT_TRUE(has(message_of([&] { load_text(other); }), "is none of the files that are known: name its pattern"));
  EXPECT_EQ(load_text(other, "qwen2").pattern(), Pattern::qwen2);
}

TEST(Ranks, ThatAreNotKnownHaveTheSpecialTokenThatIsAskedForAndNoOther) {
  std::string ranks = ranks_of(many_tokens(256, 0));
  EXPECT_EQ(load_text(ranks, "gpt2").end_of_text(), -1);
  EXPECT_EQ(load_text(ranks, "gpt2").vocab(), 256);
  EXPECT_EQ(load_text(ranks, "gpt2", "<|end|>").encode("a<|end|>", true), (std::vector<int>{'a', 256}));
  std::vector<std::string> tokens = many_tokens(256, 0);
  tokens.insert(tokens.end(), {"<|endoftext|>", "ab"});
  EXPECT_EQ(load_text(ranks_of(tokens), "gpt2").end_of_text(), 256) << "one of them has this text";
  EXPECT_EQ(load_text(ranks_of(tokens), "gpt2").vocab(), 258);
}

TEST(Ranks, WhatIsWrongIsNamed) {
  std::string bytes = ranks_of([] {
    std::vector<std::string> tokens;
    for (int i = 0; i < 256; ++i) tokens.push_back(std::string(1, char(i)));
    return tokens;
  }());
  EXPECT_TRUE(has(message_of([&] { load_text(bytes); }), "--pattern"));
  EXPECT_TRUE(has(message_of([&] { load_text(bytes, "gpt5"); }), "gpt5"));
  for (auto [line, says] : std::vector<std::pair<std::string, std::string>>{{"YQ== 300\n", "there twice"},
                                                                            {"YWI= 7\n", "two tokens"},
                                                                            {"YWI= -1\n", "out of range"},
                                                                            {"YWI= 99999999\n", "out of range"},
                                                                            {"YWI= 9999999\n", "too far away"},
                                                                            {"YWI= 1x\n", "whole number"},
                                                                            {"YW 300\n", "base64"},
                                                                            {"Y!I= 300\n", "base64"},
                                                                            {"= 300\n", "base64"},
                                                                            {"==== 300\n", "base64"},
                                                                            {"YWI=\n", "rank"}}) {
    std::string said = message_of([&, line = line] { load_text(bytes + line, "gpt2"); });
    EXPECT_TRUE(has(said, says)) << line << said;
  }
  EXPECT_TRUE(has(message_of([&] { load_text("this is no tokenizer\n"); }), "t.json:1"));
  EXPECT_TRUE(has(message_of([&] { load_text("YQ== 0\n", "gpt2"); }), "byte"));
}

TEST(Gpt2Files, AreReadByFolderOrByEitherName) {
  Scratch scratch;
  Json model = parse_json(small_json(), "t").get("model", "t");
  Json vocabulary = model.get("vocab", "t");
  vocabulary.set("<|endoftext|>", 258);
  put(scratch / "encoder.json", write_json(vocabulary));
  put(scratch / "vocab.bpe", "#version: 0.2\na b\nab c\n");
  for (std::string path : {scratch.path, scratch / "encoder.json", scratch / "vocab.bpe"}) {
    Tokenizer t = Tokenizer::load(path);
    EXPECT_EQ(t.encode("abcab"), (std::vector<int>{257, 256}));
    EXPECT_EQ(t.end_of_text(), 258);
    EXPECT_EQ(t.pattern(), Pattern::gpt2);
  }
  EXPECT_EQ(Tokenizer::load(scratch.path, "qwen2").pattern(), Pattern::qwen2) << "as Qwen's vocab.json is cut";
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch.path, "gpt5"); }), "no pattern `gpt5`"));
  put(scratch / "vocab.bpe", "#version: 0.2\na b\na b c\n");
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch.path); }), "vocab.bpe:3"));
  std::filesystem::remove(scratch / "vocab.bpe");
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch / "encoder.json"); }), "vocab.bpe"));
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch.path); }), "no tokenizer"));
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(""); }), "empty"));
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch / "nothing"); }), "nothing"));
}

TEST(Gpt2Files, AreCutAsTheClassSaysThatAConfigBesideThemNames) {
  Scratch scratch;
  Json vocabulary = parse_json(small_json(), "t").get("model", "t").get("vocab", "t");
  put(scratch / "vocab.json", write_json(vocabulary));
  put(scratch / "merges.txt", "a b\nab c\n");
  std::string added = R"("added_tokens_decoder":{"258":{"content":"<|endoftext|>","special":true},)"
                      R"("259":{"content":"<|im_end|>","special":true,"lstrip":true}})";
  auto load = [&](const std::string& config, const std::string& pattern = "") {
    put(scratch / "tokenizer_config.json", "{" + config + "}");
    return Tokenizer::load(scratch / "vocab.json", pattern);
  };
  for (const char* name : {"Qwen2Tokenizer", "Qwen2TokenizerFast"}) {
    Tokenizer t = load(text("\"tokenizer_class\":\"%s\",", name) + added);
    EXPECT_EQ(t.pattern(), Pattern::qwen2);
    EXPECT_EQ(t.encode("abe\u0301 <|im_end|>", true), (std::vector<int>{256, 0xc3, 0xa9, 259})) << "NFC, lstrip";
  }
  EXPECT_EQ(load(R"("tokenizer_class":"GPT2Tokenizer")").pattern(), Pattern::gpt2);
  EXPECT_EQ(load(R"("model_max_length":1024)", "qwen2").pattern(), Pattern::qwen2) << "it names none";
  EXPECT_EQ(load(R"("tokenizer_class":"OwnTokenizer")", "o200k").pattern(), Pattern::o200k);
  for (const auto& [config, pattern, part] : std::vector<std::array<std::string, 3>>{
           {R"("tokenizer_class":"CLIPTokenizer")", "", "is of a CLIPTokenizer, and how that cuts text is not known"},
           {R"("tokenizer_class":"Qwen2Tokenizer")", "gpt2", "is of a Qwen2Tokenizer, which cuts as qwen2; leave"},
           {R"("add_prefix_space":true)", "", "`add_prefix_space` is not supported"},
           {R"("added_tokens_decoder":{"x":{"content":"y","special":true}})", "", "`x` is no whole number"}})
    EXPECT_TRUE(has(message_of([&, config = config, pattern = pattern] { load(config, pattern); }), part)) << config;
  put(scratch / "tokenizer_config.json", "[1]\n");
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch / "vocab.json"); }), "but seems to be a JSON array"));
  put(scratch / "tokenizer_config.json", "\xff\xfe{");
  EXPECT_TRUE(has(message_of([&] { Tokenizer::load(scratch / "vocab.json"); }), "but seems to be UTF-16"));
  put(scratch / "added_tokens.json", R"({"<|im_end|>":259})");
  EXPECT_TRUE(has(message_of([&] { load(""); }), "added_tokens.json names `<|im_end|>`, and no tokenizer_config.json"));
  EXPECT_EQ(load(added).vocab(), 260);
}

}  // namespace
