// Checkpoints: written under a hidden name, made known by a rename, believed only with their manifest.
#include "checkpoint.h"

#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdio>

#include "error.h"
#include "files.h"

namespace {

constexpr int kFormat = 1;
const char* const kRequired[] = {"model.safetensors", "optimizer.safetensors", "config.json", "state.json"};

struct ListedFile {
  std::string name;
  int64_t bytes;
  uint32_t crc;
};

std::string step_name(int64_t step) { return text("step_%08lld", (long long)step); }
std::string partial_path(const std::string& out, int64_t step) { return out + "/." + step_name(step) + ".partial"; }
std::string replaced_path(const std::string& out, int64_t step) { return out + "/." + step_name(step) + ".replaced"; }

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

void write_text_file(const std::string& folder, const std::string& name, const std::string& text,
                     std::vector<ListedFile>* listed) {
  NewFile file(folder + "/" + name);
  file.write(text);
  file.finish();
  listed->push_back({name, file.size(), file.crc()});
}

void write_json_file(const std::string& folder, const std::string& name, const Json& json,
                     std::vector<ListedFile>* listed) {
  write_text_file(folder, name, write_json_indented(json), listed);
}

int64_t size_of(const std::string& path) {
  struct stat status;
  return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode) ? int64_t(status.st_size) : -1;
}

void write_tensor_file(const std::string& folder, const std::string& name, const std::vector<TensorView>& tensors,
                       std::vector<ListedFile>* listed) {
  std::string path = folder + "/" + name;
  uint32_t crc = write_safetensors_to(path, tensors, {{"format", "fullband"}});
  listed->push_back({name, size_of(path), crc});
}

void write_contents(const std::string& folder, const CheckpointContents& contents) {
  std::vector<ListedFile> listed;
  write_tensor_file(folder, "model.safetensors", contents.model, &listed);
  write_tensor_file(folder, "optimizer.safetensors", contents.optimizer, &listed);
  write_json_file(folder, "config.json", contents.config, &listed);
  write_json_file(folder, "state.json", contents.state, &listed);
  if (!contents.tokenizer.empty()) write_text_file(folder, "tokenizer.json", contents.tokenizer, &listed);
  Json files = Json::object();
  for (const ListedFile& file : listed)
    files.set(file.name, Json::object({{"bytes", file.bytes}, {"crc32c", text("%08x", file.crc)}}));
  write_json_file(folder, "manifest.json", Json::object({{"format", kFormat}, {"files", files}}), &listed);
  sync_folder(folder);
}

uint32_t read_crc(const Json& file, const std::string& where) {
  std::string digits = file.get_string("crc32c", where);
  uint32_t crc = 0;
  const char* last = digits.data() + digits.size();
  if (digits.size() != 8 || std::from_chars(digits.data(), last, crc, 16).ptr != last)
    fail("%s: `crc32c` should be eight hexadecimal digits", where.c_str());
  return crc;
}

std::vector<ListedFile> read_manifest(const std::string& folder) {
  std::string path = folder + "/manifest.json";
  if (!file_exists(path)) fail("%s is missing: the checkpoint is not whole", path.c_str());
  Json manifest = parse_json(read_file(path), path);
  int64_t format = manifest.get_int("format", path);
  if (format != kFormat)
    fail("%s: format %lld is unknown; this program reads format %d", path.c_str(), (long long)format, kFormat);
  std::vector<ListedFile> listed;
  for (const auto& [name, file] : manifest.get("files", path).members) {
    std::string where = path + ": file `" + name + "`";
    if (name.empty() || name.find('/') != std::string::npos) fail("%s: should be a plain name", where.c_str());
    listed.push_back({name, file.get_int("bytes", where), read_crc(file, where)});
  }
  for (const char* name : kRequired) {
    auto is_it = [&](const ListedFile& file) { return file.name == name; };
    if (std::none_of(listed.begin(), listed.end(), is_it)) fail("%s: does not list %s", path.c_str(), name);
  }
  return listed;
}

// A folder that was given another step's name would be taken for newer or older than it is.
void check_step(const std::string& folder) {
  std::string path = folder + "/state.json";
  int64_t named = checkpoint_step(folder);
  Json state = parse_json(read_file(path), path);
  const Json* step = state.find("step");
  bool holds_one = step && step->kind == Json::Kind::number && step->number >= 0;
  if (named < 0 || !holds_one || step->number == double(named)) return;
  fail("%s holds step %.0f, not the one of its name: it was renamed; call it %s again", folder.c_str(), step->number,
       step_name(int64_t(step->number)).c_str());
}

// Fails where the folder is not whole; returns the manifest's files.
std::vector<ListedFile> check_whole(const std::string& folder) {
  std::vector<ListedFile> listed = read_manifest(folder);
  for (const ListedFile& file : listed) {
    std::string path = folder + "/" + file.name;
    int64_t size = size_of(path);
    if (size < 0) fail("%s is missing: the checkpoint is not whole", path.c_str());
    if (size != file.bytes)
      fail("%s has %lld bytes, but its manifest says %lld: it is truncated or was changed", path.c_str(),
           (long long)size, (long long)file.bytes);
  }
  return listed;
}

bool is_whole(const std::string& folder) {
  try {
    check_whole(folder);
    check_step(folder);
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Fails where a file is missing, cut or changed, or the folder renamed; returns the manifest's names.
std::vector<std::string> check_sound(const std::string& folder) {
  if (!folder_exists(folder)) fail("%s: there is no such folder", folder.c_str());
  std::vector<std::string> names;
  for (const ListedFile& file : check_whole(folder)) {
    uint32_t crc = crc32c_of_file(folder + "/" + file.name);
    if (crc != file.crc)
      fail("%s/%s: its bytes have changed: CRC-32C %08x, but the manifest says %08x", folder.c_str(), file.name.c_str(),
           crc, file.crc);
    names.push_back(file.name);
  }
  check_step(folder);
  return names;
}

// Folders named as checkpoints by increasing step, whole or not. One set aside stands in where the folder that was to
// replace it is not there.
std::vector<std::string> candidates(const std::string& out) {
  std::vector<std::pair<int64_t, std::string>> found;
  for (const std::string& name : list_folder(out)) {
    std::string path = out + "/" + name;
    int64_t step = checkpoint_step(name);
    bool aside = name[0] == '.';
    if (step >= 0 && folder_exists(path) && !(aside && folder_exists(out + "/" + step_name(step))))
      found.emplace_back(step, path);
  }
  std::sort(found.begin(), found.end());
  std::vector<std::string> paths;
  for (auto& [step, path] : found) paths.push_back(path);
  return paths;
}

// What a kill left behind: half-written folders go; a folder that was set aside goes back where its successor did not
// come.
void clean_up(const std::string& out) {
  for (const std::string& name : list_folder(out)) {
    std::string path = out + "/" + name;
    if (is_partial_checkpoint(name)) remove_folder(path);
    int64_t step = name[0] == '.' ? checkpoint_step(name) : -1;
    if (step < 0) continue;
    std::string final_path = out + "/" + step_name(step);
    if (folder_exists(final_path)) {
      remove_folder(path);
    } else {
      rename_path(path, final_path);
    }
  }
}

// The checkpoint that matters is safe by now, so what cannot be removed is worth a warning only.
void discard(const std::string& folder, const std::string& hidden) {
  try {
    if (folder != hidden) rename_path(folder, hidden);  // a kill half-way leaves nothing that looks like a checkpoint
    remove_folder(hidden);
  } catch (const Error& error) {
    std::fprintf(stderr, "warning: an old checkpoint stays: %s\n", error.what());
  }
}

// The whole new folder takes its name; at every moment the step is there under one of two names.
void move_into_place(const std::string& out, int64_t step) {
  std::string final_path = out + "/" + step_name(step), aside = replaced_path(out, step);
  bool replaces = folder_exists(final_path);
  if (replaces) rename_path(final_path, aside);
  try {
    rename_path(partial_path(out, step), final_path);
  } catch (const Error&) {
    if (replaces) rename_path(aside, final_path);
    throw;
  }
  sync_folder(out);
  if (replaces) discard(aside, aside);
}

void prune(const std::string& out, const std::string& just_written, Keep keep) {
  if (keep.newest == 0) return;
  std::vector<std::string> others = list_checkpoints(out);
  std::erase_if(others,
                [&](const std::string& path) { return path == just_written || keep.for_good(checkpoint_step(path)); });
  size_t stay = size_t(keep.newest) - !keep.for_good(checkpoint_step(just_written));
  for (size_t i = 0; i + stay < others.size(); ++i) discard(others[i], partial_path(out, checkpoint_step(others[i])));
}

// Where OUT/step_N was moved while it was being replaced.
std::string set_aside(const std::string& path) {
  size_t slash = path.rfind('/');
  std::string out = slash == std::string::npos ? "." : path.substr(0, slash);
  return replaced_path(out, checkpoint_step(path));
}

}  // namespace

std::string save_checkpoint(const std::string& out_path, int64_t step, const CheckpointContents& contents, Keep keep) {
  check(step >= 0, "save_checkpoint: step %lld", (long long)step);
  std::string out = without_slashes(out_path), partial = partial_path(out, step),
              final_path = out + "/" + step_name(step);
  make_folder(out);
  if (file_exists(final_path)) fail("cannot write the checkpoint %s: a file has that name", final_path.c_str());
  clean_up(out);
  try {
    make_folder(partial);
    write_contents(partial, contents);
    move_into_place(out, step);
  } catch (...) {
    try {
      remove_folder(partial);
    } catch (const Error&) {  // the first failure is the one to tell
    }
    throw;
  }
  prune(out, final_path, keep);
  return final_path;
}

int64_t checkpoint_step(const std::string& path) {
  std::string name = without_slashes(path);
  name = name.substr(name.rfind('/') + 1);
  if (name[0] == '.' && name.ends_with(".replaced")) name = name.substr(1, name.size() - 10);
  int64_t step = -1;
  if (name.compare(0, 5, "step_") != 0) return -1;
  std::from_chars(name.data() + 5, name.data() + name.size(), step);
  return step >= 0 && name == step_name(step) ? step : -1;
}

bool is_partial_checkpoint(const std::string& name) {
  return name.compare(0, 6, ".step_") == 0 && name.ends_with(".partial");
}

std::vector<std::string> list_checkpoints(const std::string& out) {
  std::vector<std::string> paths = candidates(without_slashes(out));
  paths.erase(std::remove_if(paths.begin(), paths.end(), [](const std::string& path) { return !is_whole(path); }),
              paths.end());
  return paths;
}

bool names_checkpoint(const std::string& path) {
  return checkpoint_step(path) >= 0 || file_exists(path + "/manifest.json");
}

Checkpoint find_checkpoint(const std::string& path, const std::string& else_do) {
  std::string bare = without_slashes(path);
  if (path.empty()) fail("the checkpoint's name is empty; give its folder, or that of its run");
  if (file_exists(bare)) fail("%s is a file; a checkpoint is a folder", path.c_str());
  std::vector<std::string> paths = {bare}, broken;
  bool named = names_checkpoint(bare);
  if (named && !folder_exists(bare) && folder_exists(set_aside(bare))) paths = {set_aside(bare)};
  if (!named) paths = candidates(bare);
  Checkpoint found;
  for (auto folder = paths.rbegin(); folder != paths.rend() && found.empty(); ++folder) try {
      found.names_ = check_sound(*folder);
      found.folder_ = *folder;
    } catch (const Error& error) {
      if (named) throw;
      broken.push_back(error.what());
    }
  if (found.empty() && !folder_exists(bare)) fail("%s: there is no such folder%s", bare.c_str(), else_do.c_str());
  if (paths.empty()) fail("%s: no checkpoint is there (no folder step_NNNNNNNN)%s", bare.c_str(), else_do.c_str());
  if (found.empty())
    fail("%s: none of its %zu checkpoints is whole; of the newest: %s", bare.c_str(), broken.size(), broken[0].c_str());
  for (const std::string& reason : broken)
    std::fprintf(stderr, "warning: skipping a broken checkpoint: %s\n", reason.c_str());
  return found;
}

bool Checkpoint::has(const std::string& name) const {
  return std::find(names_.begin(), names_.end(), name) != names_.end();
}

Json Checkpoint::read_json(const std::string& name) const { return parse_json(read_file(path(name)), path(name)); }

// Weights mean ids, and ids what the tokenizer says.
static void require_same_ids(const Tokenizer& now, const Tokenizer& then, const std::string& path) {
  for (int id = 0; id < std::min(now.vocab(), then.vocab()); ++id)
    if (now.bytes_of(id) != then.bytes_of(id))
      fail("--tokenizer is another than %s, which the weights know: from id %d on they differ", path.c_str(), id);
}

Tokenizer read_tokenizer(const Checkpoint& checkpoint, int vocab, int end_of_text, const TokenizerFlags& given) {
  std::string own = checkpoint.has("tokenizer.json") ? checkpoint.path("tokenizer.json") : "";
  std::string name = given.path.empty() ? own : given.path;
  if (name.empty()) {
    given.require_nothing(checkpoint.folder());
    if (vocab == Tokenizer().vocab()) return {};  // from before checkpoints had one
    if (end_of_text < 0)
      fail("%s: it holds no tokenizer.json, and no token of its model ends a text", checkpoint.folder().c_str());
    return Tokenizer::ids_only(vocab, end_of_text);
  }
  Tokenizer tokenizer = given.path.empty() ? Tokenizer::load(own) : given.load();
  if (tokenizer.vocab() > vocab)
    fail("%s has %d ids, but the model a vocabulary of %d", name.c_str(), tokenizer.vocab(), vocab);
  if (!own.empty() && !given.path.empty()) require_same_ids(tokenizer, Tokenizer::load(own), own);
  tokenizer = tokenizer.ending_with(end_of_text);
  given.require(tokenizer, name);
  return tokenizer;
}

std::string recorded_flag(const Checkpoint& checkpoint, const std::string& name) {
  std::string path = checkpoint.path("state.json");
  Json state = checkpoint.read_json("state.json");
  const Json& flags = state.get("flags", path);
  return flags.find(name) ? flags.get_string(name, path) : "";
}

int64_t recorded_seed(const Checkpoint& checkpoint) {
  std::string seed = recorded_flag(checkpoint, "seed");
  if (seed.empty() || seed.size() > 19 || seed.find_first_not_of("0123456789") != std::string::npos)
    fail("%s: flag `seed` should be a whole number, not \"%s\"", checkpoint.path("state.json").c_str(), seed.c_str());
  return int64_t(std::strtoull(seed.c_str(), nullptr, 10));
}
