// The fuzz targets: a function for each parser of foreign bytes. Their corpora lie in test/fuzz/corpus/NAME/.
#pragma once
#include <string_view>
#include <vector>

void fuzz_json(std::string_view bytes);
void fuzz_tokenizer_json(std::string_view bytes);
void fuzz_ranks(std::string_view bytes);
void fuzz_gpt2(std::string_view bytes);
void fuzz_encode(std::string_view bytes);
void fuzz_decode(std::string_view bytes);
void fuzz_nfc(std::string_view bytes);
void fuzz_train_bpe(std::string_view bytes);
void fuzz_token_file(std::string_view bytes);
void fuzz_loader(std::string_view bytes);
void fuzz_documents(std::string_view bytes);
void fuzz_text_file(std::string_view bytes);
void fuzz_safetensors(std::string_view bytes);
void fuzz_checkpoint(std::string_view bytes);
void fuzz_config_file(std::string_view bytes);
void fuzz_task_mix(std::string_view bytes);
void fuzz_passes(std::string_view bytes);
void fuzz_data_json(std::string_view bytes);
void fuzz_log(std::string_view bytes);

struct FuzzTarget {
  const char* name;
  void (*run)(std::string_view bytes);
};
const std::vector<FuzzTarget>& fuzz_targets();
