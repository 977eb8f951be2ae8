// The grader's own examination: exercise/kills.txt of an exercise lists solutions with a mistake,
// each of which must lose exactly the points of that mistake, and tricks, which must get nothing.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "tutorials/course/exercise.h"

namespace pellucid::course {

struct Kill {
  std::string name;
  std::string text;                // of the learner's file
  std::vector<std::string> loses;  // these checks and no other
  std::string refused;             // or: a part of the refusal
};

// One block each, blocks apart by a blank line:
//   NAME
//   from library | stub | nothing       what the file is made from
//   old TEXT                            every TEXT of it, which must be there,
//   new TEXT                            becomes this one; \n stands for a line's end
//   add TEXT                            a line at the end
//   loses CHECK ... | all               the checks that must fail, or
//   refused TEXT                        what the refusal must say
std::vector<Kill> read_kills(const Exercise& exercise);

struct KillTable {
  int killed = 0, escaped = 0;
};
// Grades them all, and the stub and the library's own file before them; tells each as it is known.
KillTable kill_table(const Exercise& exercise, const std::function<void(const std::string&)>& tell);

}  // namespace pellucid::course
