// The options of `pellucid grade`.
#pragma once
#include "tutorials/course/command.h"
#include "tutorials/demos/command_line.h"

namespace pellucid::course {

void add_grade(CLI::App& app, GradeArguments& arguments, demos::Command& run);

}  // namespace pellucid::course
