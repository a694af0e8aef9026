#include "model.h"

#include <cmath>
#include <cstring>

#include "checkpoint.h"
#include "error.h"
#include "files.h"
#include "json.h"

ModelConfig read_config(const std::string& checkpoint) {
  std::string path = checkpoint + "/config.json";
  return config_from_json(parse_json(read_file(path), path), path);
}

void read_params(Model& model, const std::string& checkpoint) {
  verify_checkpoint(checkpoint);
  SafetensorsFile file(checkpoint + "/model.safetensors");
  load_params(model.layout, model.block.data(), file);
}

void init_from(Model& model, const std::string& checkpoint) {
  verify_checkpoint(checkpoint);
  SafetensorsFile file(checkpoint + "/model.safetensors");
  for (const TensorView& t : file.tensors())
    if (!model.layout.find(t.name) && t.name.rfind("latent_feedback.", 0) != 0)
      fail("--init-from %s: tensor %s has no place in this model", file.path().c_str(), t.name.c_str());
  for (const Param& p : model.layout.params) {
    if (p.feedback && !file.find(p.name)) continue;
    std::memcpy(model.block.data() + p.offset, file.floats(p.name, p.shape()), p.size() * sizeof(float));
  }
}

const Kernels& kernels_for(const std::string& device) {
  if (device == "cuda") fail("--device cuda: this build has no CUDA kernels; use --device cpu or auto");
  return cpu_kernels();
}
