#include "tutorials/demos/presets.h"

namespace pellucid::demos {

nn::TrainConfig preset_shakespeare() {
  nn::TrainConfig config;
  config.model.block_size = 128;
  config.model.n_layer = 4;
  config.model.n_head = 4;
  config.model.n_embd = 128;
  config.model.dropout = 0.1;
  config.model.norm = "rms_norm";
  config.model.position = "rope";
  config.model.bias = false;
  config.batch_size = 16;
  config.steps = 5000;
  config.warmup = 100;
  config.lr = 2e-3;
  config.min_lr = 2e-4;
  config.eval_interval = 250;
  return config;
}

}  // namespace pellucid::demos
