#include "tutorials/demos/presets.h"

#include <algorithm>

#include "tensor/check.h"
#include "tensor/files.h"
#include "tensor/json.h"
#include "tutorials/demos/command_line.h"

namespace pellucid::demos {
namespace {

using nlohmann::json;

// {"name", R"json(...)json"}, ... of each file: CMake writes it.
constexpr const char* kFiles[][2] = {
#include "presets.inc"
};

constexpr int64_t kAnyVocabulary = 1;  // until the text's is known

Preset parse(const std::string& name, const std::string& text) {
  json j = parse_json(text);
  CHECK_ARG(j.is_object(), "wanted a JSON object with the settings; got ", j.dump());
  Preset preset;
  preset.name = name;
  if (j.contains("about")) j.at("about").get_to(preset.about), j.erase("about");
  if (j.contains("why")) j.at("why").get_to(preset.why), j.erase("why");
  preset.values = std::move(j);
  to_config(preset.values, kAnyVocabulary);
  return preset;
}

std::string nearest(const std::string& key, std::vector<std::string> names) {
  std::stable_sort(names.begin(), names.end(), [&](const auto& a, const auto& b) {
    return spelling_distance(key, a) < spelling_distance(key, b);
  });
  return names[0] + ", " + names[1] + ", " + names[2];
}

// Refuses the first key of an object that has none of that name among `known`.
void check_keys(const json& object, const json& known) {
  std::vector<std::string> names;
  for (const auto& [name, value] : known.items())
    if (name != "vocab_size") names.push_back(name);
  for (const auto& [key, value] : object.items())
    CHECK_ARG(known.contains(key), "unknown key \"", key, "\"; the nearest are ",
              nearest(key, names));
}

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> all = [] {
    std::vector<Preset> list;
    for (const auto& [name, text] : kFiles) list.push_back(parse(name, text));
    return list;
  }();
  return all;
}

std::string preset_names() {
  std::string names;
  for (const Preset& preset : presets()) names += (names.empty() ? "" : ", ") + preset.name;
  return names;
}

const Preset& find_preset(const std::string& name) {
  for (const Preset& preset : presets())
    if (name == preset.name) return preset;
  std::string meant;
  double least = 0.4;  // of the letters: what is farther is another word
  for (const Preset& preset : presets())
    if (const double d = spelling_distance(name, preset.name); d < least)
      meant = "did you mean " + preset.name + "? ", least = d;
  throw UsageError("no preset is called \"" + name + "\"; " + meant +
                   "there are: " + preset_names());
}

json read_values(const std::string& path) {
  const std::string text = read_file(path);
  try {
    return parse(path, text).values;
  } catch (const json::parse_error& error) {
    const auto begin = text.begin();
    const auto at = begin + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    fail(path, ": is not JSON, as line ", 1 + std::count(begin, at, '\n'),
         " shows; give a file in the form of a preset");
  } catch (const json::exception&) {
    fail(path, ": \"about\" must be a string and \"why\" an object of strings");
  } catch (const std::invalid_argument& error) {
    fail(path, ": ", error.what());
  }
}

void set_value(json& values, const std::string& assignment) {
  const std::size_t at = assignment.find('=');
  if (at == std::string::npos || at == 0)
    throw UsageError("--set " + assignment + ": wanted key=value, such as n_layer=4");
  const std::string key = assignment.substr(0, at), text = assignment.substr(at + 1);
  if (key == "vocab_size")
    throw UsageError("--set " + assignment + ": vocab_size follows from the text; leave it out");

  nn::TrainConfig any;
  const json known = any;
  const bool of_model = known.at("model").contains(key);
  if (!of_model && (key == "model" || !known.contains(key))) {
    std::vector<std::string> names;
    for (const json& group : {known, known.at("model")})
      for (const auto& [name, value] : group.items())
        if (name != "model" && name != "vocab_size") names.push_back(name);
    throw UsageError("--set " + assignment + ": unknown key \"" + key + "\"; the nearest are " +
                     nearest(key, names));
  }
  json value = json::parse(text, nullptr, false);
  if (value.is_discarded()) value = text;
  (of_model ? values["model"] : values)[key] = value;
  if (key == "steps") values.erase("minutes");
  if (key == "minutes") values.erase("steps");
}

nn::TrainConfig to_config(json values, int64_t vocab_size) {
  CHECK_ARG(values.contains("model") && values.at("model").is_object(),
            "wanted the model's settings as an object under \"model\"");
  CHECK_ARG(!values.at("model").contains("vocab_size"),
            "vocab_size follows from the text; leave it out");
  const json known = nn::TrainConfig{};
  check_keys(values, known), check_keys(values.at("model"), known.at("model"));
  values["model"]["vocab_size"] = vocab_size;
  return values.get<nn::TrainConfig>();
}

nn::TrainConfig make_config(const std::string& preset, const std::string& file,
                            const std::vector<std::string>& assignments) {
  json values = file.empty() ? find_preset(preset).values : read_values(file);
  for (const std::string& assignment : assignments) set_value(values, assignment);
  try {
    return to_config(values, kAnyVocabulary);
  } catch (const std::invalid_argument& error) {
    throw UsageError("--set: " + std::string(error.what()));
  }
}

}  // namespace pellucid::demos
