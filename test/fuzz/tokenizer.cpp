// Texts cut into pieces, encoded, decoded and streamed; ids decoded; tokenizers trained.
#include "tokenizer.h"

#include <cstring>

#include "bpe.h"
#include "fuzz.h"
#include "targets.h"
#include "utf8.h"

namespace {

constexpr int kPatterns = int(Pattern::o200k) + 1;

Tokenizer train(Pattern pattern, std::string_view text, int vocab) {
  PieceCounts counts(pattern);
  counts.add(text);
  return train_bpe(counts, vocab, {"<|endoftext|>", "<s>", "<s><s>"});
}

const Tokenizer& trained(Pattern pattern) {
  static const std::string text =
      "The quick brown fox's 12345 jumps;\n\n  it's THE End'll he said:\r\n\tété 語語 語 naïve NAÏVE 𝄞𝄞   the the\n";
  static const std::vector<Tokenizer> tokenizers = [] {
    std::vector<Tokenizer> made;
    for (int p = 0; p < kPatterns; ++p) made.push_back(train(Pattern(p), text + text, 400));
    return made;
  }();
  return tokenizers[size_t(pattern)];
}

void require_pieces(Pattern pattern, std::string_view text) {
  for (size_t at = 0, end; at < text.size(); at = end) {
    end = piece_end(pattern, text, at);
    require(end > at && end <= text.size(), "pieces cover a text");
    require(piece_end(pattern, text.substr(at), 0) == end - at, "a piece depends on nothing before it");
  }
}

void require_lossless(const Tokenizer& t, const std::string& text) {
  std::vector<int> tokens = t.encode(text), again, allowed = t.encode(text, true);
  require(t.decode(tokens) == text, "decoding gives the text back");
  Encoder encoder(t);
  encoder.encode(text, &again), encoder.encode(text, &again);
  tokens.insert(tokens.end(), tokens.begin(), tokens.end());
  require(again == tokens, "an encoder remembers right");
  std::string bytes;
  for (int token : allowed) bytes += t.bytes_of(token);
  require(bytes == text, "specials are their text");
}

void require_streams(std::string_view text, size_t step) {
  Utf8Stream stream;
  std::string out;
  bool valid = is_utf8(text);
  for (size_t at = 0; at < text.size(); at += step) {
    std::string shown = stream.push(text.substr(at, step));
    require(!valid || is_utf8(shown), "a stream shows whole characters");
    size_t border = character_border(text, at);
    require(border <= at && at - border < 4, "a character's border is near");
    out += shown;
  }
  require(out + stream.flush() == text, "a stream loses no byte");
}

}  // namespace

void fuzz_encode(std::string_view bytes) {
  Pattern pattern = Pattern(take_choice(&bytes, kPatterns));
  require_pieces(pattern, bytes);
  require_streams(bytes, 1 + size_t(bytes.size() % 5));
  require_lossless(trained(pattern), std::string(bytes));
}

void fuzz_decode(std::string_view bytes) {
  const Tokenizer& t = trained(Pattern(take_choice(&bytes, kPatterns)));
  std::vector<int> ids(bytes.size() / sizeof(int));
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), ids.size() * sizeof(int));
  std::string text;
  for (int id : ids)
    if (!t.is_special(id)) text += t.bytes_of(id);
  require(t.decode(ids) == text, "any ids decode to their bytes");
}

void fuzz_train_bpe(std::string_view bytes) {
  Pattern pattern = Pattern(take_choice(&bytes, kPatterns));
  Tokenizer t = train(pattern, bytes, 300);
  require(t.vocab() <= 300, "a tokenizer has no more ids than it was asked for");
  require_lossless(t, std::string(bytes));
  require(Tokenizer::load(put_file("trained.json", t.to_json())).checksum() == t.checksum(), "it is loaded as written");
}
