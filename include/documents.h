// Documents out of text files, .jsonl, folders of these and standard input, one by one: memory holds the one that is
// read, and no more of a file.
#pragma once
#include <atomic>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "error.h"

struct DocumentOptions {
  std::vector<std::string>
      inputs;                  // files; folders, of which all that is not hidden is read, once; "-" is standard input
  std::string field = "text";  // of .jsonl, an object a line: the string that is a document
  std::string prompt_field;    // and the one that stands before it; empty: none
  std::string separator = "<|endoftext|>";  // a line of a text file between documents; empty: a file is one document
  std::string format;                       // "text", "jsonl", or empty: by the name's end (text_input.h)
  std::string on_bad_line = "fail";         // of .jsonl, or "skip"
  int64_t most_bytes = 0;  // the input ends after so many (0: where it ends); a line of .jsonl cut there is left out
  std::string standard_input;  // what was read of standard input already: "-" begins with it
};

// A line of .jsonl that gives no document, where such lines are skipped: no object of JSON or UTF-8, or without the field.
struct BadLine : Error {
  using Error::Error;
};

// Those that were skipped: how many, and what was wrong with the first of them.
struct BadLines {
  int64_t count = 0;
  std::vector<std::string> first;  // "FILE:LINE:COLUMN: ..."
  void add(const BadLine&);
};

struct PromptedText {
  std::string prompt, text;  // a prompt ends with a newline, or is empty
};

// A document as it stands in its file.
struct Record {
  std::string bytes;
  size_t file = 0;
  int64_t line = 0;  // its number, in .jsonl
};

// A place between two documents.
struct InputPosition {
  int64_t file = 0, offset = 0, line = 0;  // line: lines before it
  uint32_t crc = 0;                        // of the file's bytes before it
};

struct InputFile {
  std::string path;
  bool regular = true;   // else a pipe or a device, which can be read once
  int64_t bytes = 0;     // its size; of a pipe 0
  std::string modified;  // when, in seconds; of a pipe ""
  int64_t read = 0;      // of one that was read to its end: how many bytes that were, and their CRC-32C
  uint32_t crc = 0;
};

class DocumentReader {
 public:
  // Lists the folders. Fails where there is no such input.
  explicit DocumentReader(DocumentOptions);
  ~DocumentReader();
  DocumentReader(const DocumentReader&) = delete;
  DocumentReader& operator=(const DocumentReader&) = delete;

  const std::vector<InputFile>& files() const { return files_; }
  std::string name_of(size_t file) const;       // for messages
  int64_t total_bytes() const;                  // −1 where a pipe's size is not known
  int64_t bytes_read() const { return done_; }  // up to position()

  // Fails where one of the files is no text (text_input.h), which next() would meet only when it comes there.
  void require_texts() const;
  // The next document as it stands; false at the end of the last file, and after stop().
  bool next(Record*);
  // Behind the document that next() gave.
  const InputPosition& position() const { return position_; }
  // What a record says. Fails with "FILE:LINE:COLUMN: ...", by BadLine where bad lines are skipped. On any thread.
  PromptedText parse(Record) const;

  // Goes on at a place where a reader was whose files() were `then`: a pipe has to bring the same bytes again. Fails
  // where what was read is no longer what it was.
  void resume(const std::vector<InputFile>& then, const InputPosition& at);
  // From any thread: ends a wait for a pipe; next() is false from here on.
  void stop() { stopped_ = true; }

 private:
  struct Stopped {};
  using FolderId = std::pair<uint64_t, uint64_t>;  // device, inode
  void list(const std::string& path, std::set<FolderId>* listed);
  bool is_jsonl(size_t file) const;
  void open_file();
  void begin_file();
  void close_file();
  void end_file();
  bool is_cut() const;  // has it come to most_bytes?
  void wait_for_input();
  size_t read_some(char* bytes, size_t n);
  bool read_more();
  std::string_view buffered() const { return std::string_view(buffer_).substr(begin_); }
  size_t find_newline(size_t from);
  std::string consume(size_t n);
  void look_at(std::string_view bytes);
  [[noreturn]] void refuse_size() const;
  bool next_text(std::string* bytes);
  bool next_line(std::string* bytes);
  void seek_in_file(const InputFile& then, const InputPosition& at);
  void skip(const InputPosition& at);
  void require_unchanged(int64_t i, const InputFile& then, int64_t bytes, uint32_t crc, bool all) const;
  uint32_t crc_of_start(const std::string& path, int64_t bytes) const;

  DocumentOptions options_;
  std::vector<InputFile> files_;
  InputPosition position_;
  int fd_ = -1;
  std::string buffer_;              // read, from begin_ on not yet consumed
  size_t begin_ = 0, taken_ = 0;    // taken_: of options_.standard_input
  int64_t done_ = 0, fetched_ = 0;  // bytes consumed, and read
  std::string head_;                // the file's first bytes, while they are looked at
  size_t looked_ = 0;               // at so many of them
  bool looking_ = false;
  std::atomic<bool> stopped_ = false;
};

// The first bytes of standard input, as many as there are up to `most`.
std::string read_standard_input(int64_t most = INT64_MAX);
