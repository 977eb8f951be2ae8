// The smallest model that still has every part: two layers and heads, dropout on. It is there to
// try the program and for its tests, not to write well: its numbers were chosen for a run of
// seconds.
#include "tutorials/demos/presets.h"

namespace pellucid::demos {

nn::TrainConfig preset_tiny() {
  nn::TrainConfig config;
  config.model.block_size = 32;
  config.model.n_layer = 2;
  config.model.n_head = 2;
  config.model.n_embd = 32;
  config.model.dropout = 0.1;
  config.model.norm = "rms_norm";
  config.model.position = "rope";
  config.model.bias = false;
  config.batch_size = 8;
  config.steps = 200;
  config.warmup = 20;
  config.lr = 3e-3;
  config.min_lr = 3e-4;
  config.eval_interval = 100;
  return config;
}

}  // namespace pellucid::demos
