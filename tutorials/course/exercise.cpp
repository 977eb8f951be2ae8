#include "tutorials/course/exercise.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "tensor/files.h"
#include "tensor/json.h"
#include "tutorials/demos/command_line.h"

namespace pellucid::course {

namespace fs = std::filesystem;
using nlohmann::json;

std::string source_folder() { return PELLUCID_SOURCE_DIR; }
std::string build_folder() { return PELLUCID_BUILD_DIR; }

std::vector<std::string> exercise_names() {
  std::vector<std::string> names;
  std::error_code none;
  for (const auto& lesson : fs::directory_iterator(source_folder() + "/tutorials", none))
    for (const auto& entry : fs::directory_iterator(lesson.path(), none)) {
      const std::string part = entry.path().filename().string();
      if (part.rfind("exercise", 0) == 0 && fs::exists(entry.path() / "exercise.json"))
        names.push_back(lesson.path().filename().string() + part.substr(8));
    }
  std::sort(names.begin(), names.end());
  return names;
}

// Of the names that a lesson's folder begins, "NN-lesson" is in exercise, "NN-lesson-part" in
// exercise-part.
static std::string place_of(const std::string& name) {
  for (std::size_t end = name.size(); end != std::string::npos && end > 0;
       end = name.rfind('-', end - 1)) {
    const std::string place =
        source_folder() + "/tutorials/" + name.substr(0, end) + "/exercise" + name.substr(end);
    if (fs::exists(place + "/exercise.json")) return place;
  }
  throw std::runtime_error("grade: no folder of exercise " + name);
}

std::string source_of(const std::string& object) {
  const std::string path = fs::path(object).lexically_normal().generic_string();
  const std::size_t begin = path.find(".dir/"), end = path.rfind(".o");
  return begin == std::string::npos ? path : path.substr(begin + 5, end - begin - 5);
}

std::string Exercise::library_object() const {
  for (const std::string& o : library)
    if (source_of(o) == replaces) return o;
  throw std::runtime_error("exercise " + name + ": no object of " + replaces + " in the library");
}

int Exercise::points() const {
  int sum = 0;
  for (const ExerciseCheck& check : checks) sum += check.points;
  return sum;
}

static void read_manifest(Exercise& e, const json& j) {
  e.title = j.at("title");
  e.file = e.place + "/" + j.at("file").get<std::string>();
  e.replaces = j.at("replaces");
  e.header = j.at("header");
  e.seconds = j.at("seconds");
  e.megabytes = j.at("megabytes");
  for (const json& check : j.at("checks"))
    e.checks.push_back({check.at("name"), check.at("says"), check.at("points")});
  e.hints = j.at("hints").get<decltype(e.hints)>();
  if (j.contains("templates")) e.templates = j.at("templates").get<std::vector<std::string>>();
  e.calls = j.at("calls").get<std::vector<std::string>>();
  e.inlines = j.at("inlines").get<std::vector<std::string>>();
}

// One of CMake's lists.
static std::vector<std::string> split(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream in(list);
  for (std::string part; std::getline(in, part, ';');) parts.push_back(part);
  return parts;
}

static std::string without_folders(std::string name) {
  for (const std::string before : {"./", "tutorials/"})
    if (name.rfind(before, 0) == 0) name.erase(0, before.size());
  while (name.ends_with('/')) name.pop_back();
  const std::string folder = "/exercise";  // LESSON/exercise, LESSON/exercise-PART
  if (const std::size_t at = name.find(folder); at != std::string::npos)
    name.erase(at, folder.size());
  return name;
}

// The name that `text` is probably meant for, or "".
static std::string nearest(const std::string& text, const std::vector<std::string>& names) {
  constexpr double kFar = 0.3;  // of the letters
  std::string found;
  double least = 1;
  for (const std::string& name : names) {
    const double d = demos::spelling_distance(text, name);
    const bool part = text.size() > 1 && name.find(text) != std::string::npos;
    if ((part || d <= kFar) && d < least) found = name, least = d;
  }
  return found;
}

Exercise read_exercise(const std::string& text) {
  const std::string name = without_folders(text);
  const std::vector<std::string> names = exercise_names();
  if (names.empty())
    throw std::runtime_error("grade: no exercises in " + source_folder() +
                             "/tutorials: grade needs the folder that this program was built from");
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    const std::string meant = nearest(name, names);
    if (!meant.empty())
      throw std::runtime_error("grade: no exercise \"" + text + "\"; did you mean " + meant + "?");
    std::string list;
    for (const std::string& known : names) list += (list.empty() ? "" : ", ") + known;
    throw std::runtime_error("grade: no exercise \"" + text + "\"; there are: " + list);
  }
  Exercise e;
  e.name = name;
  e.place = place_of(name);
  const std::string manifest = e.place + "/exercise.json";
  e.folder = build_folder() + "/exercises/" + name;
  try {
    read_manifest(e, parse_json(read_file(manifest)));
    const json objects = json::parse(read_file(e.folder + "/objects.json"));
    e.target = objects.at("target");
    e.program = objects.at("program");
    e.object = objects.at("file");
    e.library = split(objects.at("library"));
    e.system_folders = split(objects.at("system_folders"));
  } catch (const json::exception& error) {
    throw std::runtime_error(manifest + ": " + error.what());
  } catch (const std::invalid_argument& error) {
    throw std::runtime_error(manifest + ": " + error.what());
  }
  return e;
}

}  // namespace pellucid::course
