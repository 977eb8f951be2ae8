// The exercises' graders examined: the stub gets nothing, the library's own file everything, each
// mistake of kills.txt loses exactly its points, and each trick gets nothing.
#include "tutorials/course/kill_table.h"

#include <doctest/doctest.h>

#include <iostream>

#include "tutorials/course/grader.h"
#include "tutorials/course/process.h"

using namespace pellucid::course;

TEST_CASE("no solution of the kill tables escapes") {
  CHECK(!exercise_names().empty());
  for (const std::string& name : exercise_names()) {
    const Exercise exercise = read_exercise(name);
    int mistakes = 0, tricks = 0;
    for (const Kill& kill : read_kills(exercise))
      ++(kill.refused.empty() && kill.loses.size() < exercise.checks.size() ? mistakes : tricks);
    CHECK(mistakes >= 8);
    CHECK(tricks >= 12);
    std::string text;
    const KillTable table = kill_table(exercise, [&](const std::string& line) { text += line; });
    INFO(text);
    CHECK(table.escaped == 0);
    std::cout << "FIGURE | kill table of " << name << ", solutions seen through | " << table.killed
              << "\n";
  }
}

TEST_CASE("twenty seeds, any order, and each check alone: the library's own file passes") {
  for (const std::string& name : exercise_names()) {
    const Exercise exercise = read_exercise(name);
    const std::string library = source_folder() + "/" + exercise.replaces;
    REQUIRE(grade(exercise, library, 1).points() == exercise.points());
    const auto passes = [&](uint64_t seed, const std::vector<std::string>& checks) {
      std::string input = "key " + std::to_string(seed);
      for (const std::string& check : checks) input += " " + check;
      std::size_t passed = 0;
      for (const std::string& line :
           run_limited({exercise.program}, input + "\n", {.seconds = 20}).lines)
        passed += line.rfind("key pass ", 0) == 0;
      return passed == checks.size();
    };
    std::vector<std::string> checks;
    for (const ExerciseCheck& check : exercise.checks) checks.push_back(check.name);
    for (uint64_t seed = 1; seed <= 20; ++seed) {
      INFO(name << ", seed " << seed);
      CHECK(passes(seed, checks));
      std::rotate(checks.begin(), checks.begin() + 1, checks.end());
    }
    for (const std::string& check : checks) {
      INFO(name << ", " << check);
      CHECK(passes(7, {check}));
    }
  }
}
