// A text file as documents to train on and to validate with.
#include "data.h"
#include "fuzz.h"
#include "targets.h"
#include "tokenizer.h"
#include "utf8.h"

namespace {

// Parts of the file, in their order and apart from each other; returns the end of the last.
size_t require_parts(const std::vector<TextDocument>& documents, const std::string& file, size_t begin) {
  for (const TextDocument& document : documents)
    for (const TextPart& part : document.parts) {
      size_t at = size_t(part.text.data() - file.data());
      require(at >= begin && at + part.text.size() <= file.size(), "documents are parts of the file, in their order");
      std::string_view between = std::string_view(file).substr(begin, at - begin);
      require(between.empty() || between.find("<|endoftext|>") != between.npos, "only separators stand between them");
      begin = at + part.text.size();
    }
  return begin;
}

}  // namespace

void fuzz_text_file(std::string_view bytes) {
  std::string path = put_file("x.txt", bytes);
  TextFile file;
  accepts([&] { read_text_file(path); });  // or it looks like something else
  if (!accepts([&] { file = read_text_file(path, "text"); })) return;
  size_t begin = bytes.size() - without_mark(bytes).size();
  size_t end = require_parts(file.validation, *file.bytes, require_parts(file.train, *file.bytes, begin));
  std::string_view rest = bytes.substr(end);
  require(rest.empty() || rest.find("<|endoftext|>") != rest.npos, "no text is left out");
  TextSplit split = tokenize(file, Tokenizer());
  require(split.train.size() > 2 && split.validation.size() > 2, "there is something to train on and to validate with");
}
