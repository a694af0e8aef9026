// What ./train and ./eval read: token files, a text file, or the built-in corpus; and the tokenizer of their tokens.
#include "training_data.h"

#include <algorithm>

#include "bpe.h"
#include "error.h"
#include "files.h"
#include "log.h"
#include "token_folder.h"

namespace {

constexpr int64_t kLooked = 10'000'000;  // tokens that are looked through for what is said about them

int64_t count_tokens(const std::vector<Tokens>& shards) {
  int64_t total = 0;
  for (const Tokens& shard : shards) total += shard.size();
  return total;
}

int64_t count_documents(const std::vector<Tokens>& shards, int end_of_text) {
  int64_t total = 0;
  for (const Tokens& shard : shards) total += Documents(shard, end_of_text).count();
  return total;
}

// --- Texts

// The tokenizer that is asked for, or a BPE trained on the text, cut by the pattern that is asked for or the usual one.
Tokenizer tokenizer_for(const DataOptions& o, Pattern usual, const std::vector<TextDocument>& documents) {
  bool chosen = o.of_model || !o.tokenizer.path.empty();
  Tokenizer tokenizer;  // bytes
  std::string name = o.of_model ? "the model's tokenizer" : chosen ? o.tokenizer.path : "the tokenizer that is trained";
  if (chosen) {
    tokenizer = o.of_model ? *o.of_model : o.tokenizer.load_for_documents();
  } else if (o.vocab > tokenizer.vocab()) {
    PieceCounts counts(o.tokenizer.pattern.empty() ? usual : pattern_named(o.tokenizer.pattern));
    for (const TextDocument& document : documents)
      for (const TextPart& part : document.parts) counts.add(part.text);
    tokenizer = train_bpe(counts, o.vocab);
  }
  o.tokenizer.require(tokenizer, name);
  require_end_of_text(tokenizer, name);
  return tokenizer;
}

uint32_t checksum_of(const std::vector<Tokens>& shards) {
  uint32_t crc = 0;
  for (const Tokens& shard : shards) {
    crc = crc32c(crc, shard.bytes(), shard.byte_size());
    if (shard.has_mask()) crc = crc32c(crc, shard.mask(), size_t(shard.size()));
  }
  return crc;
}

// `held_out`: what the documents for validation are; empty: their number says it.
void describe(TrainingData& data, const std::string& what, const std::string& held_out = "") {
  int end = data.vocabulary.end_of_text;
  double tokens = double(count_tokens(data.train)), documents = double(count_documents(data.train, end)), targets = 0;
  for (const Tokens& shard : data.train)
    for (int64_t i = 0; i < shard.size(); ++i) targets += shard[i] != end && shard.may_be_target(i);
  data.document_length = tokens / std::max(1.0, documents);
  data.description = {
      what + ": " + show_count(documents, "document"), show_count(tokens) + " tokens",
      text("%.0f %% of them targets", 100 * targets / std::max(1.0, tokens - documents)),
      "held out " +
          (held_out.empty() ? show_count(double(count_documents(data.validation, end)), "document") : held_out),
      show_count(double(count_tokens(data.validation))) + " tokens"};
  data.checksum = checksum_of(data.train), data.held_out_checksum = checksum_of(data.validation);
}

[[noreturn]] void refuse_folder(const std::string& folder) {
  if (names_shards(folder))
    fail("--data %s: it is a folder of token files; --format text is for one file of text, leave it out",
         folder.c_str());
  require_as_prepared(folder);  // its data.json may list some that are gone
  fail("--data %s: it is a folder without token files (*.bin), which ./tokenize data makes of text", folder.c_str());
}

TrainingData read_text_data(const DataOptions& o) {
  if (folder_exists(o.data)) refuse_folder(o.data);
  TrainingData data;
  DataOptions as_named = o;
  as_named.format.clear();
  if (o.format == "text" && names_corpus(as_named))
    fail("--data %s is the built-in corpus, and no file has that name: --format text is for a file, leave it out",
         o.data.c_str());
  TextFile file = read_text_file(o.data, o.format, o.data_flags);
  data.tokenizer = tokenizer_for(o, Pattern::llama3, file.train);
  data.vocabulary = vocabulary_of(data.tokenizer);
  TextSplit split = tokenize(file, data.tokenizer);
  data.train = {split.train}, data.validation = {split.validation};
  bool cut = !file.train[0].end_predictable;
  size_t documents = file.validation.size();
  describe(data, o.data,
           cut              ? "the last tenth of it"
           : documents == 1 ? "the last one"
                            : text("the last %zu", documents));
  return data;
}

// --- The built-in corpus

TrainingData make_corpus_data(const DataOptions& o) {
  constexpr int kTrainingDocuments = 1 << 16, kHeldOutDocuments = 2048;
  TrainingData data;
  TaskMix mix;
  try {
    mix = parse_task_mix(o.data);
  } catch (const Error& e) {
    if (folder_exists(o.data)) refuse_folder(o.data);
    fail("--data %s: there is no such file, and as a mix of the built-in corpus: %s", o.data.c_str(), e.what());
  }
  if (o.context < kShortestPuzzle)
    fail("rows of %d tokens (./train --seq) are too short: the built-in corpus needs at least %d tokens", o.context,
         kShortestPuzzle);
  std::vector<Puzzle> puzzles = make_puzzles(mix, Split::train, uint64_t(o.seed), kTrainingDocuments, o.context);
  data.puzzles = make_puzzles(mix, Split::validation, uint64_t(o.seed), kHeldOutDocuments, o.context);
  // Digits are tokens of their own: what a token is should not say what a sum is.
  data.tokenizer = tokenizer_for(o, Pattern::qwen2, as_documents(puzzles));
  data.vocabulary = vocabulary_of(data.tokenizer);
  data.train = {tokenize(as_documents(puzzles), data.tokenizer)};
  data.validation = {tokenize(as_documents(data.puzzles), data.tokenizer)};
  data.made = true;
  describe(data, text("built-in corpus (%s)", o.data.c_str()));
  return data;
}

// --- Token files

std::string folder_of(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// The tokenizer that is asked for, which has to be the one that lies beside the files where one does; where there is
// none, the ids are those that llm.c uses: GPT-2's in files of 16 bits, Llama 3's in those of 32.
Tokenizer tokenizer_of_files(const DataOptions& o, TokenizerFlags flags, const std::string& first, int bits) {
  std::string beside = folder_of(first) + "/tokenizer.json";
  bool is_beside = file_exists(beside), of_model = o.of_model && o.of_model->reads_text();
  bool chosen = of_model || !flags.path.empty();
  if (!chosen && !is_beside) {
    require_tokenizer_in(folder_of(first));
    flags.require_nothing(first);
    return bits == 16 ? Tokenizer::ids_only(50257, 50256) : Tokenizer::ids_only(128256, 128000);
  }
  if (!chosen) flags.path = beside;
  Tokenizer tokenizer = of_model ? *o.of_model : flags.load_for_documents();
  std::string name = of_model ? "the model's tokenizer" : flags.path;
  if (chosen && is_beside && Tokenizer::load(beside).checksum() != tokenizer.checksum())
    fail("%s is not the tokenizer of %s, which is %s", name.c_str(), first.c_str(), beside.c_str());
  require_tokenizer_of(folder_of(first), tokenizer, name);
  return tokenizer;
}

// What divides files into documents: the token that is said to (`said`), which has to be in them; else the special token
// with which they begin, as some vocabularies have one that begins a document; else the one that ends a text.
int divider(const Tokenizer& tokenizer, bool said, const std::vector<Tokens>& shards) {
  int end = tokenizer.end_of_text();
  auto shard = std::find_if(shards.begin(), shards.end(), [](const Tokens& shard) { return shard.size() > 0; });
  if (shard == shards.end() || !tokenizer.is_special((*shard)[0]) || (*shard)[0] == end) return end;
  if (!said) return (*shard)[0];
  int64_t looked = std::min(kLooked, shard->size());
  if (shard->part(0, looked).find(end) == looked)
    fail("%s begins with `%s`, and `%s`, which should end its texts (--end-token), is not among its first %s tokens",
         shard->name().c_str(), std::string(tokenizer.bytes_of((*shard)[0])).c_str(),
         std::string(tokenizer.bytes_of(end)).c_str(), show_count(double(looked)).c_str());
  return end;
}

// Gives the data the tokenizer of its files and what divides them; returns what is to be said of that, if anything is.
std::string take_tokenizer(TrainingData& data, const DataOptions& o, const std::string& first) {
  TokenizerFlags flags = o.tokenizer.in_folder(folder_of(first));
  Tokenizer tokenizer = tokenizer_of_files(o, flags, first, data.train[0].bits());
  std::string end_of_text(tokenizer.bytes_of(tokenizer.end_of_text()));
  bool said = !flags.end_token.empty();
  if (said && end_of_text != flags.end_token)
    fail("%s: its texts end by `%s`, but the model's by `%s`", first.c_str(), flags.end_token.c_str(),
         end_of_text.c_str());
  int end = divider(tokenizer, said, data.train);
  if (end < 0 && !tokenizer.specials().empty()) require_end_of_text(tokenizer, "the tokenizer of " + first);
  data.tokenizer = tokenizer.ending_with(end);
  data.vocabulary = vocabulary_of(data.tokenizer);
  if (end_of_text.empty() || end == tokenizer.end_of_text()) return "";
  return "divided by `" + std::string(tokenizer.bytes_of(end)) + "`, with which they begin";
}

std::string own_name(const Tokens& shard) { return shard.name().substr(shard.name().rfind('/') + 1); }  // npos + 1 = 0

// The names of files, of many the first ones.
std::vector<std::string> own_names(const std::vector<Tokens>& shards) {
  constexpr size_t kMost = 4;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kMost, shards.size()); ++i) names.push_back(own_name(shards[i]));
  if (shards.size() > kMost) names.push_back(text("and %zu more", shards.size() - kMost));
  return names;
}

// Where no file is for validation: the last tenth of the longest one, the last of equals, from the beginning of a
// document where one is near. Returns that file's name.
std::string hold_out(TrainingData& data) {
  auto shorter = [](const Tokens& a, const Tokens& b) { return a.size() < b.size(); };
  Tokens& cut_one = *std::max_element(data.train.rbegin(), data.train.rend(), shorter);
  Tokens whole = cut_one;
  int64_t cut = whole.size() - whole.size() / 10, border = whole.find(data.vocabulary.end_of_text, cut);
  if (border < whole.size() - whole.size() / 20) cut = border;
  cut_one = whole.part(0, cut);
  data.validation = {whole.part(cut, whole.size())};
  return own_name(whole);
}

// Of the documents in the first of the tokens.
double mean_document_length(const std::vector<Tokens>& shards, int end_of_text) {
  double tokens = 0, documents = 0;
  for (const Tokens& shard : shards) {
    if (tokens >= double(kLooked)) break;
    Tokens looked = shard.part(0, std::min(kLooked, shard.size()));
    tokens += double(looked.size()), documents += double(Documents(looked, end_of_text).count());
  }
  return tokens / std::max(1.0, documents);
}

uint32_t checksum_of_ends(const std::vector<Tokens>& shards) {
  constexpr size_t kBytes = 1 << 16;
  uint32_t crc = 0;
  auto add = [&](const void* bytes, size_t size) {
    size_t n = std::min(size, kBytes);
    crc = crc32c(crc, &size, sizeof size);
    crc = crc32c(crc, bytes, n);
    crc = crc32c(crc, static_cast<const char*>(bytes) + size - n, n);
  };
  for (const Tokens& shard : shards) {
    add(shard.bytes(), shard.byte_size());
    if (shard.has_mask()) add(shard.mask(), size_t(shard.size()));
  }
  return crc;
}

TrainingData map_token_files(const DataOptions& o) {
  TrainingData data;
  if (folder_exists(o.data)) require_as_prepared(o.data);
  ShardNames names = find_shards(o.data);
  if (names.train.empty())
    fail(
        "--data %s: all files are for validation, by the word val, valid or validation in their names; rename those to "
        "train on",
        o.data.c_str());
  for (const std::string& name : names.train) data.train.push_back(Tokens::map(name));
  for (const std::string& name : names.validation) data.validation.push_back(Tokens::map(name));
  for (const auto* shards : {&data.train, &data.validation})
    for (const Tokens& shard : *shards)
      if (shard.bits() != data.train[0].bits())
        fail("%s has %d bits a token, but %s has %d: they are of different tokenizers", shard.name().c_str(),
             shard.bits(), data.train[0].name().c_str(), data.train[0].bits());
  std::string divided = take_tokenizer(data, o, names.train[0]);
  std::vector<std::string> held_out = own_names(data.validation);
  if (count_tokens(data.validation) < 2) held_out = {"the last tenth of " + hold_out(data)};
  if (count_tokens(data.train) < 2 || count_tokens(data.validation) < 2)
    fail("--data %s is too small: %lld tokens to train on and %lld to validate with; each takes at least 2",
         o.data.c_str(), (long long)count_tokens(data.train), (long long)count_tokens(data.validation));

  data.document_length = mean_document_length(data.train, data.vocabulary.end_of_text);
  data.description = {
      o.data + ": " + show_count(double(data.train.size()), "file") + text(" of %d-bit tokens", data.train[0].bits()),
      show_count(double(count_tokens(data.train))) + " tokens",
      "about " + show_count(data.document_length) + " a document",
      "held out " + show_count(double(count_tokens(data.validation))) + " tokens: " + held_out[0]};
  data.description.insert(data.description.end(), held_out.begin() + 1, held_out.end());
  if (!divided.empty()) data.description.push_back(divided);
  data.checksum = checksum_of_ends(data.train), data.held_out_checksum = checksum_of_ends(data.validation);
  return data;
}

}  // namespace

static bool something_is_named(const std::string& data) {
  return file_exists(data) || (folder_exists(data) ? names_shards(data) : matches_shards(data));
}

bool names_token_files(const DataOptions& o) { return o.format != "text" && names_shards(o.data); }

bool names_corpus(const DataOptions& o) {
  const std::string& data = o.data;
  bool is_mix = data.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789=,.") == data.npos &&
                data.find(".txt") == data.npos && data[0] >= 'a' && data[0] <= 'z';
  return is_mix && o.format != "text" && !names_token_files(o) && !file_exists(data);
}

TrainingData read_training_data(const DataOptions& o) {
  if (o.data.empty()) fail("--data is empty; give token files, a text file, sums, all, or a mix like sums=8,cups=1");
  TrainingData data = names_token_files(o) ? map_token_files(o)
                      : names_corpus(o)    ? make_corpus_data(o)
                                           : read_text_data(o);
  if (!data.tokenizer.reads_text())
    data.description.push_back(text("no tokenizer beside them: ids only, taken for %s",
                                    data.tokenizer.vocab() == 50257 ? "GPT-2's" : "Llama 3's"));
  return data;
}

TrainingData read_recorded_data(const DataOptions& o, const std::string& checkpoint) {
  try {
    return read_training_data(o);
  } catch (const Error& e) {
    if (something_is_named(o.data)) throw;
    fail("%s (as %s has it: if the file has moved, say where to with --data)", e.what(), checkpoint.c_str());
  }
}

void require_vocabulary(const TrainingData& data, const ModelConfig& model, const std::string& checkpoint) {
  if (data.vocabulary.size > model.vocab)
    fail("%s: the model has a vocabulary of %d, but the data's tokenizer %d ids", checkpoint.c_str(), model.vocab,
         data.vocabulary.size);
  if (data.vocabulary.end_of_text != model.end_of_text)
    fail("%s: the model ends a text by token %d, but the data by %d: its tokenizer is another", checkpoint.c_str(),
         model.end_of_text, data.vocabulary.end_of_text);
}
