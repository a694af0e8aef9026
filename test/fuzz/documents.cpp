// Documents out of text files and .jsonl: with what divides them they are the file, and reading goes on anywhere.
#include "documents.h"

#include "fuzz.h"
#include "targets.h"
#include "utf8.h"

namespace {

// What stands behind a document: nothing, or a line end and the separator's line.
bool divides(std::string_view rest, std::string_view separator) {
  if (rest.starts_with('\r')) rest.remove_prefix(1);
  if (rest.starts_with('\n')) rest.remove_prefix(1);
  if (rest.ends_with('\n')) rest.remove_suffix(1);
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest == separator;
}

bool is_space(std::string_view bytes) { return bytes.find_first_not_of(" \t\r\n") == bytes.npos; }

struct Place {
  InputPosition position;
  Record record;  // that stands before it
};

std::vector<Place> read_all(DocumentReader& reader) {
  std::vector<Place> places;
  for (Record record; reader.next(&record);) places.push_back({reader.position(), record});
  return places;
}

void require_whole(const std::vector<Place>& places, std::string_view file, const DocumentOptions& o, bool jsonl) {
  bool marked = file.starts_with(kByteOrderMark) && (o.most_bytes == 0 || o.most_bytes >= 3);
  int64_t begin = marked ? int64_t(kByteOrderMark.size()) : 0;
  for (const Place& place : places) {
    int64_t end = place.position.offset;
    require(end > begin && end <= int64_t(file.size()), "documents follow each other");
    std::string_view bytes = file.substr(size_t(begin), size_t(end - begin)), record = place.record.bytes;
    size_t at = jsonl ? bytes.rfind(record) : 0;  // empty lines may stand before it
    require(at != bytes.npos && bytes.substr(at, record.size()) == record, "a document is a part of the file");
    std::string_view rest = bytes.substr(at + record.size());
    if (jsonl)
      require(is_space(bytes.substr(0, at)) && is_space(rest), "between objects there is space");
    else
      require(rest.empty() || divides(rest, o.separator), "between documents there is the separator");
    begin = end;
  }
  std::string_view left = file.substr(size_t(begin));
  if (o.most_bytes == 0) require(jsonl ? is_space(left) : left.empty(), "no byte is left out");
}

void require_resumable(const DocumentOptions& o, const DocumentReader& reader, const std::vector<Place>& places) {
  size_t middle = places.size() / 2;
  DocumentReader again(o);
  again.resume(reader.files(), places[middle].position);
  std::vector<Place> rest = read_all(again);
  require(rest.size() == places.size() - middle - 1, "a resumed reader reads what is left");
  for (size_t i = 0; i < rest.size(); ++i) {
    const Record &a = rest[i].record, &b = places[middle + 1 + i].record;
    require(a.bytes == b.bytes && a.line == b.line, "and the same documents");
  }
}

}  // namespace

void fuzz_documents(std::string_view bytes) {
  DocumentOptions o;
  bool jsonl = take_choice(&bytes, 2);
  o.format = jsonl ? "jsonl" : "text";
  const char* separators[] = {"<|endoftext|>", "--", "", " a"};
  o.separator = separators[take_choice(&bytes, 4)];
  o.prompt_field = take_choice(&bytes, 2) ? "prompt" : "";
  o.most_bytes = take_choice(&bytes, 64);
  o.inputs = {put_file("documents", bytes)};
  DocumentReader reader(o);
  std::vector<Place> places;
  if (!accepts([&] { places = read_all(reader); })) return;
  require_whole(places, bytes, o, jsonl);
  if (!places.empty()) require_resumable(o, reader, places);
  for (const Place& place : places) accepts([&] { reader.parse(place.record); });
  o.format = "";  // by the name: text, unless it looks like something else
  DocumentReader unknown(o);
  accepts([&] { read_all(unknown); });
}
