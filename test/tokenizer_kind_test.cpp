// Which tokenizer a file is, by its structure.
#include "tokenizer_kind.h"

#include <gtest/gtest.h>

#include "json.h"
#include "scratch.h"
#include "tokenizer.h"

namespace {

using Kind = TokenizerKind;
using namespace std::literals;

Kind kind_of(std::string_view bytes) {
  Scratch scratch;
  put(scratch / "file", std::string(bytes));
  return look_at_tokenizer(scratch / "file").kind;
}

Json byte_vocabulary() { return parse_json(Tokenizer().to_json(), "bytes").get("model", "").get("vocab", ""); }

struct Case {
  Kind kind;
  std::string bytes;
  std::string said = "";  // of it, where its kind has no name
};

std::vector<Case> cases() {
  Json vocabulary = byte_vocabulary(), words = vocabulary;
  for (const char* word : {"model", "type", "vocab", "merges", "added_tokens", "model_type", "tokenizer_class"})
    words.set(word, int(words.members.size()));
  return {
      {Kind::tokenizer_json, Tokenizer().to_json()},
      {Kind::tokenizer_json, R"({"model":{"type":"WordPiece"}})"},
      {Kind::tokenizer_json, R"({"added_tokens":[]})"},
      {Kind::vocabulary, write_json(vocabulary)},
      {Kind::vocabulary, write_json(words)},
      {Kind::vocabulary, " \n" + write_json_indented(words)},
      {Kind::merges, "#version: 0.2\nĠ t\nh e\n"},
      {Kind::merges, "#version: 0.2 - Trained by `huggingface/tokenizers`\r\nĠ t\r\n"},
      {Kind::merges, "Ġ t\nh e\n"},
      {Kind::merges, "Ã ©\r\nĠ Ġ\r\n"},
      {Kind::ranks, "IQ== 0\nIg== 1\n"},
      {Kind::ranks, "damaged\nIg== 1\r\nIw== 2\r\n"},
      {Kind::empty, ""},
      {Kind::empty, " \r\n"},
      {Kind::tokenizer_config, R"({"add_prefix_space":false,"eos_token":"</s>","tokenizer_class":"GPT2Tokenizer"})"},
      {Kind::tokenizer_config, R"({"added_tokens_decoder":{"0":{"content":"<s>"}},"bos_token":null})"},
      {Kind::tokenizer_config, R"({"model_max_length":1024})"},
      {Kind::special_tokens_map, R"({"eos_token":"<|endoftext|>"})"},
      {Kind::special_tokens_map, R"({"bos_token":{"content":"<s>","lstrip":false}})"},
      {Kind::special_tokens_map, R"({"additional_special_tokens":["<|im_start|>"]})"},
      {Kind::added_tokens, R"({"<|im_start|>":100265,"<|im_end|>":100266})"},
      {Kind::added_tokens, R"({"n_vocab":50257,"n_ctx":1024,"n_embd":768})"},
      {Kind::model_config, R"({"architectures":["GPT2LMHeadModel"],"vocab_size":50257})"},
      {Kind::model_config, R"({"model_type":"gpt2","transformers_version":"4.0.0"})"},
      {Kind::generation_config, R"({"_from_model_config":true,"eos_token_id":1,"transformers_version":"4.0.0"})"},
      {Kind::weights_index, R"({"metadata":{},"weight_map":{"wte":"model-1.safetensors"}})"},
      {Kind::tekken, R"({"config":{},"vocab":[{"rank":0,"token_bytes":"AA=="}]})"},
      {Kind::json_object, "{}"},
      {Kind::json_object, R"({"model":7,"x":"y"})"},
      {Kind::json_array, "[1, 2]"},
      {Kind::json_array, R"(["#version"])"},
      {Kind::json_lines, "{\"text\":\"a\"}\n{\"text\":\"b\"}\n"},
      {Kind::wordpiece, "[PAD]\n[unused0]\n"},
      {Kind::sentencepiece, "\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x02\n"s},
      {Kind::no_text, "\x02\0\0\0\0\0\0\0{}"s, "a model (safetensors): give "},
      {Kind::no_text, "GGUF\x03\0\0\0"s, "a model (GGUF): give "},
      {Kind::no_text, "\x80\x02}q\0."s, "a pickle of Python: give "},
      {Kind::no_text, "\x1f\x8b\x08\0\0\0\0\0"s, "packed (gzip): unpack"},
      {Kind::no_text, "PK\x03\x04\x14\0"s, "an archive (zip): unpack"},
      {Kind::no_text, "\x28\xb5\x2f\xfd\x04\0"s, "packed (Zstandard): unpack"},
      {Kind::no_text, "\xff\xfe{\0}\0"s, "UTF-16: make it UTF-8"},
      {Kind::no_text, "\xfe\xff\0{\0}"s, "UTF-16: make it UTF-8"},
      {Kind::web_page, "<!DOCTYPE html>\n<html>"},
      {Kind::lfs_pointer, "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 7\n"},
      {Kind::binary, "abc\0def"s},
      {Kind::text, "Once upon a time\n"},
      {Kind::text, "hello world\n"},
      {Kind::text, "[1] a footnote\n"},
      {Kind::text, "▁the\t-3.5\n"},
  };
}

TEST(TokenizerKind, IsToldByAFilesStructure) {
  for (const Case& c : cases()) EXPECT_EQ(name_of(kind_of(c.bytes)), name_of(c.kind)) << c.bytes.substr(0, 60);
}

TEST(TokenizerKind, IsTheSameBehindAByteOrderMark) {
  for (const Case& c : cases()) {
    if (c.kind > Kind::json_lines && c.kind != Kind::text) continue;
    EXPECT_EQ(name_of(kind_of("\xef\xbb\xbf" + c.bytes)), name_of(c.kind)) << c.bytes.substr(0, 60);
  }
}

TEST(TokenizerKind, ThatIsNoTokenizerIsNamedInOneLine) {
  for (const Case& c : cases()) {
    if (c.kind <= Kind::empty) continue;
    Scratch scratch;
    put(scratch / "file", c.bytes);
    std::string said = message_of([&] { Tokenizer::load(scratch / "file"); });
    EXPECT_TRUE(has(said, "this seems to be "s + (c.said.empty() ? name_of(c.kind) : c.said))) << said;
    EXPECT_TRUE(has(said, "give ") || has(said, "unpack") || has(said, "UTF-8") || has(said, "itself")) << said;
    EXPECT_EQ(said.find('\n'), said.npos);
  }
}

TEST(TokenizerKind, BrokenJsonIsNamedByItsPlace) {
  EXPECT_TRUE(has(message_of([] { kind_of("{\"model\":{},\n\"vocab\":,}\n"); }), "file:2:9"));
}

TEST(TokenizerKind, FilesAreReadBehindAByteOrderMarkAndWhateverTheirTokensAreCalled) {
  Scratch scratch;
  Json vocabulary = byte_vocabulary();
  for (const char* name : {"ab", "model", "type"}) vocabulary.set(name, int(vocabulary.members.size()));
  put(scratch / "encoder.json", "\xef\xbb\xbf" + write_json(vocabulary));
  for (const char* merges : {"a b\n", "\xef\xbb\xbf#version: 0.2\na b\n",
                             "\xef\xbb\xbf"
                             "a b\r\n"}) {
    put(scratch / "vocab.bpe", merges);
    for (std::string path : {scratch.path, scratch / "encoder.json", scratch / "vocab.bpe"})
      EXPECT_EQ(Tokenizer::load(path).encode("ab"), (std::vector<int>{256})) << path;
  }
  put(scratch / "t.json", "\xef\xbb\xbf" + Tokenizer().to_json());
  EXPECT_EQ(Tokenizer::load(scratch / "t.json").checksum(), Tokenizer().checksum());
}

TEST(TokenizerKind, AFileBesideThatIsNotTheOtherHalfIsNamed) {
  Scratch scratch;
  put(scratch / "vocab.json", R"({"model_type":"gpt2"})");
  put(scratch / "merges.txt", "#version: 0.2\na b\n");
  std::string said = message_of([&] { Tokenizer::load(scratch.path); });
  EXPECT_TRUE(has(said, "vocab.json lies beside it")) << said;
  EXPECT_TRUE(has(said, "a model's config.json")) << said;
}

}  // namespace
