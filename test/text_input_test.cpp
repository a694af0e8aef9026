// The door for texts: what is no text is named by its first bytes, what may be text passes, and what is said to be typed
// works.
#include "text_input.h"

#include "program.h"
#include "shards.h"

namespace {

using namespace std::string_literals;

std::string refusal(const std::string& head, const std::string& path = "x", TextUse use = TextUse::training) {
  std::string message = message_of([&] { require_text(head, path, use); });
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
  return message;
}

std::string utf16(const std::string& ascii, bool little) {
  std::string bytes;
  for (char c : ascii) bytes += little ? std::string{c, '\0'} : std::string{'\0', c};
  return bytes;
}

std::string ids(const std::vector<int>& values, int bytes) {
  std::string out;
  for (int value : values)
    for (int i = 0; i < bytes; ++i) out += char(value >> 8 * i);
  return out;
}

const std::pair<std::string, const char*> kOthers[] = {
    {"\x1f\x8b\x08\0"s, "x is packed (gzip): unpack it, gzip -dc <x >x.txt"},
    {"\x28\xb5\x2f\xfd$"s, "packed (Zstandard): unpack it, zstd -dc <x"},
    {"\xfd\x37zXZ\0"s, "packed (xz): unpack it, xz -dc <x"},
    {"\x5d\0\0\x80\0"s, "packed (LZMA)"},
    {"BZh91AY&SY"s, "packed (bzip2): unpack it, bzip2 -dc <x"},
    {"\x04\x22\x4d\x18"s, "packed (LZ4)"},
    {"PK\x03\x04\x14\0"s, "x is an archive (zip): unpack it, unzip x"},
    {"PK\x03\x04"s + std::string(22, '\0') + "\x05\0\0\0a.npy"s, "x is arrays of NumPy"},
    {"PK\x03\x04"s + std::string(22, '\0') + "\x0a\0\0\0m/data.pkl"s, "x is a model of PyTorch"},
    {"7z\xbc\xaf\x27\x1c\0\4"s, "an archive (7z)"},
    {"a.txt"s + std::string(252, '\0') + "ustar\0"s, "an archive (tar): unpack it, tar -xf x"},
    {"PAR1\x15\0"s, "x is Parquet: make it .jsonl first, python3 -c"},
    {"ARROW1\0\0"s, "an Arrow file"},
    {"\xff\xff\xff\xff\x10\2\0\0\x10\0\0\0"s, "a stream of Arrow"},
    {"\x93NUMPY\1\0v\0{'descr': '<u2'"s, "x is an array of NumPy: if it holds token ids, python3 -c"},
    {"\x93NUMPY\1\0v\0{'descr': '<f8'"s, "x is an array of NumPy"},
    {"\x80\4\x95"s, "a pickle of Python"},
    {"%PDF-1.7\n"s, "x is PDF: take the text out of it, pdftotext x x.txt"},
    {"\x89HDF\r\n\x1a\n"s, "HDF5"},
    {"SQLite format 3\0"s, "a database (SQLite)"},
    {"\x88\1\0\0\0\0\0\0{\"a\":"s, "a model (safetensors)"},
    {"GGUF\3\0\0\0"s, "a model (GGUF)"},
    {"\x89PNG\r\n\x1a\n"s, "a picture (PNG)"},
    {"\xff\xd8\xff\xe0"s, "a picture (JPEG)"},
    {"\x7f"
     "ELF\2"s,
     "a program"},
    {shard_header(16, 3), "x is a token file, not text: ./train --data reads it under a name that ends in .bin"},
    {"\xff\xfe" + utf16("text", true), "x is UTF-16: make it UTF-8, iconv -f UTF-16 -t UTF-8 <x >x.utf8"},
    {"\xfe\xff" + utf16("text", false), "x is UTF-16: make it UTF-8"},
    {"\xff\xfe\0\0t\0\0\0"s, "x is UTF-32: make it UTF-8"},
};

TEST(TextInput, IsNamedByItsFirstBytesWhereItIsNoText) {
  for (const auto& [head, part] : kOthers)
    for (TextUse use : {TextUse::training, TextUse::documents, TextUse::json_lines, TextUse::prompts})
      EXPECT_TRUE(has(refusal(head, "x", use), part)) << part << "\n" << refusal(head, "x", use);
}

TEST(TextInput, IsNeverRefusedForNotBeingUtf8) {
  std::string high;
  for (int c = 1; c < 256; ++c) high += char(c);
  for (const std::string& text :
       {"caf\xe9 au lait\n"s, "\xcc\xec\xb5\xd8\xd0\xfe\xbb\xc6"s, "\xc0\xaf\xed\xa0\x80"s, high, ""s})
    for (TextUse use : {TextUse::training, TextUse::documents, TextUse::json_lines, TextUse::prompts})
      EXPECT_EQ(refusal(text, "x", use), "");
}

TEST(TextInput, MayBeginWithThePrintableLettersOfAMagicNumber) {
  for (const char* text : {"PAR1 is a receptor.", "RIFFraff", "ID3 is a learner", "OggS", "GGUF", "FEA1", "ORC", "PK",
                           "GIF8", "BZh", "%PDF-files", "ustar", "MM", "II*", "Obj"})
    EXPECT_EQ(refusal(text), "") << text;
}

TEST(TextInput, WithAZeroByteInItsFirst64KiBIsRefusedByItsPlace) {
  std::string text = some_text(100'000);
  text[1234] = '\0';
  EXPECT_EQ(refusal(text, "x.txt"), "x.txt is not text: byte 1234 is zero; --format text takes it as it is");
  EXPECT_NE(refusal(text, "x", TextUse::documents), "");
  EXPECT_EQ(refusal(text, "x", TextUse::json_lines), "") << "there it is a bad line";
  EXPECT_EQ(refusal(text, "x", TextUse::prompts), "") << "a prompt may be any bytes";
  std::swap(text[1234], text[kTextHead]);
  EXPECT_EQ(refusal(text), "");
}

TEST(TextInput, OfTwoBytesACharacterIsNamedWithoutItsMark) {
  EXPECT_TRUE(has(refusal(utf16(some_text(), true)), "UTF-16 (little-endian, without a mark): make it UTF-8, iconv"));
  EXPECT_TRUE(has(refusal(utf16(some_text(), false)), "UTF-16 (big-endian, without a mark): make it UTF-8, iconv"));
  for (const char* end : {"", "c", "cde"})  // too short for it, or of an odd size
    EXPECT_TRUE(has(refusal("a" + std::string(1, '\0') + "b" + std::string(1, '\0') + end), "byte 1 is zero")) << end;
}

TEST(TextInput, OfTwoBytesACharacterIsNamedInOtherScriptsToo) {
  auto utf16_of = [](const std::u16string& text, bool little) {
    std::string bytes;
    for (int i = 0; i < 20; ++i)
      for (char16_t c : text) {
        char low = char(c & 0xff), high = char(c >> 8);
        bytes += little ? std::string{low, high} : std::string{high, low};
      }
    return bytes;
  };
  for (const std::u16string& text : {std::u16string(u"天地玄黃，宇宙洪荒。\n一日月盈昃"),
                                     std::u16string(u"в начале было слово\n"), std::u16string(u"はじめに ことば\n")}) {
    EXPECT_TRUE(has(refusal(utf16_of(text, true)), "UTF-16 (little-endian, without a mark)"));
    EXPECT_TRUE(has(refusal(utf16_of(text, false)), "UTF-16 (big-endian, without a mark)"));
  }
}

TEST(TextInput, ThatIsRawTokenIdsIsSaidToBeSoPerhaps) {
  std::vector<int> some;
  for (int i = 0; i < 500; ++i) some.push_back(i * i * 37 % 50257);
  std::string command = "./tokenize import x.bin --out FOLDER gives them one";
  EXPECT_TRUE(
      has(refusal(ids(some, 2), "x.bin"), "raw token ids of 16 bits without a header, as nanoGPT has them: " + command))
      << refusal(ids(some, 2), "x.bin");
  EXPECT_TRUE(has(refusal(ids(some, 4), "x.bin"), "raw token ids of 32 bits"));
  some[100] = 60000;
  EXPECT_FALSE(has(refusal(ids(some, 2)), "token ids"));
  EXPECT_FALSE(has(refusal(std::string(1000, '\0')), "token ids"));
}

TEST(TextInput, OfJsonIsToldByItsStructure) {
  std::string lines = "{\"id\": 1, \"content\": \"a text\"}\n{\"id\": 2, \"content\": \"b\"}\n";
  EXPECT_EQ(refusal(lines, "a b/w.json"),
            "a b/w.json is JSONL, an object a line: make token files of it to train on, ./tokenize data 'a b/w.json' "
            "--format jsonl --field content --out w_tokens; --format text takes it as it is");
  EXPECT_TRUE(has(refusal(lines, "w.txt"), "is JSONL"));
  EXPECT_TRUE(has(refusal("{\"text\": \"alone\"}", "w.NDJSON"), "./tokenize data w.NDJSON --out w_tokens"));
  EXPECT_TRUE(has(refusal(lines, "-", TextUse::documents),
                  "standard input seems to be JSONL, an object a line: say --format jsonl --field content"));
  EXPECT_EQ(refusal(lines, "w.jsonl", TextUse::json_lines), "");
  EXPECT_EQ(refusal(lines, "w", TextUse::prompts), "") << "a prompt may be JSON";
  for (TextUse use : {TextUse::training, TextUse::documents, TextUse::json_lines})
    EXPECT_TRUE(has(refusal("\n[\n {\"text\": \"a\"}]", "w.json", use), "w.json is a JSON array: make it JSONL"));
  EXPECT_TRUE(has(refusal("[\"a\", \"b\"]", "w.json"), "is a JSON array"));
  EXPECT_TRUE(has(refusal("{\"train\": [1]}", "w.json"), "w.json is JSON, not text"));
  for (const char* text :
       {"{braces}\n{more}\n", "{\"a\": 1} and\n{\"b\": 2}", "[\"quoted\"] words", "[{x}]", "{\"a\": 1}\n"})
    EXPECT_EQ(refusal(text, "w.txt"), "") << text;
}

TEST(TextInput, OfJsonIsToldByItsStructureWhereALineIsLongerThanWhatIsLookedAt) {
  std::string page(kTextHead, 'x');
  for (const char* begins : {R"({"id": [1, {"a": "}"}], "body": "x\"x)", R"( {"text":"a","body" : ")"})
    EXPECT_TRUE(has(refusal(begins + page, "w.txt"), "w.txt is JSONL")) << begins;
  EXPECT_TRUE(has(refusal(R"({"id": "a", "body": ")" + page, "w.jsonl"), "./tokenize data w.jsonl --field body --out"));
  for (const char* begins : {R"({a: "x)", R"({"a" "b": ")", R"({"a": "b"} )", R"({"a": "b" "c": ")"})
    EXPECT_EQ(refusal(begins + page, "w.txt"), "") << begins;
}

TEST(TextInput, OfJsonInAnotherFormThanAnObjectALineIsRefusedWithWhatToDo) {
  const TextUse kAll[] = {TextUse::training, TextUse::documents, TextUse::json_lines};
  for (TextUse use : kAll) {
    EXPECT_EQ(
        refusal("{\n  \"text\": \"a\"\n}\n{\n  \"text\"", "w.jsonl", use),
        "w.jsonl is JSON whose objects take several lines: make it JSONL, an object a line, with jq -c . <w.jsonl "
        ">w.lines.jsonl; --format text takes it as it is");
    EXPECT_TRUE(has(refusal("[\"a\", 1]\n[\"b\", 2]\n", "w.jsonl", use), "w.jsonl holds a JSON array a line"));
    EXPECT_EQ(refusal("[a]\n[b]\n", "w", TextUse::documents), "");
  }
  EXPECT_EQ(refusal("{\n\"quoted\" speech\n}", "w.txt"), "");
  std::string old = "{\"text\": \"a\"}\r{\"text\": \"b\"}\r";
  EXPECT_TRUE(has(refusal(old, "w"), "w is JSONL"));
  EXPECT_EQ(refusal(old, "w.jsonl", TextUse::json_lines),
            "w.jsonl is JSONL whose lines end in a carriage return alone: make these newlines, with tr '\\r' '\\n' "
            "<w.jsonl >w.lines.jsonl; --format text takes it as it is");
}

TEST(TextInput, OfJsonIsMadeTokensByTheFlagsThatTrainingWasGiven) {
  Bench bench;
  put(bench / "w.jsonl", "{\"text\": \"a\"}\n{\"text\": \"b\"}\n");
  put(bench / "t.json", Tokenizer(Pattern::llama3, {}, {"<a>", "<b>"}).to_json());
  for (const auto& [flags, part] : std::vector<std::pair<Words, std::string>>{
           {{"--vocab", "300", "--pattern", "gpt2"}, " --pattern gpt2 --vocab 300 --out"},
           {{"--tokenizer", bench / "t.json", "--end-token", "<b>"}, "/t.json --end-token '<b>' --out"}})
    expect_refused(run("train", Words{"--data", bench / "w.jsonl", "--out", bench / "out"} + flags), "train", part);
}

TEST(TextInput, OfStandardInputIsNamedWithWhatToPutBeforeIt) {
  EXPECT_EQ(refusal("\x1f\x8b", "-", TextUse::documents),
            "standard input is packed (gzip): unpack it through gzip -dc; --format text takes it as it is");
}

// What stands between two parts of a message.
std::string between(const std::string& text, const std::string& from, const std::string& to) {
  size_t begin = text.find(from) + from.size();
  return text.substr(begin, text.find(to, begin) - begin);
}

TEST(TextInput, CommandsOfRefusalsWorkAsTheyAreSaid) {
  Scratch folder;
  Setting there;
  there.folder = folder.path;
  std::string text = some_text(3000), name = folder / "it's 16.txt";
  put(name, utf16(text, true));
  Ran ran = shell(between(refusal(contents(name), name), "make it UTF-8, ", "; --format"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(contents(folder / "it's 16.utf8.txt"), text);

  put(folder / "a b.json", "[{\"body\": \"one\"}, \"two\"]");
  ran = shell(between(refusal(contents(folder / "a b.json"), "a b.json"), "object a line, with ", "; --format"), there);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_EQ(contents(folder / "a b.jsonl"), "{\"body\": \"one\"}\n{\"text\": \"two\"}\n");

  put(folder / "w.json", "{\"body\": \"one\"}\n{\"body\": \"two\"}\n");
  std::string command = between(refusal(contents(folder / "w.json"), "w.json"), "to train on, ./tokenize", ";");
  ran = shell(program_path("tokenize") + command + " --vocab 257", there);
  ASSERT_EQ(ran.status, 0) << ran.err;
  EXPECT_TRUE(has(ran.out, "2 documents")) << ran.out;
}

}  // namespace
