#include "file_kind.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

using namespace std::string_view_literals;

namespace {

constexpr FileKind packed(const char* what, const char* filter) { return {what, "unpack it", Way::filter, filter, ""}; }
constexpr FileKind archive(const char* what, const char* command) {
  return {what, "unpack it", Way::command, command, ""};
}
constexpr FileKind table(const char* what, const char* frame) {
  return {what, "make it .jsonl first", Way::table, frame, ".jsonl"};
}
constexpr FileKind encoded(const char* what, const char* filter) {
  return {what, "make it UTF-8", Way::filter, filter, ".utf8"};
}

struct Magic {
  std::string_view bytes;
  size_t at;
  FileKind kind;
};

// Of two that begin alike the longer one comes first.
const Magic kMagics[] = {
    {"\xff\xfe\0\0"sv, 0, encoded("UTF-32", "iconv -f UTF-32 -t UTF-8")},
    {"\0\0\xfe\xff"sv, 0, encoded("UTF-32", "iconv -f UTF-32 -t UTF-8")},
    {"\xff\xfe"sv, 0, encoded("UTF-16", "iconv -f UTF-16 -t UTF-8")},
    {"\xfe\xff"sv, 0, encoded("UTF-16", "iconv -f UTF-16 -t UTF-8")},
    {"\x1f\x8b"sv, 0, packed("packed (gzip)", "gzip -dc")},
    {"\x1f\x9d"sv, 0, packed("packed (compress)", "gzip -dc")},
    {"\x28\xb5\x2f\xfd"sv, 0, packed("packed (Zstandard)", "zstd -dc")},
    {"\xfd\x37zXZ\0"sv, 0, packed("packed (xz)", "xz -dc")},
    {"\x5d\0\0"sv, 0, packed("packed (LZMA)", "xz -dc")},
    {"LZIP\x01"sv, 0, packed("packed (lzip)", "lzip -dc")},
    {"\x04\x22\x4d\x18"sv, 0, packed("packed (LZ4)", "lz4 -dc")},
    {"\x02\x21\x4c\x18"sv, 0, packed("packed (LZ4)", "lz4 -dc")},
    {"1AY&SY"sv, 4, packed("packed (bzip2)", "bzip2 -dc")},
    {"7z\xbc\xaf\x27\x1c"sv, 0, archive("an archive (7z)", "7z x")},
    {"Rar!\x1a\x07"sv, 0, archive("an archive (RAR)", "unrar x")},
    {"ustar"sv, 257, archive("an archive (tar)", "tar -xf")},
    {"PAR1"sv, 0, table("Parquet", "pandas.read_parquet(sys.argv[1])")},
    {"ARROW1\0\0"sv, 0, table("an Arrow file", "pandas.read_feather(sys.argv[1])")},
    {"FEA1"sv, 0, table("a Feather file", "pandas.read_feather(sys.argv[1])")},
    {"ORC"sv, 0, table("ORC", "pandas.read_orc(sys.argv[1])")},
    {"%PDF-1."sv, 0, {"PDF", "take the text out of it", Way::command, "pdftotext", ".txt"}},
    {"Obj\x01"sv, 0, {"Avro"}},
    {"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"sv, 0, {"an Office document", "save it as plain text"}},
    {"\x89HDF\r\n\x1a\n"sv, 0, {"HDF5"}},
    {"SQLite format 3\0"sv, 0, {"a database (SQLite)"}},
    {"GGUF"sv, 0, {"a model (GGUF)"}},
    {"\x89PNG\r\n\x1a\n"sv, 0, {"a picture (PNG)"}},
    {"\xff\xd8\xff"sv, 0, {"a picture (JPEG)"}},
    {"GIF8"sv, 0, {"a picture (GIF)"}},
    {"II*\0"sv, 0, {"a picture (TIFF)"}},
    {"MM\0*"sv, 0, {"a picture (TIFF)"}},
    {"RIFF"sv, 0, {"a sound, a picture or a film (RIFF)"}},
    {"ID3"sv, 0, {"a sound (MP3)"}},
    {"OggS"sv, 0, {"a sound (Ogg)"}},
    {"fLaC"sv, 0, {"a sound (FLAC)"}},
    {"ftyp"sv, 4, {"a film (MP4)"}},
    {"\x1a\x45\xdf\xa3"sv, 0, {"a film (Matroska)"}},
    {"\x7f\x45LF"sv, 0, {"a program"}},
};

bool holds(std::string_view head, size_t at, std::string_view bytes) {
  return head.size() >= at && head.substr(at).starts_with(bytes);
}

// Of a magic number that is a few printable characters a text may begin with them, too: then a zero byte has to follow.
bool matches(const Magic& magic, std::string_view head) {
  constexpr size_t kTooLongForChance = 6;
  if (!holds(head, magic.at, magic.bytes)) return false;
  bool may_be_text = std::all_of(magic.bytes.begin(), magic.bytes.end(), is_printable);
  return !may_be_text || magic.bytes.size() >= kTooLongForChance || has_zero(head);
}

// What the first file in a .zip says about it.
FileKind kind_of_zip(std::string_view head) {
  constexpr size_t kNameAt = 30, kLengthAt = 26;
  size_t length = head.size() > kNameAt ? (unsigned char)head[kLengthAt] : 0;
  std::string_view name = head.substr(std::min(kNameAt, head.size()), length);
  if (name.ends_with(".npy")) return {"arrays of NumPy"};
  if (name.ends_with("/data.pkl") || name.find("/.") != name.npos) return {"a model of PyTorch"};
  if (name == "mimetype" || name == "[Content_Types].xml")
    return {"a document (.docx, .odt, .epub)", "save it as plain text"};
  return archive("an archive (zip)", "unzip");
}

constexpr FileKind kUtf16Little = encoded("UTF-16 (little-endian, without a mark)", "iconv -f UTF-16LE -t UTF-8");
constexpr FileKind kUtf16Big = encoded("UTF-16 (big-endian, without a mark)", "iconv -f UTF-16BE -t UTF-8");

// Text of two bytes a character without a mark: Latin letters at one of the two places, zeros at the other.
FileKind kind_of_zeros(std::string_view head) {
  auto is_latin = [](char c) { return is_printable(c) || (unsigned char)c >= 0xa0; };
  constexpr size_t kLeast = 8;  // bytes; fewer say too little
  if (head.size() < kLeast || head.size() % 2 != 0) return {};
  int64_t zeros[2] = {}, latin[2] = {};
  for (size_t i = 0; i + 1 < head.size(); i += 2)
    for (int place : {0, 1}) {
      zeros[place] += head[i + place] == 0;
      latin[place] += head[i + 1 - place] == 0 && is_latin(head[i + place]);
    }
  for (int zero : {0, 1})
    if (zeros[1 - zero] == 0 && zeros[zero] == latin[1 - zero] && zeros[zero] * 4 > int64_t(head.size()))
      return zero ? kUtf16Little : kUtf16Big;
  return {};
}

// Scripts whose letters in UTF-16 hold few zero bytes: Greek to Arabic, those of India and Thailand, and East Asia's.
bool is_of_other_script(unsigned unit) {
  constexpr unsigned kRanges[][2] = {{0x370, 0x6ff},   {0x900, 0xeff},   {0x3000, 0x30ff},
                                     {0x4e00, 0x9fff}, {0xac00, 0xd7a3}, {0xff00, 0xffef}};
  return std::any_of(std::begin(kRanges), std::end(kRanges),
                     [unit](const auto& range) { return range[0] <= unit && unit <= range[1]; });
}

// The same of other scripts: nearly all are their letters or ASCII, and half are theirs.
FileKind kind_of_scripts(std::string_view head) {
  constexpr size_t kLeast = 32;
  if (head.size() < kLeast || head.size() % 2 != 0) return {};
  for (int low : {0, 1}) {
    int64_t units = int64_t(head.size() / 2), other = 0, ascii = 0;
    for (size_t i = 0; i < head.size(); i += 2) {
      unsigned char bytes[] = {(unsigned char)head[i], (unsigned char)head[i + 1]};
      unsigned unit = bytes[low] | unsigned(bytes[1 - low]) << 8;
      other += is_of_other_script(unit), ascii += unit < 0x80 && is_printable(char(unit));
    }
    if (2 * other >= units && 100 * (other + ascii) >= 95 * units) return low == 0 ? kUtf16Little : kUtf16Big;
  }
  return {};
}

}  // namespace

FileKind file_kind(std::string_view head) {
  for (const Magic& magic : kMagics)
    if (matches(magic, head)) return magic.kind;
  if (head.starts_with("PK\x03\x04"sv) || head.starts_with("PK\x05\x06"sv)) return kind_of_zip(head);
  if (head.size() > 1 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5) return {"a pickle of Python"};
  if (holds(head, 5, "\0\0\0{"sv)) return {"a model (safetensors)"};
  if (holds(head, 0, "\xff\xff\xff\xff"sv) && holds(head, 8, "\x10\0\0\0"sv))
    return table("a stream of Arrow", "pyarrow.ipc.open_stream(open(sys.argv[1],\"rb\")).read_pandas()");
  if (!has_zero(head)) return {};
  FileKind kind = kind_of_zeros(head);
  return *kind.what ? kind : kind_of_scripts(head);
}
