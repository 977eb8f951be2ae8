// `pellucid grade`: grades an exercise once or at every save, gives hints, writes results files.
#pragma once
#include <cstdint>
#include <string>

namespace pellucid::course {

struct GradeArguments {
  std::string exercise;  // "": a list of them
  std::string file;      // "": the exercise's own
  uint64_t seed = 1;
  std::string junit, gradescope;  // files to write
  bool student_build = false;     // only the start script asks
  bool watch = false, require_full = false, kill_table = false;
  bool hint = false, hints = false;  // the next one; those given so far
  std::string check;                 // whose hint; "": of the first check that failed
};

// Returns the exit code: 0 when the grading came to its end, whatever the score; 1 below full
// points if all are required; 130 when Ctrl-C ends --watch.
int grade_command(const GradeArguments& arguments);

}  // namespace pellucid::course
