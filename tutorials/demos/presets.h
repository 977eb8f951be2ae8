// The settings that `pellucid train --preset NAME` knows, those of a file (--config), and single
// values (--set).
//
// A preset is a JSON file: presets/NAME.json, which the program has within itself. It holds the
// fields of nn::TrainConfig, those of its model under "model", and on every value a sentence why:
//
//   {"about": "...", "model": {"n_layer": 2, ...}, "steps": 200, ..., "why": {"n_layer": "..."}}
//
// Fields that are left out have their defaults. The model's vocab_size follows from the text.
#pragma once
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "nn/trainer.h"

namespace pellucid::demos {

// What is wrong with a command line though each of its words is right: exit code 2, as for others.
struct UsageError : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

struct Preset {
  std::string name, about;
  nlohmann::json values;                   // {"model": {...}, "steps": ...}
  std::map<std::string, std::string> why;  // of each key
};
const std::vector<Preset>& presets();
std::string preset_names();                          // "tiny, demo, ..."
const Preset& find_preset(const std::string& name);  // UsageError with the names that there are

// The values of a file in a preset's form; "about" and "why" may be missing. Throws with the path.
nlohmann::json read_values(const std::string& path);

// Sets one value, of training or of the model: "n_layer=4". What stands after = is JSON, or else a
// string. UsageError, with the nearest names, if there is no such key. Setting steps ends minutes
// and the other way round.
void set_value(nlohmann::json& values, const std::string& assignment);

// All checks are nn::TrainConfig's.
nn::TrainConfig to_config(nlohmann::json values, int64_t vocab_size);

// What train was asked for: the preset's values, or the file's, changed by the assignments.
nn::TrainConfig make_config(const std::string& preset, const std::string& file,
                            const std::vector<std::string>& assignments);

}  // namespace pellucid::demos
