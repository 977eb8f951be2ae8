// The settings that `pellucid train --preset NAME` knows. Each is a function in a file of its own,
// preset_NAME.cpp, whose head says how its numbers were found.
#pragma once
#include <string>
#include <vector>

#include "nn/trainer.h"

namespace pellucid::demos {

nn::TrainConfig preset_tiny();
nn::TrainConfig preset_shakespeare();

struct Preset {
  const char* name;
  const char* about;
  nn::TrainConfig (*config)();  // vocab_size is not set: it comes from the data
};
const std::vector<Preset>& presets();
std::string preset_names();                            // "tiny, shakespeare"
nn::TrainConfig find_preset(const std::string& name);  // throws with the names that there are

}  // namespace pellucid::demos
