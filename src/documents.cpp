// Reading documents: a buffer over one file after the other, cut at lines.
#include "documents.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <stdexcept>

#include "error.h"
#include "files.h"
#include "json.h"
#include "log.h"
#include "text_input.h"
#include "utf8.h"

namespace {

constexpr size_t kChunk = 1 << 20;

std::string shown(const std::string& path) { return path == "-" ? "standard input" : path; }

[[noreturn]] void fail_to_read(const std::string& path) {
  fail("cannot read %s: %s", shown(path).c_str(), std::strerror(errno));
}

// A named pipe opens at once, where nobody writes to it yet, too: whoever waits is to hear of stop().
int open_input(const std::string& path) {
  bool standard = path == "-";
  int fd;
  do fd = standard ? fcntl(0, F_DUPFD_CLOEXEC, 3) : open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (fd < 0 && errno == EINTR);
  if (fd < 0) fail_to_read(path);
  if (!standard) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK);
  return fd;
}

size_t read_retrying(int fd, char* bytes, size_t n, const std::string& path) {
  ssize_t got;
  do got = read(fd, bytes, n);
  while (got < 0 && errno == EINTR);
  if (got < 0) fail_to_read(path);
  return size_t(got);
}

InputFile describe(const std::string& path) {
  struct stat status;
  if (path == "-" ? fstat(0, &status) < 0 : stat(path.c_str(), &status) < 0) fail_to_read(path);
  InputFile file;
  file.path = path;
  file.regular = path != "-" && S_ISREG(status.st_mode);
  if (!file.regular) return file;
  file.bytes = status.st_size;
  file.modified = text("%lld.%09ld", (long long)status.st_mtim.tv_sec, long(status.st_mtim.tv_nsec));
  return file;
}

std::string_view without_line_end(std::string_view line) {
  if (line.ends_with('\n')) line.remove_suffix(1);
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

// A parser's message about the line "FILE:LINE", in which it counts lines of its own.
std::string message_about_line(std::string message, const std::string& where) {
  auto replace = [&](const std::string& old, const std::string& now) {
    size_t at = message.find(old);
    if (at != std::string::npos) message.replace(at, old.size(), now);
  };
  replace(where + ":1:", where + ":");
  replace("the file ends here", "the line ends here");
  replace("the end of the file", "the end of the line");
  return message;
}

// What lies in a folder of texts is meant to be read: fails where it can't be.
void require_readable(const std::string& path) {
  struct stat status;
  const char* way_out = "move it out of the folder, or give it a name that begins with a dot";
  if (stat(path.c_str(), &status) < 0)
    fail("%s is a link that leads nowhere: bring back what it names, or %s", path.c_str(), way_out);
  if (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
    fail("%s is a %s, not a file: %s", path.c_str(),
         S_ISFIFO(status.st_mode)   ? "pipe"
         : S_ISSOCK(status.st_mode) ? "socket"
                                    : "device",
         way_out);
}

}  // namespace

void BadLines::add(const BadLine& line) {
  constexpr size_t kMostListed = 10;
  ++count;
  if (first.size() < kMostListed) first.push_back(line.what());
}

DocumentReader::DocumentReader(DocumentOptions options) : options_(std::move(options)) {
  if (options_.separator.find('\n') != std::string::npos)
    fail("the separator is more than one line: documents are divided by lines that hold nothing else");
  for (const std::string& input : options_.inputs) {
    std::set<FolderId> listed;
    list(input, &listed);
  }
  auto is_standard_input = [](const InputFile& file) { return file.path == "-"; };
  if (std::count_if(files_.begin(), files_.end(), is_standard_input) > 1)
    fail("standard input (-) is named twice, and can be read once");
}

DocumentReader::~DocumentReader() { close_file(); }

// Appends a file, or a folder's, in the order of names; a folder to which several names lead only once.
void DocumentReader::list(const std::string& path, std::set<FolderId>* listed) {
  if (path != "-" && !is_utf8(path)) fail("%s: the name is not UTF-8", path.c_str());
  if (path == "-" || !folder_exists(path)) return files_.push_back(describe(path));
  struct stat folder;
  if (stat(path.c_str(), &folder) < 0) fail_to_read(path);
  if (!listed->insert({folder.st_dev, folder.st_ino}).second) return;
  for (const std::string& name : list_folder(path)) {
    std::string below = path + (path.back() == '/' ? "" : "/") + name;
    if (name[0] == '.') continue;
    require_readable(below);
    list(below, listed);
  }
}

std::string DocumentReader::name_of(size_t file) const { return shown(files_[file].path); }

int64_t DocumentReader::total_bytes() const {
  int64_t total = 0;
  for (const InputFile& file : files_) {
    if (!file.regular) return -1;
    total += file.bytes;
  }
  return options_.most_bytes > 0 ? std::min(total, options_.most_bytes) : total;
}

bool DocumentReader::is_jsonl(size_t file) const {
  return options_.format.empty() ? is_named_jsonl(files_[file].path) : options_.format == "jsonl";
}

// --- The buffer over a file

void DocumentReader::open_file() {
  fd_ = open_input(files_[position_.file].path);
  looking_ = options_.format != "text", looked_ = 0;
  head_.clear();
}

// A byte-order mark at its beginning is no part of its text.
void DocumentReader::begin_file() {
  open_file();
  while (buffered().size() < kByteOrderMark.size() && read_more()) {
  }
  if (buffered().starts_with(kByteOrderMark)) consume(kByteOrderMark.size());
}

void DocumentReader::close_file() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
  buffer_.clear(), begin_ = 0;
}

void DocumentReader::end_file() {
  files_[position_.file].read = position_.offset, files_[position_.file].crc = position_.crc;
  close_file();
  position_ = {position_.file + 1, 0, 0, 0};
}

bool DocumentReader::is_cut() const { return options_.most_bytes > 0 && fetched_ >= options_.most_bytes; }

void DocumentReader::wait_for_input() {
  constexpr int kMilliseconds = 50;
  for (pollfd ready = {fd_, POLLIN, 0}; !stopped_;) {
    int count = poll(&ready, 1, kMilliseconds);
    if (count > 0 || (count < 0 && errno != EINTR)) return;
  }
  throw Stopped();
}

size_t DocumentReader::read_some(char* bytes, size_t n) {
  const std::string& path = files_[position_.file].path;
  if (path == "-" && taken_ < options_.standard_input.size()) {
    n = options_.standard_input.copy(bytes, n, taken_);
    taken_ += n;
    return n;
  }
  wait_for_input();
  return read_retrying(fd_, bytes, n, path);
}

// More bytes behind those that are buffered; false at the file's end.
bool DocumentReader::read_more() {
  if (stopped_) throw Stopped();
  if (is_cut()) return false;
  if (begin_ > buffer_.size() / 2) buffer_.erase(0, begin_), begin_ = 0;
  size_t size = buffer_.size(), wanted = kChunk;
  if (options_.most_bytes > 0) wanted = size_t(std::min(int64_t(wanted), options_.most_bytes - fetched_));
  buffer_.resize(size + wanted);
  size_t got = read_some(&buffer_[size], wanted);
  buffer_.resize(size + got);
  fetched_ += int64_t(got);
  if (looking_) look_at(std::string_view(buffer_).substr(size));
  return got > 0;
}

// The first line's end at or behind `from`; npos where the file ends before.
size_t DocumentReader::find_newline(size_t from) {
  while (true) {
    size_t found = buffered().find('\n', from);
    if (found != std::string::npos) return found;
    from = buffered().size();
    if (!read_more()) return std::string::npos;
  }
}

std::string DocumentReader::consume(size_t n) {
  std::string bytes(buffered().substr(0, n));
  position_.crc = crc32c(position_.crc, bytes.data(), n);
  position_.offset += int64_t(n), done_ += int64_t(n);
  begin_ += n;
  return bytes;
}

// --- Documents

// What is no text is refused, as far as the file's first bytes have come: a pipe brings them in pieces. `bytes` are the
// next ones; none at the file's end.
void DocumentReader::look_at(std::string_view bytes) {
  head_ += bytes.substr(0, kTextHead - head_.size());
  looking_ = !bytes.empty() && head_.size() < kTextHead;
  if (looking_ && head_.size() < 2 * looked_) return;  // not at each of many small pieces
  looked_ = head_.size();
  size_t file = size_t(position_.file);
  require_text(head_, files_[file].path, is_jsonl(file) ? TextUse::json_lines : TextUse::documents);
}

void DocumentReader::require_texts() const {
  for (size_t i = 0; i < files_.size() && options_.format != "text"; ++i)
    if (files_[i].regular)
      require_text(read_head(files_[i].path, kTextHead), files_[i].path,
                   is_jsonl(i) ? TextUse::json_lines : TextUse::documents);
}

bool DocumentReader::next(Record* record) try {
  while (position_.file < int64_t(files_.size()) && !(is_cut() && buffered().empty())) {
    if (fd_ < 0) begin_file();
    record->file = size_t(position_.file);
    bool found = is_jsonl(record->file) ? next_line(&record->bytes) : next_text(&record->bytes);
    record->line = position_.line;
    if (found) return true;
    end_file();
  }
  return false;
} catch (const Stopped&) {
  return false;
} catch (const std::bad_alloc&) {
  refuse_size();
} catch (const std::length_error&) {
  refuse_size();
}

void DocumentReader::refuse_size() const {
  fail("%s: a document of more than %s, from byte %lld on, does not fit in memory", name_of(position_.file).c_str(),
       show_bytes(double(buffered().size())).c_str(), (long long)position_.offset);
}

// Up to a line that is the separator, or to the file's end. The line end before the separator is part of its line.
bool DocumentReader::next_text(std::string* bytes) {
  if (buffered().empty() && !read_more()) return false;
  for (size_t line = 0;;) {
    size_t end = find_newline(options_.separator.empty() ? buffered().size() : line);
    bool last = end == std::string::npos;
    size_t next = last ? buffered().size() : end + 1;
    bool divides =
        !options_.separator.empty() && without_line_end(buffered().substr(line, next - line)) == options_.separator;
    if (divides || last) {
      *bytes = consume(next);
      if (divides) bytes->resize(without_line_end(std::string_view(*bytes).substr(0, line)).size());
      return true;
    }
    line = next;
  }
}

bool DocumentReader::next_line(std::string* bytes) {
  while (true) {
    size_t end = find_newline(0);
    bool last = end == std::string::npos, torn = last && is_cut();
    if (last && buffered().empty()) return false;
    *bytes = consume(last ? buffered().size() : end + 1);
    ++position_.line;
    if (torn) return false;
    bytes->resize(without_line_end(*bytes).size());
    if (bytes->find_first_not_of(" \t\r\n") != std::string::npos) return true;
  }
}

PromptedText DocumentReader::parse(Record record) const {
  if (!is_jsonl(record.file)) return {"", std::move(record.bytes)};
  std::string where = text("%s:%lld", name_of(record.file).c_str(), (long long)record.line);
  PromptedText document;
  try {
    Json object = parse_json(record.bytes, where);
    document.text = object.get_string(options_.field, where);
    if (!options_.prompt_field.empty()) document.prompt = object.get_string(options_.prompt_field, where);
  } catch (const Error& e) {
    std::string message = message_about_line(e.what(), where);
    if (options_.on_bad_line == "skip") throw BadLine(message);
    fail("%s (--on-bad-line skip leaves such lines out)", message.c_str());
  }
  if (!document.prompt.empty() && document.prompt.back() != '\n') document.prompt += '\n';
  return document;
}

// --- Going on

void DocumentReader::resume(const std::vector<InputFile>& then, const InputPosition& at) try {
  if (at.offset > 0 && at.file >= int64_t(files_.size()))
    fail("the place to go on from, byte %lld, lies behind the last input: what recorded it was changed",
         (long long)at.offset);
  for (int64_t i = 0; i < at.file; ++i) {
    if (files_[i].regular) require_unchanged(i, then[i], then[i].read, then[i].crc, true);
    files_[i].read = then[i].read, files_[i].crc = then[i].crc;
    done_ += then[i].read;
  }
  position_.file = at.file;
  if (at.offset > 0) {
    open_file();
    if (files_[at.file].regular)
      seek_in_file(then[at.file], at);
    else
      skip(at);
  }
  fetched_ = done_;
} catch (const Stopped&) {
}

void DocumentReader::seek_in_file(const InputFile& then, const InputPosition& at) {
  looking_ = false;  // its beginning was looked at before
  require_unchanged(at.file, then, at.offset, at.crc, false);
  if (lseek(fd_, at.offset, SEEK_SET) < 0) fail_to_read(files_[at.file].path);
  position_ = at;
  done_ += at.offset;
}

// The first bytes of a pipe, which were read before.
void DocumentReader::skip(const InputPosition& at) {
  std::string name = name_of(position_.file);
  while (position_.offset < at.offset) {
    if (buffered().empty() && !read_more())
      fail("%s ends after %lld bytes; of the input that this goes on with, %lld were read", name.c_str(),
           (long long)position_.offset, (long long)at.offset);
    consume(std::min(buffered().size(), size_t(at.offset - position_.offset)));
  }
  if (position_.crc != at.crc) fail("%s is not the input that this goes on with: it begins differently", name.c_str());
  position_.line = at.line;
}

// A file that seems untouched is taken at its word; of any other, the `bytes` that were read are looked at.
void DocumentReader::require_unchanged(int64_t i, const InputFile& then, int64_t bytes, uint32_t crc, bool all) const {
  const InputFile& now = files_[i];
  if (now.bytes == then.bytes && now.modified == then.modified) return;
  bool same_size = all ? now.bytes == bytes : now.bytes >= bytes;
  if (same_size && crc_of_start(now.path, bytes) == crc) return;
  fail("%s has changed since it was read; this goes on only with what it was", now.path.c_str());
}

uint32_t DocumentReader::crc_of_start(const std::string& path, int64_t bytes) const {
  struct Closing {
    int fd;
    ~Closing() { close(fd); }
  } file{open_input(path)};
  std::string piece(kChunk, '\0');
  uint32_t crc = 0;
  for (int64_t done = 0; done < bytes;) {
    if (stopped_) throw Stopped();
    size_t got = read_retrying(file.fd, piece.data(), size_t(std::min(int64_t(kChunk), bytes - done)), path);
    if (got == 0) break;
    crc = crc32c(crc, piece.data(), got);
    done += int64_t(got);
  }
  return crc;
}

std::string read_standard_input(int64_t most) {
  std::string bytes;
  for (size_t size = 0; int64_t(size) < most; bytes.resize(size)) {
    bytes.resize(size + size_t(std::min(int64_t(kChunk), most - int64_t(size))));
    size_t got = read_retrying(0, &bytes[size], bytes.size() - size, "-");
    size += got;
    if (got > 0) continue;
    bytes.resize(size);
    break;
  }
  return bytes;
}
