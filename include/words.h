// The words for an enum's values, in flags, in files and in messages: one table for each enum, beside it.
//
//   template <>
//   struct WordTable<Pack> {
//     static constexpr const char* what = "a packing";  // in "a packing is documents or stream, not "x""
//     static constexpr Word<Pack> all[] = {{Pack::documents, "documents"}, {Pack::stream, "stream"}};  // as in --help
//   };
#pragma once
#include <string>
#include <vector>

#include "error.h"

template <class E>
struct Word {
  E value;
  const char* word;
};
template <class E>
struct WordTable;

template <class E>
concept HasWords = requires {
  WordTable<E>::all;
};

template <HasWords E>
const char* name_of(E value) {
  for (const Word<E>& w : WordTable<E>::all)
    if (w.value == value) return w.word;
  return "?";
}

template <HasWords E>
std::vector<std::string> words_of() {
  std::vector<std::string> words;
  for (const Word<E>& w : WordTable<E>::all) words.push_back(w.word);
  return words;
}

// Null where none has this name.
template <HasWords E>
const E* find_word(const std::string& word) {
  for (const Word<E>& w : WordTable<E>::all)
    if (word == w.word) return &w.value;
  return nullptr;
}

std::string join_or(const std::vector<std::string>& words);  // "a, b or c"

// Fails with the words there are.
template <HasWords E>
E value_named(const std::string& word) {
  if (const E* value = find_word<E>(word)) return *value;
  fail("%s is %s, not \"%s\"", WordTable<E>::what, join_or(words_of<E>()).c_str(), word.c_str());
}
