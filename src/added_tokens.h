// Texts that are tokens of their own, found in a text before it is cut into pieces, as Hugging Face's tokenizers 0.23
// finds them: the leftmost, and of those the longest; then their flags say whether that place counts, and how many
// spaces around it belong to it. A place that does not count is text, in which no shorter token is looked for.
#pragma once
#include <functional>
#include <string>
#include <string_view>
#include <vector>

struct AddedToken {
  std::string text;
  int id;
  bool special = false;      // counts only where specials are allowed; decoding leaves it out
  bool normalized = false;   // is looked for after the others, in the parts between them, when these are normalized
  bool lstrip = false;       // with the spaces before it
  bool rstrip = false;       // with the spaces behind it
  bool single_word = false;  // counts only where no character of a word (\w) stands next to it
};

class AddedTokens {
 public:
  AddedTokens() = default;
  explicit AddedTokens(std::vector<AddedToken> tokens);  // no two of the same text
  // Divides a text: found(token) and plain(text) are called from left to right. Time is linear in the text, times the
  // longest token's length at worst.
  void divide(std::string_view text, bool specials_allowed, const std::function<void(std::string_view)>& plain,
              const std::function<void(const AddedToken&)>& found) const;

 private:
  const AddedToken* find(std::string_view text, size_t* at) const;
  std::vector<AddedToken> tokens_;  // sorted by text
  int begin_[257] = {};             // of the tokens that begin with a byte
  bool all_special_ = true;
};
