// Hugging Face's tokenizer.json, read and written.
#include <algorithm>

#include "byte_characters.h"
#include "error.h"
#include "json.h"
#include "tokenizer_reader.h"

namespace {

using Tables = Tokenizer::Tables;

bool is_null(const Json* json) { return !json || json->kind == Json::Kind::null; }

std::string type_of(const Json& json, const std::string& path) { return json.get_string("type", path); }

// Refuses a member that is there and is neither null nor false nor empty nor 0.
void refuse(const Json& object, const char* name, const std::string& where) {
  const Json* member = object.find(name);
  bool plain = is_null(member) || (member->kind == Json::Kind::boolean && !member->boolean) ||
               (member->kind == Json::Kind::string && member->string.empty()) ||
               (member->kind == Json::Kind::number && member->number == 0);
  if (!plain) fail("%s: `%s` is not supported", where.c_str(), name);
}

// A ByteLevel pre-tokenizer: does it cut by GPT-2's pattern?
bool cuts_as_gpt2(const Json& step, const std::string& path) {
  refuse(step, "add_prefix_space", path + ": pre-tokenizer ByteLevel");
  const Json* cuts = step.find("use_regex");
  return !cuts || cuts->kind != Json::Kind::boolean || cuts->boolean;
}

Pattern pattern_of_split(const Json& step, const std::string& path) {
  std::string where = path + ": pre-tokenizer Split";
  std::string behavior = step.get_string("behavior", where);
  const Json* invert = step.find("invert");
  bool inverted = invert && invert->kind == Json::Kind::boolean && invert->boolean;
  // The patterns match all of a text, so that there is nothing between the matches to remove or to keep.
  if (!(behavior == "Isolated" && !inverted) && !(behavior == "Removed" && inverted))
    fail("%s: behavior `%s`%s is not supported", where.c_str(), behavior.c_str(), inverted ? ", inverted," : "");
  const Json* regex = step.get("pattern", where).find("Regex");
  Pattern pattern;
  if (!regex || regex->kind != Json::Kind::string) fail("%s: its pattern should be a Regex", where.c_str());
  if (!pattern_of_regex(regex->string, &pattern))
    fail("%s: unknown pattern `%s`", where.c_str(), regex->string.c_str());
  return pattern;
}

Pattern read_pre_tokenizer(const Json& root, const std::string& path) {
  const Json* pre = root.find("pre_tokenizer");
  if (is_null(pre)) fail("%s: no pre-tokenizer; a byte-level one is expected", path.c_str());
  std::vector<Json> steps = {*pre};
  if (type_of(*pre, path) == "Sequence") steps = pre->get("pretokenizers", path).items;
  bool byte_level = false;
  Pattern pattern = Pattern::none;
  for (const Json& step : steps) {
    std::string type = type_of(step, path);
    if (type != "ByteLevel" && type != "Split")
      fail("%s: pre-tokenizer `%s` is not supported", path.c_str(), type.c_str());
    if (byte_level) fail("%s: a pre-tokenizer after ByteLevel is not supported", path.c_str());
    Pattern cut = type == "Split" ? pattern_of_split(step, path) : Pattern::none;
    if (type == "ByteLevel") {
      byte_level = true;
      if (cuts_as_gpt2(step, path)) cut = Pattern::gpt2;
    }
    if (cut == Pattern::none) continue;
    if (pattern != Pattern::none) fail("%s: two patterns in a row are not supported", path.c_str());
    pattern = cut;
  }
  if (!byte_level) fail("%s: no ByteLevel pre-tokenizer: this is not a byte-level tokenizer", path.c_str());
  return pattern;
}

bool is_nfc(const Json& normalizer, const std::string& path) {
  std::string type = type_of(normalizer, path);
  if (type == "NFC") return true;
  if (type != "Sequence") fail("%s: normalizer `%s` is not supported; NFC is", path.c_str(), type.c_str());
  const std::vector<Json>& steps = normalizer.get("normalizers", path).items;
  return std::count_if(steps.begin(), steps.end(), [&](const Json& step) { return is_nfc(step, path); }) > 0;
}

void read_added(TokenizerReader* reader, const Json& root, const std::string& path) {
  const Json* added = root.find("added_tokens");
  if (is_null(added)) return;
  for (const Json& token : added->items) reader->add_added(token, token.get_int("id", path), path);
}

void read_merges(TokenizerReader* reader, const Json& merges, const std::string& path) {
  size_t number = 0;
  for (const Json& merge : merges.items) {
    std::string where = path + ": merge " + std::to_string(++number);
    if (merge.kind == Json::Kind::string) {
      auto [left, right] = two_words(merge.string, where);
      reader->add_merge(left, right, where);
    } else if (merge.items.size() == 2 && merge.items[0].kind == Json::Kind::string &&
               merge.items[1].kind == Json::Kind::string) {
      reader->add_merge(merge.items[0].string, merge.items[1].string, where);
    } else {
      fail("%s should be two tokens", where.c_str());
    }
  }
}

Json byte_level(bool cuts) {
  return Json::object(
      {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", cuts}});
}

Json pre_tokenizer_json(Pattern pattern) {
  if (pattern == Pattern::none || pattern == Pattern::gpt2) return byte_level(pattern == Pattern::gpt2);
  Json split = Json::object({{"type", "Split"},
                             {"pattern", Json::object({{"Regex", regex_of(pattern)}})},
                             {"behavior", "Isolated"},
                             {"invert", false}});
  return Json::object({{"type", "Sequence"}, {"pretokenizers", Json::array({split, byte_level(false)})}});
}

// Hugging Face's library gives an added token that is no name in the vocabulary the next id behind the vocabulary's size,
// whatever the file says. Where that is another one, the vocabulary has to name the token; unless its text, being a
// piece, would then be taken for it wherever it stands.
std::vector<bool> named_ids(const Tables& t) {
  std::vector<bool> named(t.vocabulary.size());
  for (int id = 0; id < t.vocabulary.size(); ++id) named[id] = t.entries[id] != Entry::none;
  int next = int(std::count(named.begin(), named.end(), true));
  bool numbered_alike = std::all_of(t.added.begin(), t.added.end(),
                                    [&](const AddedToken& token) { return named[token.id] || token.id == next++; });
  for (const AddedToken& token : t.added)
    if (!numbered_alike && !(t.whole_first && t.is_piece(token.text))) named[token.id] = true;
  return named;
}

std::vector<std::string> names_of_ids(const Tables& t) {
  std::vector<std::string> names(t.vocabulary.size());
  for (int id = 0; id < t.vocabulary.size(); ++id) {
    std::string_view bytes = t.vocabulary.bytes(id);
    names[id] = t.entries[id] == Entry::bytes ? to_characters(bytes) : bytes;
  }
  for (const AddedToken& token : t.added) names[token.id] = token.text;
  return names;
}

Json added_json(const Tables& t) {
  Json added = Json::array();
  for (const AddedToken& token : t.added)
    added.items.push_back(Json::object({{"id", token.id},
                                        {"content", token.text},
                                        {"single_word", token.single_word},
                                        {"lstrip", token.lstrip},
                                        {"rstrip", token.rstrip},
                                        {"normalized", token.normalized},
                                        {"special", token.special}}));
  return added;
}

}  // namespace

std::shared_ptr<const Tables> read_tokenizer_json(const Json& root, const std::string& path) {
  TokenizerReader reader(path);
  if (const Json* normalizer = root.find("normalizer"); !is_null(normalizer))
    reader.tables->nfc = is_nfc(*normalizer, path);
  const Json& model = root.get("model", path);
  const Json* type = model.find("type");
  if (type && !(type->kind == Json::Kind::string && type->string == "BPE"))
    fail("%s: model `%s` is not supported: it should be BPE", path.c_str(), type->string.c_str());
  for (const char* name : {"dropout", "continuing_subword_prefix", "end_of_word_suffix", "byte_fallback"})
    refuse(model, name, path + ": model");
  reader.tables->pattern = read_pre_tokenizer(root, path);
  if (const Json* whole = model.find("ignore_merges")) reader.tables->whole_first = whole->boolean;
  reader.add_named(model.get("vocab", path));
  read_added(&reader, root, path);
  read_merges(&reader, model.get("merges", path), path);
  return reader.finish_named();
}

std::string Tokenizer::to_json() const {
  const Tables& t = *tables_;
  std::vector<std::string> names = names_of_ids(t);
  std::vector<bool> named = named_ids(t);
  Json vocabulary = Json::object(), merges = Json::array();
  for (int id = 0; id < vocab(); ++id)
    if (named[id]) vocabulary.members.emplace_back(names[id], id);
  for (const MergeRule& rule : t.rules) merges.items.push_back(Json::array({names[rule.left], names[rule.right]}));
  return write_json(Json::object({{"version", "1.0"},
                                  {"truncation", Json()},
                                  {"padding", Json()},
                                  {"added_tokens", added_json(t)},
                                  {"normalizer", t.nfc ? Json::object({{"type", "NFC"}}) : Json()},
                                  {"pre_tokenizer", pre_tokenizer_json(t.pattern)},
                                  {"post_processor", Json()},
                                  {"decoder", byte_level(true)},
                                  {"model", Json::object({{"type", "BPE"},
                                                          {"dropout", Json()},
                                                          {"unk_token", Json()},
                                                          {"continuing_subword_prefix", Json()},
                                                          {"end_of_word_suffix", Json()},
                                                          {"fuse_unk", false},
                                                          {"byte_fallback", false},
                                                          {"ignore_merges", t.whole_first},
                                                          {"vocab", vocabulary},
                                                          {"merges", merges}})}}));
}
