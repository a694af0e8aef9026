// Byte-level BPE: a text's bytes are tokens, and pairs of neighbours become one token, the pair of lowest rank first,
// within the pieces that a pattern cuts (pretokenizer.h). A vocabulary without merges is bytes as tokens. Encoding takes
// any bytes and decoding gives them back, unless a file asks for NFC or for added tokens that take spaces with them.
// Special tokens are ids beside the bytes' ones: end-of-text is a target at a document's end, and the prompt where a
// prompt is empty; special tokens in a text are text, unless they are allowed.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pretokenizer.h"

class Tokenizer {
 public:
  struct Merge {
    int left, right;
  };
  struct Special {
    std::string text;
    int id;
  };

  struct Tables;  // src/tokenizer_tables.h

  // Bytes, 0 … 255, and end-of-text, 256.
  Tokenizer();
  // Merges in order of rank; merge i makes token 256 + i, specials follow. What BPE training returns.
  Tokenizer(Pattern, const std::vector<Merge>&, const std::vector<std::string>& specials);
  // The one door for tokenizers' files, whose kind is told by what is in them (tokenizer_kind.h): Hugging Face's
  // tokenizer.json, which says how it cuts text; tiktoken's ranks; GPT-2's, where it is the folder or either file of
  // vocab.bpe and encoder.json, cut as the tokenizer_config.json beside them says, else as GPT-2 does. Ranks that are not
  // known have to be given the name of a pattern, and have the special token `end_token` behind them where one is given.
  // "bytes" is the tokenizer without merges. Fails by naming what is wrong, or what it does not know.
  static Tokenizer load(const std::string& path, const std::string& pattern = "", const std::string& end_token = "");
  // Ids whose text is not known: each is shown as <id>; there is no encoding.
  static Tokenizer ids_only(int vocab, int end_of_text);
  bool reads_text() const;
  // A tokenizer.json that Hugging Face's library loads and that encodes identically.
  std::string to_json() const;

  int vocab() const;  // ids are below it; some may stand for nothing
  // The token that ends a text: the one of ending_with, else the special of a known name, as <|endoftext|>; −1: none.
  int end_of_text() const;
  Tokenizer ending_with(int token) const;  // the same with another end of text
  Pattern pattern() const;
  const std::vector<Special>& specials() const;
  uint32_t checksum() const;  // of all that encoding depends on

  // A token's bytes; a special's are its text. Empty for ids that stand for nothing, and out of range.
  std::string_view bytes_of(int token) const;
  bool is_special(int token) const;

  std::vector<int> encode(std::string_view text, bool specials_allowed = false) const;
  std::string decode(const std::vector<int>& tokens) const;  // specials give nothing

 private:
  friend class Encoder;
  std::shared_ptr<const Tables> tables_;  // shared: a copy costs nothing
  std::optional<int> end_of_text_;        // where it is not the tables'
};

// Encodes much text fast: remembers how pieces were encoded. One a thread.
class Encoder {
 public:
  explicit Encoder(const Tokenizer&);
  ~Encoder();
  Encoder(const Encoder&) = delete;
  Encoder& operator=(const Encoder&) = delete;
  // Appends the text's tokens. Time grows as n log n at most, whatever the text. (A piece of more than 64 MiB, which no
  // space or sign divides, is encoded in parts of 64 MiB.)
  void encode(std::string_view text, std::vector<int>* tokens, bool specials_allowed = false);

 private:
  void encode_plain(std::string_view text, std::vector<int>* tokens);
  struct Memory;
  Tokenizer tokenizer_;
  std::unique_ptr<Memory> memory_;
};
