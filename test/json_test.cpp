// JSON and messages: what is read, what is refused and with which words, what is written.
#include "json.h"

#include "utf8.h"

#include <cmath>
#include <limits>

#include "scratch.h"

namespace {

Json read(const std::string& source) { return parse_json(source, "x.json"); }
std::string refusal(const std::string& source) {
  return message_of([&] { parse_json(source, "x.json"); });
}
std::string rewritten(const std::string& source) { return write_json(read(source)); }

TEST(Errors, AMessageIsOneLineWhateverItQuotes) {
  EXPECT_EQ(message_of([] { fail("a %s b", "1\n2\x1b[31m"); }), "a 1\\n2\\x1b[31m b");
  EXPECT_LT(message_of([] { fail("%s", std::string(1000000, 'x').c_str()); }).size(), 5000u);
  EXPECT_LT(message_of([] { fail("%s", std::string(1000000, '\x80').c_str()); }).size(), 5000u)
      << "no end of a character";
  EXPECT_EQ(text("%d-%s", 7, "é"), "7-é");
  EXPECT_EQ(text("%s", std::string(5000, 'y').c_str()), std::string(5000, 'y'));
}

TEST(Json, ReadsEveryKindOfValue) {
  Json json = read(R"( {"a": [1, -2.5e3, true, false, null, "s"], "b": {}, "c": []} )");
  EXPECT_EQ(write_json(json), R"({"a": [1, -2500, true, false, null, "s"], "b": {}, "c": []})");
  EXPECT_EQ(json.find("a")->items.size(), 6u);
  EXPECT_EQ(json.find("z"), nullptr);
}

TEST(Json, KeepsTheOrderOfMembers) { EXPECT_EQ(rewritten(R"({"z":1,"a":2,"m":3})"), R"({"z": 1, "a": 2, "m": 3})"); }

TEST(Json, ReadsScalarsAtTheTop) {
  EXPECT_EQ(read("0").number, 0);
  EXPECT_TRUE(std::signbit(read("-0").number));
  EXPECT_EQ(read("\"\"").kind, Json::Kind::string);
  EXPECT_EQ(read("\xEF\xBB\xBF 7\r\n").number, 7);  // a byte-order mark
}

TEST(Json, NumbersReadBackAsTheSameBits) {
  for (double v : {0.1, -0.0, 1.0 / 3, 5e-324, 1.7976931348623157e308, 9007199254740993.0, 1e15, 123456789012.0, 1e21})
    EXPECT_EQ(read(write_json(Json(v))).number, v) << write_json(Json(v));
  EXPECT_EQ(write_json(Json(-0.0)), "-0");
  EXPECT_EQ(write_json(Json(1000000)), "1000000");
  EXPECT_EQ(write_json(Json(int64_t(9007199254740991))), "9007199254740991");
}

TEST(Json, FloatsAreWrittenAsTheirShortestDecimal) {
  EXPECT_EQ(write_json(Json(0.1f)), "0.1");
  EXPECT_EQ(write_json(Json(3e-4f)), "3e-04");
  for (float v : {0.1f, 1e-6f, 16777217.0f, 3.4028235e38f, 1e-45f})
    EXPECT_EQ(float(read(write_json(Json(v))).number), v);
}

TEST(Json, NumbersThatAreNotFiniteAreWrittenAsNull) {
  EXPECT_EQ(write_json(Json(std::numeric_limits<double>::infinity())), "null");
  EXPECT_EQ(write_json(Json(std::nan(""))), "null");
  EXPECT_EQ(write_json(Json(std::numeric_limits<float>::quiet_NaN())), "null");
}

TEST(Json, StringsKeepEscapesAndUnicode) {
  EXPECT_EQ(read(R"("\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00\u0000")").string, std::string("\"\\/\b\f\n\r\té😀\0", 15));
  EXPECT_EQ(write_json(Json("a\"\\\b\f\n\r\t\x01é😀")), R"("a\"\\\b\f\n\r\t\u0001é😀")");
  EXPECT_EQ(write_json(Json(std::string(1, '\0'))), R"("\u0000")");
}

TEST(Json, BytesThatAreNotUtf8AreWrittenAsTheReplacementCharacter) {
  EXPECT_EQ(write_json(Json("a\xFF\xC3")), "\"a\xEF\xBF\xBD\xEF\xBF\xBD\"");
  EXPECT_NO_THROW(rewritten(write_json(Json("\xED\xA0\x80"))));
}

TEST(Json, AMistakeIsNamedByLineColumnAndExpectation) {
  EXPECT_EQ(refusal("{\n  \"a\": 1,\n  \"é\" 2}"), "x.json:3:7: expected `:`, found `2`");
  EXPECT_EQ(refusal(""), "x.json:1:1: expected a value, but the file ends here");
  EXPECT_EQ(refusal("[1, 2"), "x.json:1:6: expected `,` or `]`, but the file ends here");
  EXPECT_EQ(refusal("[1 2]"), "x.json:1:4: expected `,` or `]`, found `2`");
  EXPECT_EQ(refusal("{\"a\": 1,}"), "x.json:1:9: expected a member's name in double quotes, found `}`");
  EXPECT_EQ(refusal("[1,]"), "x.json:1:4: expected a value, found `]`");
  EXPECT_EQ(refusal("{'a': 1}"), "x.json:1:2: expected a member's name in double quotes, found `'`");
  EXPECT_EQ(refusal("1 2"), "x.json:1:3: expected the end of the file, found `2`");
  EXPECT_EQ(refusal(std::string(1, '\0')), "x.json:1:1: expected a value, found a zero byte");
  EXPECT_EQ(refusal("truth"), "x.json:1:1: expected a value, found `t`");
}

TEST(Json, AMemberGivenTwiceIsRefused) {
  EXPECT_TRUE(has(refusal("{\"a\":1,\n\"a\":2}"), "x.json:2:1: the member `a` is there twice"));
}

TEST(Json, NumbersOutsideTheGrammarAreRefused) {
  for (const char* bad : {"01", "+1", ".5", "1.", "1e", "1e+", "-", "0x10", "1_000", "NaN", "Infinity", "-inf", "--1"})
    EXPECT_TRUE(has(refusal(bad), "x.json:1:")) << bad;
}

TEST(Json, NumbersThatNoDoubleHoldsAreRefused) {
  EXPECT_TRUE(has(refusal("1e999"), "a number that a double can hold"));
  EXPECT_TRUE(has(refusal("[-1e400]"), "x.json:1:2"));
  EXPECT_TRUE(has(refusal(std::string(400, '9')), "a double can hold"));
  EXPECT_EQ(read(std::string(300, '9')).number, 1e300);
}

TEST(Json, BadStringsAreRefused) {
  EXPECT_TRUE(has(refusal("\"abc"), "x.json:1:1: expected a closing"));
  EXPECT_TRUE(has(refusal("\"a\nb\""), "control character 0x0a"));
  EXPECT_TRUE(has(refusal(R"("\x41")"), "expected one of"));
  EXPECT_TRUE(has(refusal("\"\\"), "expected one of"));
  for (const char* bad : {R"("\u12")", R"("\u12g4")", R"("\u")", R"("\u-123")", "\"\\u1"})
    EXPECT_TRUE(has(refusal(bad), "four hexadecimal digits")) << bad;
  for (const char* bad : {R"("\ud800")", R"("\udc00")", R"("\ud800\ud800")", R"("\ud800x")", R"("\ud800\n")"})
    EXPECT_TRUE(has(refusal(bad), "surrogate pair")) << bad;
}

TEST(Json, BytesThatAreNotUtf8AreRefused) {
  for (const char* bad : {"\x80", "\xC0\xAF", "\xC3", "\xE0\x80\x80", "\xED\xA0\x80", "\xF0\x80\x80\x80",
                          "\xF4\x90\x80\x80", "\xF8\x88\x80\x80\x80", "\xFF", "\xE2\x82"})
    EXPECT_TRUE(has(refusal(text("\"%s\"", bad)), "x.json:1:2: expected UTF-8"));
  EXPECT_TRUE(has(refusal("\xFF"), "expected a value"));
}

TEST(Json, NestingDeeperThanAHundredIsRefused) {
  auto nested = [](int n) { return std::string(n, '[') + std::string(n, ']'); };
  EXPECT_EQ(refusal(nested(100)), "");
  EXPECT_TRUE(has(refusal(nested(101)), "nested deeper than 100"));
  EXPECT_TRUE(has(refusal(std::string(1000000, '[')), "nested deeper than 100"));
  std::string objects;
  for (int i = 0; i < 100000; ++i) objects += "{\"a\":";
  EXPECT_TRUE(has(refusal(objects), "nested deeper than 100"));
}

TEST(Json, EveryTruncationOfADocumentIsRefusedNotCrashedOn) {
  std::string whole = R"({"a": [1.5e3, "\u00e9\ud83d\ude00é", {"b": null}], "c": true})";
  for (size_t n = 0; n < whole.size(); ++n) EXPECT_NE(refusal(whole.substr(0, n)), "") << n;
  for (size_t n = 0; n < whole.size(); ++n) {  // any byte in any place is an answer or a refusal
    for (int byte : {0, int('"'), int('\\'), int('{'), int(']'), 0x80, 0xFF}) {
      std::string changed = whole;
      changed[n] = char(byte);
      refusal(changed);
    }
  }
}

TEST(Json, ManyMembersAreReadInLinearTime) {
  std::string source = "{\"first\": 0";
  for (int i = 0; i < 50000; ++i) source += ", \"member" + std::to_string(i) + "\": " + std::to_string(i);
  EXPECT_EQ(read(source + "}").members.size(), 50001u);
}

TEST(Json, MembersAreTakenByTypeOrTheMistakeNamed) {
  Json json = read(R"({"n": 3, "x": 1.5, "s": "t", "b": true, "big": 9007199254740993, "huge": 1e300})");
  EXPECT_EQ(json.get_int("n", "p"), 3);
  EXPECT_EQ(json.get_number("x", "p"), 1.5);
  EXPECT_EQ(json.get_string("s", "p"), "t");
  EXPECT_TRUE(json.get_bool("b", "p"));
  EXPECT_EQ(message_of([&] { json.get("y", "p"); }), "p: `y` is missing");
  EXPECT_EQ(message_of([&] { json.get_int("x", "p"); }), "p: `x` should be a whole number");
  EXPECT_EQ(message_of([&] { json.get_int("s", "p"); }), "p: `s` should be a whole number");
  EXPECT_TRUE(has(message_of([&] { json.get_int("big", "p"); }), "below 2^53"));
  EXPECT_TRUE(has(message_of([&] { json.get_int("huge", "p"); }), "below 2^53"));
  EXPECT_EQ(message_of([&] { json.get_number("s", "p"); }), "p: `s` should be a number");
  EXPECT_EQ(message_of([&] { json.get_string("n", "p"); }), "p: `n` should be a string");
  EXPECT_EQ(message_of([&] { json.get_bool("n", "p"); }), "p: `n` should be true or false");
  EXPECT_TRUE(has(message_of([&] { Json(1).get("n", "p"); }), "p: should be an object"));
}

TEST(Json, SetReplacesOrAppends) {
  Json json = Json::object({{"a", 1}});
  json.set("b", "two");
  json.set("a", Json::array({1, 2.5, true}));
  EXPECT_EQ(write_json(json), R"({"a": [1, 2.5, true], "b": "two"})");
}

TEST(Json, KnowsWhatTextItCanHold) {
  for (const char* text : {"", "a", "café", "€", "𝄞", "\n\x7f"}) EXPECT_TRUE(is_utf8(text)) << text;
  for (const char* bytes : {"caf\xe9", "\xc3", "a\xff", "\xc0\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80"})
    EXPECT_FALSE(is_utf8(bytes)) << bytes;
}

TEST(Json, TheIndentedFormIsForPeopleAndReadsBack) {
  Json json = read(R"({"a": [1, {"b": 2}], "c": {}, "d": []})");
  std::string shown = write_json_indented(json);
  EXPECT_EQ(shown, "{\n  \"a\": [\n    1,\n    {\n      \"b\": 2\n    }\n  ],\n  \"c\": {},\n  \"d\": []\n}\n");
  EXPECT_EQ(rewritten(shown), write_json(json));
}

}  // namespace
