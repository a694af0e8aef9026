// How a text is cut into pieces before byte pairs are merged, so that no token spans two of them: the patterns of GPT-2,
// cl100k, o200k and their relatives, each a hand-written automaton over Unicode properties. A piece's end depends on the
// text from its beginning on alone; bytes that are not UTF-8 are characters of their own, which are neither letters,
// numbers nor spaces. Cutting a text takes time linear in its size.
//
// The pieces are those of tiktoken 0.14.0 and of Hugging Face's tokenizers 0.23.3, which agree where they are given the
// same pattern: both have Unicode 16.0, and take ſ (U+017F) for an s where case is ignored. Only \p{N}{1,3}+, in
// tiktoken's spelling of cl100k, means something else to tokenizers: any number of digits. So that spelling is unknown
// here, and regex_of(cl100k) has \p{N}{1,3}, which means the same to both.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

enum class Pattern {
  none,    // the whole text is one piece
  gpt2,    // GPT-2, r50k, p50k: words, numbers and signs, each with a space before it
  cl100k,  // tiktoken's cl100k since 0.8: llama3, but spaces at a text's end are one piece, though a line ends in them
  llama3,  // words with one sign before them, numbers of at most three digits, signs with line ends; what Hugging Face
           // has for cl100k, and tiktoken had before 0.8
  qwen2,   // llama3 with single digits
  o200k,   // words end where capitals begin; a mark is part of a word
};
const char* name_of(Pattern);
std::vector<std::string> pattern_names();                   // of all but none
Pattern pattern_named(const std::string& name);             // fails with the names there are
const char* regex_of(Pattern);                              // for tokenizer.json; null for none
bool pattern_of_regex(const std::string& regex, Pattern*);  // false where the pattern is unknown

// The end of the piece that begins at `at` < text.size().
size_t piece_end(Pattern, std::string_view text, size_t at);

// The same for a loop over many pieces.
using PieceEnd = size_t (*)(std::string_view text, size_t at);
PieceEnd piece_end_of(Pattern);
