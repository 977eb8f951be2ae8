#include "tutorials/demos/presets.h"

#include "tensor/check.h"

namespace pellucid::demos {

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = {
      {"tiny", "27 thousand parameters, seconds: to see that everything works", preset_tiny},
      {"shakespeare", "for a text of about a megabyte, some minutes on two cores",
       preset_shakespeare},
  };
  return all;
}

std::string preset_names() {
  std::string names;
  for (const Preset& preset : presets())
    names += (names.empty() ? "" : ", ") + std::string(preset.name);
  return names;
}

nn::TrainConfig find_preset(const std::string& name) {
  for (const Preset& preset : presets())
    if (name == preset.name) return preset.config();
  fail("no preset is called \"", name, "\"; there are: ", preset_names());
}

}  // namespace pellucid::demos
