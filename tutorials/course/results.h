// A grade as text for the learner, as JUnit XML, and as Gradescope's results.json.
#pragma once
#include <string>

#include "tutorials/course/grader.h"

namespace pellucid::course {

std::string to_text(const Exercise& exercise, const Grade& grade);
std::string to_junit(const Exercise& exercise, const Grade& grade);
std::string to_gradescope(const Exercise& exercise, const Grade& grade);

}  // namespace pellucid::course
