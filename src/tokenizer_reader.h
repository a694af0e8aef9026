// What the files of tokenizers have in common: tokens by id and by name, added tokens, and merges of named tokens, all
// checked while they are read.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "json.h"
#include "tokenizer_tables.h"

class TokenizerReader {
 public:
  explicit TokenizerReader(const std::string& path) : path_(path) {}
  const std::shared_ptr<Tokenizer::Tables> tables = std::make_shared<Tokenizer::Tables>();

  // A token of the vocabulary that merges work on, by its bytes; or by its name, which is characters that stand for
  // bytes. With any other character a name stands for itself, as in Hugging Face's decoder.
  void add_bytes(int64_t id, std::string bytes, const std::string& where);
  void add_named(const Json& vocabulary);   // an object of names and ids
  int find(const std::string& name) const;  // −1: no token has this name

  // The merge of two named tokens; its rank is the number of those before it.
  void add_merge(const std::string& left, const std::string& right, const std::string& where);

  // A token whose text is a name in the vocabulary is the token of that name, and has its id.
  void add_added(const AddedToken& token, int64_t id);
  void add_added(const Json& token, int64_t id, const std::string& where);  // as Hugging Face's files have it
  bool is_added(const std::string& text) const { return added_.count(text) > 0; }

  // Finds the token of each byte by find(byte); fails where one has none.
  template <class Find>
  void find_bytes(Find find) {
    std::string lacking;
    for (int byte = 0; byte < 256; ++byte) {
      char c = char(byte);
      tables->byte_token[byte] = find(std::string_view(&c, 1));
      if (tables->byte_token[byte] < 0) lacking += c;
    }
    require_bytes(lacking);
  }

  // Ids in between may be missing, as those of tiktoken's specials are; but a few tokens with one far away are no
  // vocabulary, and would take its memory.
  void fill_vocabulary();
  std::shared_ptr<const Tokenizer::Tables> finish_named();  // all of a vocabulary that was named

 private:
  struct Token {
    std::string bytes;
    Entry entry;
  };
  static std::string name_of(const Token&);
  void add(int64_t id, Token token, const std::string& where);
  int merged(const std::string& name, const std::string& where) const;
  void require_bytes(const std::string& lacking) const;
  void settle_added_bytes();

  std::string path_;
  std::map<int, Token> by_id_;
  std::unordered_map<std::string, int> by_name_;
  std::unordered_set<std::string> added_;  // texts
  std::unordered_set<uint64_t> merges_;    // left, right
};

// "a b" → a and b.
std::pair<std::string, std::string> two_words(std::string_view line, const std::string& where);

std::shared_ptr<const Tokenizer::Tables> read_tokenizer_json(const Json& root, const std::string& path);
