// Which tokenizer is meant, how it cuts a text, and which of its tokens ends one.
#include "tokenizer_flags.h"

#include <algorithm>

#include "error.h"
#include "files.h"
#include "json.h"
#include "program.h"
#include "tokenizer_kind.h"

namespace {

std::string quoted(std::string_view token) { return "`" + visible(std::string(token)) + "`"; }

// A tokenizer's special tokens, for a sentence.
std::string names_of_specials(const Tokenizer& tokenizer) {
  constexpr size_t kShown = 12;
  const std::vector<Tokenizer::Special>& specials = tokenizer.specials();
  std::string names;
  for (size_t i = 0; i < std::min(specials.size(), kShown); ++i)
    names += (i > 0 ? ", " : "") + quoted(specials[i].text);
  if (specials.size() > kShown) names += text(" and %zu more", specials.size() - kShown);
  return names.empty() ? "it has none" : "they are " + names;
}

// The id of a special token; −1: it is none.
int special_named(const Tokenizer& tokenizer, const std::string& name) {
  for (const Tokenizer::Special& special : tokenizer.specials())
    if (special.text == name) return special.id;
  return -1;
}

[[noreturn]] void fail_with_no_special(const Tokenizer& tokenizer, const std::string& end_token,
                                       const std::string& name) {
  fail("--end-token %s: %s has no such special token; %s", visible(end_token).c_str(), name.c_str(),
       names_of_specials(tokenizer).c_str());
}

void require_pattern(const Tokenizer& tokenizer, const std::string& pattern, const std::string& name) {
  if (!pattern.empty() && tokenizer.pattern() != pattern_named(pattern))
    fail("--pattern %s: %s has the pattern %s, not %s; leave the flag out", pattern.c_str(), name.c_str(),
         name_of(tokenizer.pattern()), pattern.c_str());
}

// What a tokenizer_config.json beside a tokenizer calls the end of a text; empty: nothing.
std::string eos_token_beside(const std::string& tokenizer) {
  size_t slash = tokenizer.rfind('/');
  std::string folder = folder_exists(tokenizer) ? tokenizer + "/" : tokenizer.substr(0, slash + 1);  // npos + 1 = 0
  std::string path = folder + "tokenizer_config.json";
  if (tokenizer == "bytes" || !file_exists(path)) return "";
  Json config = read_beside_tokenizer(path);
  const Json* token = config.find("eos_token");
  if (!token || token->kind == Json::Kind::null) return "";
  if (const Json* content = token->find("content")) token = content;
  if (token->kind != Json::Kind::string)
    fail("%s: `eos_token` should be a string, or an object with a string `content`", path.c_str());
  return token->string;
}

}  // namespace

void TokenizerFlags::add(Flags& f, const std::string& help, const std::string& pattern_help) {
  std::vector<std::string> words = pattern_names();
  words.insert(words.begin(), "");
  const char* of_ranks = "how a tiktoken file that is not known cuts text";
  f.add("tokenizer", &path, help);
  f.choice("pattern", &pattern, words, pattern_help.empty() ? of_ranks : pattern_help + ", or " + of_ranks);
  f.add("end-token", &end_token,
        "the special token, by its text, that ends a text; empty: as its tokenizer_config.json or its name tells");
}

std::string TokenizerFlags::words() const {
  std::string words;
  for (auto [name, value] : {std::pair{"tokenizer", &path}, {"pattern", &pattern}, {"end-token", &end_token}})
    if (!value->empty()) words += text(" --%s %s", name, shell_word(*value).c_str());
  return words;
}

Tokenizer TokenizerFlags::load() const {
  if (path.empty()) fail("give the tokenizer: --tokenizer FILE (or bytes)");
  Tokenizer tokenizer = Tokenizer::load(path, pattern, end_token);
  require_pattern(tokenizer, pattern, path);
  if (end_token.empty()) return tokenizer;
  int end = special_named(tokenizer, end_token);
  if (end < 0) fail_with_no_special(tokenizer, end_token, path);
  return tokenizer.ending_with(end);
}

Tokenizer TokenizerFlags::load_for_documents() const {
  Tokenizer tokenizer = load();
  std::string eos = end_token.empty() ? eos_token_beside(path) : "";
  if (eos.empty()) return tokenizer;
  int end = special_named(tokenizer, eos);
  if (end < 0)
    fail(
        "%s: the tokenizer_config.json beside it ends a text by %s, which is no special token of it; say with "
        "--end-token which does: %s",
        path.c_str(), quoted(eos).c_str(), names_of_specials(tokenizer).c_str());
  return tokenizer.ending_with(end);
}

TokenizerFlags TokenizerFlags::in_folder(const std::string& folder) const {
  TokenizerFlags here = *this;
  std::string path = folder + "/data.json";
  if (!file_exists(path)) return here;
  Json json = parse_json(read_file(path), path);
  const Json* options = json.find("options");
  const Json* recorded = options ? options->find("end-token") : nullptr;
  if (!recorded || recorded->kind != Json::Kind::string) return here;  // from before it was recorded
  if (!end_token.empty() && end_token != recorded->string)
    fail("--end-token %s: the texts in %s end by %s (%s)", visible(end_token).c_str(), folder.c_str(),
         quoted(recorded->string).c_str(), path.c_str());
  here.end_token = recorded->string;
  return here;
}

void TokenizerFlags::require(const Tokenizer& tokenizer, const std::string& name) const {
  require_pattern(tokenizer, pattern, name);
  if (end_token.empty()) return;
  int end = special_named(tokenizer, end_token);
  if (end < 0) fail_with_no_special(tokenizer, end_token, name);
  if (end != tokenizer.end_of_text())
    fail("--end-token %s: %s ends a text by %s", visible(end_token).c_str(), name.c_str(),
         quoted(tokenizer.bytes_of(tokenizer.end_of_text())).c_str());
}

void TokenizerFlags::require_nothing(const std::string& name) const {
  const char* flag = !pattern.empty() ? "pattern" : !end_token.empty() ? "end-token" : nullptr;
  if (flag) fail("--%s: %s has no tokenizer of which it could be said; give one with --tokenizer", flag, name.c_str());
}

void require_end_of_text(const Tokenizer& tokenizer, const std::string& name) {
  if (tokenizer.end_of_text() >= 0) return;
  if (tokenizer.specials().empty())
    fail(
        "%s has no special token, so that none could end a text: take a tokenizer with one (to tiktoken's ranks "
        "--end-token NAME adds one)",
        name.c_str());
  fail("%s: which of its special tokens ends a text is not known; say so with --end-token: %s", name.c_str(),
       names_of_specials(tokenizer).c_str());
}
