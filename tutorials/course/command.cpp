#include "tutorials/course/command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tensor/files.h"
#include "tutorials/course/grader.h"
#include "tutorials/course/kill_table.h"
#include "tutorials/course/results.h"
#include "tutorials/demos/command_line.h"

namespace pellucid::course {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

volatile std::sig_atomic_t stopped = 0;

// The command line that grades this exercise in the same build, with other options.
std::string command(const Exercise& exercise, const GradeArguments& a, const std::string& options) {
  const char* program = std::getenv("PELLUCID_COMMAND");
  return std::string(program ? program : "./pellucid") + " grade " + exercise.name +
         (a.student_build ? " --student-build" : "") + options;
}

// Changes when the file does; "" if there is none.
std::string fingerprint(const std::string& file) {
  std::error_code none;
  if (!fs::is_regular_file(file, none)) return "";
  return std::to_string(std::hash<std::string>{}(read_file(file)));
}

// What `--hint` has to remember between two calls: of the last grading the file, the first check
// that failed, or why nothing was run; and how many hints of each check were shown. A damaged file
// only begins anew.
struct Progress {
  std::string path;
  std::string failed;
  std::string refused = {};                 // in one line
  std::string file = {}, fingerprint = {};  // "": nothing was graded yet
  std::map<std::string, std::size_t> shown;

  explicit Progress(const Exercise& e) : Progress(e.folder + "/hints.json", e.checks.at(0).name) {
    if (!fs::is_regular_file(path)) return;
    Progress kept(path, "");
    try {
      const json j = json::parse(read_file(path));
      kept.failed = j.at("failed").get<std::string>();
      kept.refused = j.value("refused", "");
      kept.file = j.value("file", "");
      kept.fingerprint = j.value("fingerprint", "");
      for (const auto& [check, count] : j.at("shown").get_ref<const json::object_t&>())
        kept.shown[check] =
            static_cast<std::size_t>(count.get_ref<const json::number_unsigned_t&>());
    } catch (const json::exception&) {
      return;
    }
    const bool known = std::any_of(e.checks.begin(), e.checks.end(),
                                   [&](const ExerciseCheck& c) { return c.name == kept.failed; });
    if (known || kept.failed.empty()) *this = kept;
  }
  Progress(std::string place, std::string check)
      : path(std::move(place)), failed(std::move(check)) {}
  void save() const {
    const json j = {{"failed", failed},
                    {"refused", refused},
                    {"file", file},
                    {"fingerprint", fingerprint},
                    {"shown", shown}};
    write_file_atomically(path, j.dump(2, ' ', true, json::error_handler_t::replace) + "\n");
  }
};

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// Why nothing was run, with the first error; "" if all was.
std::string refusal(const Grade& result) {
  if (result.refused.empty()) return "";
  const std::vector<std::string>& faults = result.faults;
  auto first = std::find_if(faults.begin(), faults.end(), [](const std::string& fault) {
    return fault.find("error: ") != std::string::npos;
  });
  if (first == faults.end()) first = faults.begin();
  return fs::path(result.file).filename().string() + " " + result.refused +
         (first == faults.end() ? "" : ": " + printable(*first));
}

// The points of one grading.
int grade_once(const Exercise& exercise, const GradeArguments& a) {
  const std::string file = a.file.empty() ? exercise.file : a.file;
  const Grade result = grade(exercise, file, a.seed);
  say(to_text(exercise, result));
  if (!a.junit.empty()) write_file_atomically(a.junit, to_junit(exercise, result));
  if (!a.gradescope.empty()) write_file_atomically(a.gradescope, to_gradescope(exercise, result));
  Progress progress(exercise);
  const auto failed = std::find_if(result.checks.begin(), result.checks.end(),
                                   [](const CheckGrade& c) { return !c.passed; });
  progress.failed = failed == result.checks.end() ? "" : failed->check.name;
  progress.refused = refusal(result);
  progress.file = fs::absolute(file).string();
  progress.fingerprint = fingerprint(file);
  progress.save();
  if (result.refused.empty() && failed != result.checks.end())
    say("A hint: " + command(exercise, a, " --hint " + progress.failed) + "\n");
  return result.points();
}

// The hints of one check; none is a list too.
const std::vector<std::string>& hints_of(const Exercise& exercise, const std::string& check) {
  static const std::vector<std::string> none;
  const auto found = exercise.hints.find(check);
  return found == exercise.hints.end() ? none : found->second;
}

std::string hint_text(const Exercise& exercise, const std::string& check, std::size_t number) {
  const std::vector<std::string>& hints = hints_of(exercise, check);
  return "Hint " + std::to_string(number + 1) + " of " + std::to_string(hints.size()) + " for " +
         check + ":\n" + hints[number] + "\n";
}

std::string names_of(const std::vector<ExerciseCheck>& checks) {
  std::string names;
  for (const ExerciseCheck& c : checks) names += (names.empty() ? "" : ", ") + c.name;
  return names;
}

// How to ask for the hints of one check.
std::string choice(const Exercise& exercise, const GradeArguments& a) {
  return "For a check that you choose: " + command(exercise, a, " --hint CHECK") +
         "\nwhere CHECK is one of " + names_of(exercise.checks) + "\n";
}

int show_next_hint(const Exercise& exercise, const GradeArguments& a) {
  Progress progress(exercise);
  const std::string check = a.check.empty() ? progress.failed : a.check;
  const bool known = std::any_of(exercise.checks.begin(), exercise.checks.end(),
                                 [&](const ExerciseCheck& c) { return c.name == check; });
  const bool changed = !progress.file.empty() && fingerprint(progress.file) != progress.fingerprint;
  if (a.check.empty() && changed)
    say("By the grading before your last change: grade again to be up to date.\n");
  if (a.check.empty() && !progress.refused.empty()) {
    say(progress.refused + "\nHints begin when that is mended. " + choice(exercise, a));
  } else if (check.empty()) {
    say("All checks passed the last time: there is nothing left to hint at.\n");
  } else if (!known) {
    throw std::runtime_error("grade: " + exercise.name + " has no check \"" + check +
                             "\"; there are: " + names_of(exercise.checks));
  } else if (std::size_t& shown = progress.shown[check]; shown < hints_of(exercise, check).size()) {
    say(hint_text(exercise, check, shown++));
    progress.save();
  } else {
    say("No more hints for " + check + ". To see them again: " + command(exercise, a, " --hints") +
        "\nThe library's own solution is " + exercise.replaces + ".\n");
  }
  return 0;
}

int show_given_hints(const Exercise& exercise, const GradeArguments& a) {
  Progress progress(exercise);
  std::string text;
  for (const ExerciseCheck& c : exercise.checks)
    for (std::size_t i = 0; i < hints_of(exercise, c.name).size() && i < progress.shown[c.name];
         ++i)
      text += hint_text(exercise, c.name, i);
  if (text.empty())
    text = "No hint was given yet. The first: " + command(exercise, a, " --hint") + "\n";
  say(text + choice(exercise, a));
  return 0;
}

fs::file_time_type saved_at(const std::string& file) {
  std::error_code missing;  // editors replace a file: for a moment there is none
  return fs::last_write_time(file, missing);
}

// Stands between two gradings.
void say_rule() {
  const std::time_t now = std::time(nullptr);
  char text[100];
  std::strftime(text, sizeof text, "---- %H:%M:%S ", std::localtime(&now));
  say(text + std::string(70, '-') + "\n\n");
}

int watch(const Exercise& exercise, const GradeArguments& a) {
  struct sigaction action {};
  action.sa_handler = [](int) { stopped = 1; };
  sigaction(SIGINT, &action, nullptr);
  const std::string file = a.file.empty() ? exercise.file : a.file;
  while (!stopped) {
    const auto seen = saved_at(file);
    try {
      grade_once(exercise, a);
    } catch (const std::exception& error) {
      if (!stopped) say(std::string("pellucid: ") + error.what() + "\n");
    }
    say("\nWaiting for you to save " + fs::path(file).filename().string() +
        "; Ctrl-C ends this.\n\n");
    while (!stopped && (saved_at(file) == seen || !fs::exists(file)))
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    if (!stopped) say_rule();
  }
  return 128 + SIGINT;
}

bool same_file(const std::string& a, const std::string& b) {
  return fs::weakly_canonical(fs::absolute(a)) == fs::weakly_canonical(fs::absolute(b));
}

// What would be overwritten: a file of results, or what it is called while it is written, is
// another file of this grading. "" if none is.
std::string clash(const Exercise& exercise, const GradeArguments& a) {
  const struct {
    const char* name;
    std::string path;
    bool written;
  } files[] = {{"the graded file", a.file.empty() ? exercise.file : a.file, false},
               {"the exercise's own file", exercise.file, false},
               {"--junit", a.junit, true},
               {"--gradescope", a.gradescope, true}};
  for (const auto& one : files)
    for (const auto& other : files) {
      if (&one == &other || one.path.empty() || other.path.empty() || !other.written) continue;
      if (&one < &other && same_file(one.path, other.path))
        return std::string(one.name) + " and " + other.name + " are the same file, " + other.path;
      if (same_file(one.path, other.path + ".tmp"))
        return std::string(other.name) + " is called " + other.path +
               ".tmp while it is written, as " + one.name + " is: give it another name";
    }
  return "";
}

void list_exercises() {
  for (const std::string& name : exercise_names()) {
    const Exercise e = read_exercise(name);
    std::printf("%-14s %3d points  %s\n", name.c_str(), e.points(), e.title.c_str());
  }
}

}  // namespace

int grade_command(const GradeArguments& a) {
  if (a.exercise.empty()) {
    list_exercises();
    return 0;
  }
  const Exercise exercise = read_exercise(a.exercise);
  if (a.hint) return show_next_hint(exercise, a);
  if (a.hints) return show_given_hints(exercise, a);
  if (a.kill_table) {
    const KillTable table = kill_table(exercise, say);
    return table.escaped == 0 ? 0 : 1;
  }
  if (const std::string both = clash(exercise, a); !both.empty())
    return demos::wrong(both, {"grade", "--help"});
  for (const std::string& path : {a.junit, a.gradescope})
    if (!path.empty()) check_writable(path);
  if (a.watch) return watch(exercise, a);
  const int points = grade_once(exercise, a);
  return a.require_full && points < exercise.points() ? 1 : 0;
}

}  // namespace pellucid::course
