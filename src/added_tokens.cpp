#include "added_tokens.h"

#include <algorithm>

#include "unicode.h"

namespace {

unsigned char byte_of(const AddedToken& token, size_t i) { return static_cast<unsigned char>(token.text[i]); }

bool is_space(Character c) { return c.kind & (kSpace | kLineEnd); }

size_t skip_spaces(std::string_view text, size_t at) {
  for (Character next; is_space(next = character_at(text, at));) at += next.length;
  return at;
}

// The same from right to left, not beyond `least`.
size_t skip_spaces_back(std::string_view text, size_t at, size_t least) {
  while (at > least && is_space(character_at(text, last_character(text, at)))) at = last_character(text, at);
  return at;
}

bool in_word(std::string_view text, size_t begin, size_t end) {
  return (begin > 0 && is_word_at(text, last_character(text, begin))) || is_word_at(text, end);
}

}  // namespace

AddedTokens::AddedTokens(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  std::sort(tokens_.begin(), tokens_.end(), [](const auto& a, const auto& b) { return a.text < b.text; });
  for (int byte = 0, i = 0; byte < 256; ++byte) {
    begin_[byte] = i;
    while (i < int(tokens_.size()) && byte_of(tokens_[i], 0) == byte) ++i;
    begin_[byte + 1] = i;
  }
  all_special_ = std::all_of(tokens_.begin(), tokens_.end(), [](const AddedToken& t) { return t.special; });
}

// Looks from *at on and leaves *at where the token begins; null where there is none.
const AddedToken* AddedTokens::find(std::string_view text, size_t* at) const {
  for (; *at < text.size(); ++*at) {
    int byte = static_cast<unsigned char>(text[*at]);
    auto begin = tokens_.begin() + begin_[byte], end = tokens_.begin() + begin_[byte + 1];
    const AddedToken* longest = nullptr;
    for (size_t n = 1; begin != end; ++n) {  // those whose first n bytes stand here; the shortest is the first
      if (begin->text.size() == n) longest = &*begin++;
      if (*at + n == text.size()) break;
      unsigned char next = text[*at + n];
      begin = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_of(t, n) < next; });
      end = std::partition_point(begin, end, [&](const AddedToken& t) { return byte_of(t, n) == next; });
    }
    if (longest) return longest;
  }
  return nullptr;
}

// The spaces that a token takes may hold other tokens, which are found all the same, and what is behind them is then
// divided again, as in Hugging Face's library; only one that would begin behind its end is none.
void AddedTokens::divide(std::string_view text, bool specials_allowed,
                         const std::function<void(std::string_view)>& plain,
                         const std::function<void(const AddedToken&)>& found) const {
  if (text.empty()) return;
  if (all_special_ && !specials_allowed) return plain(text);
  struct {
    size_t begin = 0, end = 0;
  } spaces;  // that were skipped last: a token of spaces that takes those behind it would skip them again and again
  size_t at = 0, done = 0;
  while (const AddedToken* token = find(text, &at)) {
    size_t begin = at, end = at += token->text.size();
    if (token->special && !specials_allowed) continue;
    if (token->single_word && in_word(text, begin, end)) continue;
    if (token->lstrip) begin = std::max(skip_spaces_back(text, begin, done), done);
    if (token->rstrip) {
      if (end < spaces.begin || end > spaces.end) spaces = {end, skip_spaces(text, end)};
      end = spaces.end;
    }
    if (done < begin) plain(text.substr(done, begin - done));
    if (begin < end) found(*token);
    done = end;
  }
  if (done < text.size()) plain(text.substr(done));
}
