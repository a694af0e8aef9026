// Which tokenizer is meant, how it cuts a text, and which of its tokens ends one: the flags of every program that takes
// a tokenizer.
#pragma once
#include <string>

#include "flags.h"
#include "tokenizer.h"

struct TokenizerFlags {
  std::string path, pattern, end_token;  // --tokenizer, --pattern, --end-token; empty where it is not given

  // `help` is --tokenizer's. `pattern_help` says what --pattern is for where it is more than files of ranks.
  void add(Flags&, const std::string& help, const std::string& pattern_help = "");

  std::string words() const;  // those that were given, as a command has them: " --tokenizer t.json --pattern gpt2"

  // The tokenizer of `path`. Its end of text is the special token that --end-token names, else the one of a known name,
  // else none; of ranks that are not known it is a token behind them. Fails where there is no such file, pattern or token.
  Tokenizer load() const;
  // The same for texts that have to end: without --end-token, the eos_token of a tokenizer_config.json beside the file
  // comes before known names. There may be none still.
  Tokenizer load_for_documents() const;

  // These flags for a folder of token files, whose data.json says what ends its texts; fails where another is given.
  TokenizerFlags in_folder(const std::string& folder) const;
  // Fails where a tokenizer that comes from elsewhere, and is called `name`, is another than these flags say.
  void require(const Tokenizer&, const std::string& name) const;
  // Fails where something is said of a tokenizer, but `name` has none.
  void require_nothing(const std::string& name) const;
};

// Fails where nothing ends a text, naming the special tokens that could.
void require_end_of_text(const Tokenizer&, const std::string& name);
