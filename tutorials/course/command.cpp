#include "tutorials/course/command.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <thread>

#include "tensor/files.h"
#include "tutorials/course/grader.h"
#include "tutorials/course/kill_table.h"
#include "tutorials/course/results.h"

namespace pellucid::course {

namespace fs = std::filesystem;
using nlohmann::json;

namespace {

volatile std::sig_atomic_t stopped = 0;

std::string command(const std::string& arguments) {
  const char* program = std::getenv("PELLUCID_COMMAND");
  return std::string(program ? program : "./pellucid") + " grade " + arguments;
}

// What `--hint` has to remember between two calls: the first check that failed, and how many hints
// of each check were shown. A damaged file only begins anew.
struct Progress {
  std::string path;
  std::string failed;
  std::map<std::string, std::size_t> shown;

  explicit Progress(const Exercise& e)
      : path(e.folder + "/hints.json"), failed(e.checks.at(0).name) {
    if (!fs::exists(path)) return;
    const json j = json::parse(read_file(path), nullptr, false);
    if (!j.is_object() || !j.contains("failed") || !j.contains("shown")) return;
    try {
      failed = j["failed"].get<std::string>();
      shown = j["shown"].get<decltype(shown)>();
    } catch (const json::exception&) {
      shown.clear();
    }
  }
  void save() const {
    write_file_atomically(path, json{{"failed", failed}, {"shown", shown}}.dump(2) + "\n");
  }
};

void say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

// The points of one grading.
int grade_once(const Exercise& exercise, const GradeArguments& a) {
  const std::string own = exercise.file;
  const Grade result = grade(exercise, a.file.empty() ? own : a.file, a.seed);
  say(to_text(exercise, result));
  if (!a.junit.empty()) write_file_atomically(a.junit, to_junit(exercise, result));
  if (!a.gradescope.empty()) write_file_atomically(a.gradescope, to_gradescope(exercise, result));
  Progress progress(exercise);
  const auto failed = std::find_if(result.checks.begin(), result.checks.end(),
                                   [](const CheckGrade& c) { return !c.passed; });
  progress.failed = failed == result.checks.end() ? "" : failed->check.name;
  progress.save();
  if (failed != result.checks.end()) say("A hint: " + command(exercise.name + " --hint") + "\n");
  return result.points();
}

int show_hint(const Exercise& exercise) {
  Progress progress(exercise);
  if (progress.failed.empty()) {
    say("All checks passed the last time: there is nothing left to hint at.\n");
    return 0;
  }
  const auto found = exercise.hints.find(progress.failed);
  const std::size_t all = found == exercise.hints.end() ? 0 : found->second.size();
  std::size_t& shown = progress.shown[progress.failed];
  if (shown >= all) {
    say("No more hints for " + progress.failed + ". The library's own solution is " +
        exercise.replaces + ".\nTo see its hints again: rm " + progress.path + "\n");
    return 0;
  }
  say("Hint " + std::to_string(shown + 1) + " of " + std::to_string(all) + " for " +
      progress.failed + ":\n" + found->second[shown] + "\n");
  ++shown;
  progress.save();
  return 0;
}

fs::file_time_type saved_at(const std::string& file) {
  std::error_code missing;  // editors replace a file: for a moment there is none
  return fs::last_write_time(file, missing);
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
  }
  return 128 + SIGINT;
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
  if (a.hint) return show_hint(exercise);
  if (a.kill_table) {
    const KillTable table = kill_table(exercise, say);
    return table.escaped == 0 ? 0 : 1;
  }
  for (const std::string& path : {a.junit, a.gradescope})
    if (!path.empty()) check_writable(path);
  if (a.watch) return watch(exercise, a);
  const int points = grade_once(exercise, a);
  return a.require_full && points < exercise.points() ? 1 : 0;
}

}  // namespace pellucid::course
