// Tokenizers as others write them. Few mutations of a file with 256 bytes' tokens keep them all: in the corpora
// "$BYTES" stands for these.
#include <algorithm>
#include <set>

#include "fuzz.h"
#include "json.h"
#include "program.h"
#include "targets.h"
#include "tokenizer.h"

namespace {

std::string all_bytes() {
  std::string bytes;
  for (int byte = 0; byte < 256; ++byte) bytes += char(byte);
  return bytes;
}

// "!": 33, …, in the characters that GPT-2 has for bytes.
std::string byte_vocabulary() {
  const Json vocabulary = parse_json(Tokenizer().to_json(), "bytes").get("model", "").get("vocab", "");
  std::string object = write_json(vocabulary);
  return object.substr(1, object.size() - 2);
}

std::string byte_ranks() {
  constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string lines;
  for (int byte = 0; byte < 256; ++byte) lines += text("%c%c== %d\n", digits[byte >> 2], digits[(byte & 3) << 4], byte);
  return lines;
}

bool decodes_to(const Tokenizer& t, const std::vector<int>& tokens, const std::string& text) {
  std::string bytes;
  for (int token : tokens) bytes += t.bytes_of(token);
  return bytes == text;
}

// Does decoding give any text back? Not where text is normalized, or an added token takes spaces with it, or is one of
// the vocabulary's own that bytes may become.
bool is_lossless(const Tokenizer& t) {
  Json root = parse_json(t.to_json(), "again");
  const Json& model = root.get("model", "");
  if (root.get("normalizer", "").kind != Json::Kind::null) return false;
  std::set<std::string> merged;
  for (const Json& merge : model.get("merges", "").items) merged.insert(merge.items[0].string + merge.items[1].string);
  for (const Json& token : root.get("added_tokens", "").items) {
    std::string name = token.get_string("content", "");
    bool may_merge = model.get_bool("ignore_merges", "") || merged.count(name) || name.size() <= 2;
    if (token.get_bool("lstrip", "") || token.get_bool("rstrip", "")) return false;
    if (may_merge && model.get("vocab", "").find(name)) return false;
  }
  return true;
}

void require_lossless(const Tokenizer& t, const std::string& text) {
  std::vector<int> tokens = t.encode(text), allowed = t.encode(text, true);
  for (int token : tokens) require(token >= 0 && token < t.vocab(), "ids are below the vocabulary's size");
  require(std::none_of(tokens.begin(), tokens.end(), [&](int id) { return t.is_special(id); }), "text has no specials");
  require(t.decode(tokens) == text, "decoding gives the text back");
  require(decodes_to(t, allowed, text), "and with specials allowed, too");
}

void require_rewritable(const Tokenizer& t, const std::string& text) {
  Tokenizer again = Tokenizer::load(put_file("again.json", t.to_json()));
  require(again.checksum() == t.checksum(), "a tokenizer is loaded as it was written");
  require(again.vocab() == t.vocab() && again.end_of_text() == t.end_of_text(), "with its ids");
  require(again.encode(text) == t.encode(text), "and encodes identically");
  require(again.encode(text, true) == t.encode(text, true), "with specials allowed, too");
}

void fuzz_file(const std::string& path, std::string_view bytes, const std::string& pattern = "") {
  static const std::string sample =
      "Hello, world's 12345 words:\r\n\t tokéns 語語 <|endoftext|> ab aab  abc\n" + all_bytes();
  Tokenizer t;
  if (!accepts([&] { t = Tokenizer::load(path, pattern); })) return;
  std::string text(bytes.substr(0, 2000));
  if (is_lossless(t)) {
    require_lossless(t, sample);
    require_lossless(t, text);
  }
  require_rewritable(t, sample + text);
}

}  // namespace

void fuzz_tokenizer_json(std::string_view bytes) {
  static const std::string vocabulary = byte_vocabulary();
  fuzz_file(put_file("tokenizer.json", replaced(bytes, "$BYTES", vocabulary)), bytes);
}

void fuzz_ranks(std::string_view bytes) {
  static const std::string ranks = byte_ranks();
  const char* patterns[] = {"gpt2", "cl100k", "llama3", "qwen2", "o200k", "", "none"};
  const char* pattern = patterns[take_choice(&bytes, std::size(patterns))];
  fuzz_file(put_file("x.tiktoken", replaced(bytes, "$BYTES", ranks)), bytes, pattern);
}

// encoder.json, and from "#version" on vocab.bpe.
void fuzz_gpt2(std::string_view bytes) {
  static const std::string vocabulary = byte_vocabulary();
  size_t merges = std::min(bytes.find("#version"), bytes.size());
  put_file("encoder.json", replaced(bytes.substr(0, merges), "$BYTES", vocabulary));
  fuzz_file(put_file("vocab.bpe", bytes.substr(merges)), bytes);
}
