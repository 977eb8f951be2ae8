// Grades one file against one exercise: compile, inspect, link, run.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "tutorials/course/exercise.h"

namespace pellucid::course {

struct CheckGrade {
  ExerciseCheck check;
  bool passed = false;
  std::string text = {};  // what failed: code to paste and what it gives, or how the program ended
  std::string unwritten = {};  // or: the function that the learner has not written yet
};

struct Grade {
  std::string file;  // as the learner named it
  uint64_t seed = 1;
  std::string refused = {};  // why nothing was run: "does not compile", "is refused" ...
  std::vector<std::string> faults = {};  // and the lines that say what is wrong
  std::vector<CheckGrade> checks = {};   // always all of them
  std::string warnings = {};             // the compiler's
  std::string printed = {};              // by the learner's file, the last lines

  int points() const;
};

// Without bytes that a terminal would take for orders.
std::string printable(std::string text);

// `file` is compiled from a copy, under its own name. Throws if the grader itself cannot work: a
// tool is missing, the file cannot be read, the library does not build.
Grade grade(const Exercise& exercise, const std::string& file, uint64_t seed);

}  // namespace pellucid::course
