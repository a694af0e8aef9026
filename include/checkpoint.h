// Checkpoints: folders that are whole or absent.
//
//   OUT/step_00001000/  model.safetensors      the parameters, by the names of docs/model.md
//                       config.json            the model
//                       optimizer.safetensors  moments, by "<kind>.<parameter>"
//                       state.json             step, data position, flags, …: what a resumed run continues from
//                       tokenizer.json         what text its tokens are; none where only their ids are known
//                       manifest.json          {"format": 1, "files": {name: {"bytes": n, "crc32c": "89abcdef"}}},
//                       written last
//
// Written as OUT/.step_00001000.partial, synced, then renamed. A folder under its final name with a manifest that holds
// is whole. Where a step is saved again, the old folder waits as OUT/.step_00001000.replaced until the new one has its
// name: a kill in between leaves one of them, and everything below finds it.
#pragma once
#include <string>
#include <vector>

#include "json.h"
#include "safetensors.h"
#include "tokenizer_flags.h"

struct CheckpointContents {
  std::vector<TensorView> model, optimizer;
  Json config, state;
  std::string tokenizer = {};  // tokenizer.json; empty: none
};

// Which checkpoints stay: those of steps that are multiples of `every` for good (0: none), and of the others the newest
// (0: all).
struct Keep {
  int newest = 0;
  int64_t every = 0;
  bool for_good(int64_t step) const { return every > 0 && step % every == 0; }
};

// Writes OUT/step_%08d and returns its path; then removes whole checkpoints that need not stay, never the one just
// written; an old one that cannot be removed is a warning. A failure (a full disk, an unwritable
// folder) leaves every earlier checkpoint as it was and removes the partial one. Partial folders that a kill left
// behind are removed first. Saving a step that is already there replaces it, still never leaving none. One process at a
// time may save in OUT (see FolderLock).
std::string save_checkpoint(const std::string& out, int64_t step, const CheckpointContents& contents, Keep keep);

// The step in a folder's name (step_00001000 → 1000), or −1.
int64_t checkpoint_step(const std::string& path);
bool is_partial_checkpoint(const std::string& name);  // is it the name of one that is being written?
// Whole checkpoints in OUT by increasing step; whole: the manifest's files are there with their sizes, and the folder's
// name is that of its step. To read one, go by find_checkpoint. Empty where there is no such folder.
std::vector<std::string> list_checkpoints(const std::string& out);
// A checkpoint that was found and read against its manifest. Only find_checkpoint makes one, and all that reads a
// checkpoint takes one.
class Checkpoint {
 public:
  Checkpoint() = default;  // none
  bool empty() const { return folder_.empty(); }
  const std::string& folder() const { return folder_; }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  bool has(const std::string& name) const;  // does the manifest list it?
  Json read_json(const std::string& name) const;

 private:
  friend Checkpoint find_checkpoint(const std::string& path, const std::string& else_do);
  std::string folder_;
  std::vector<std::string> names_;
};

// The door to checkpoints. `path` names one, which is it or a failure; or a run's folder, of which the newest sound one
// is meant: each newer one that is broken is a warning line on stderr. Sound: every file is there, as long and with the
// checksum as the manifest says, so that all of a checkpoint is read here, once; and a folder with a step's name holds
// that step. Fails, saying what is there, where there is no sound one; `else_do` ends the line where there is none at
// all.
Checkpoint find_checkpoint(const std::string& path, const std::string& else_do = "");
// A flag of the run that made a checkpoint, as its state.json has it; empty where it has none, for older runs do not have
// every flag.
std::string recorded_flag(const Checkpoint&, const std::string& name);
int64_t recorded_seed(const Checkpoint&);  // --seed
// For programs that read what `--model` names.
constexpr const char* kTrainOrNameAModel = "; ./train makes one, --model names another";
// Does a path name a checkpoint, whole or not, rather than a run's folder?
bool names_checkpoint(const std::string& path);
// The tokenizer of a checkpoint's model, which ends a text as that does: its own, or the one given; ids only where there
// is neither. Fails where the one given has other ids, or the flags say otherwise.
Tokenizer read_tokenizer(const Checkpoint&, int vocab, int end_of_text, const TokenizerFlags& given = {});
