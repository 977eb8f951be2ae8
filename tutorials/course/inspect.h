// What is wrong with a learner's file before it runs, in the learner's words.
#pragma once
#include <string>
#include <vector>

#include "tutorials/course/exercise.h"

namespace pellucid::course {

// In the text: assembly, macros that could hide it, files from elsewhere, inner parts of the
// system.
std::vector<std::string> text_faults(const std::string& text);

// In the list of included files, one a line, as `ninja -t deps` prints it. `own` is the file that
// was compiled.
std::vector<std::string> include_faults(const Exercise& exercise, const std::string& deps,
                                        const std::string& own);

// In the object file: functions that are missing, that are not the exercise's, or that it calls
// although it should not.
std::vector<std::string> object_faults(const Exercise& exercise);

}  // namespace pellucid::course
