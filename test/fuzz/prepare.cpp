// ./tokenize data goes on from a data.json that may say anything; in the corpus "$INPUT" stands for the input's path.
#include "prepare.h"

#include <filesystem>

#include "files.h"
#include "fuzz.h"
#include "shards.h"
#include "targets.h"

namespace {

// As a kill leaves it after the first of three documents: a shard of six tokens and what else was not recorded.
void put_folder(const std::string& folder, const std::string& data_json) {
  remove_folder(folder);
  std::filesystem::create_directory(folder);
  std::string shard = shard_header(16, 0);
  for (int token : std::initializer_list<int>{256, 'o', 'n', 'e', '\n', 256, 't'})
    shard += {char(token), char(token >> 8)};
  put_file("prepared/.train_000000.bin.partial", shard);
  put_file("prepared/data.json", data_json);
}

}  // namespace

void fuzz_data_json(std::string_view bytes) {
  static const std::string input = put_file("input.txt", "one\n\n<|endoftext|>\ntwo\n<|endoftext|>\nthree\n");
  static const std::string folder = file_path("prepared");
  put_folder(folder, replaced(bytes, "$INPUT", input));
  PrepareOptions o;
  o.documents.inputs = {input}, o.out = folder, o.shard_tokens = 8, o.validation = 0, o.save_seconds = 1e6f;
  PrepareResult result;
  if (!accepts([&] { result = prepare_data(o, Tokenizer()); })) return;
  require(result.complete, "nothing stopped it");
  ShardNames names = find_shards(folder);
  int64_t tokens = 0;
  for (const std::string& name : names.train) tokens += Tokens::map(name).size();
  require(tokens == result.train_tokens, "the shards hold what data.json says");
}
