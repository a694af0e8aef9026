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
#include "tokenizer.h"

struct CheckpointContents {
  std::vector<TensorView> model, optimizer;
  Json config, state;
  std::string tokenizer = {};  // tokenizer.json; empty: none
};

// Writes OUT/step_%08d and returns its path; then keeps only the newest `keep` whole checkpoints (0: all), the one just
// written always among them; an old one that cannot be removed is a warning. A failure (a full disk, an unwritable
// folder) leaves every earlier checkpoint as it was and removes the partial one. Partial folders that a kill left
// behind are removed first. Saving a step that is already there replaces it, still never leaving none. One process at a
// time may save in OUT (see FolderLock).
std::string save_checkpoint(const std::string& out, int64_t step, const CheckpointContents& contents, int keep);

// The step in a folder's name (step_00001000 → 1000), or −1.
int64_t checkpoint_step(const std::string& path);
bool is_partial_checkpoint(const std::string& name);  // is it the name of one that is being written?
// Whole checkpoints in OUT by increasing step; whole: the manifest's files are there with their sizes (checksums are
// verified by verify_checkpoint). Empty where there is no such folder.
std::vector<std::string> list_checkpoints(const std::string& out);
// `path` is a checkpoint's folder, or an OUT whose latest checkpoint is meant. Fails, saying what was found, where
// there is none.
std::string find_checkpoint(const std::string& path);
// The newest checkpoint of OUT whose checksums hold, skipping broken newer ones with a warning line for each on stderr;
// fails as find_checkpoint does where there is none.
std::string latest_sound_checkpoint(const std::string& out);
// Checks every file against the manifest; fails by naming the file that is missing, truncated or changed.
void verify_checkpoint(const std::string& path);
// The tokenizer of a checkpoint's model: ids only where it has none.
Tokenizer read_tokenizer(const std::string& checkpoint, int vocab, int end_of_text);
// One of a checkpoint's JSON files; its checksum is looked at before anything is made of it.
Json read_checkpoint_json(const std::string& checkpoint, const std::string& name);
