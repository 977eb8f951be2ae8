// A program with nothing but `grade`: what `./pellucid grade --student-build` builds and runs.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <string>

#include "tensor/files.h"
#include "tutorials/course/options.h"

int main(int argc, char** argv) {
  using namespace pellucid;
  setenv("PELLUCID_COMMAND", argv[0], 0);
  CLI::App app("Pellucid's grader", shell_command({}));
  app.require_subcommand(1);
  course::GradeArguments arguments;
  demos::Command run;
  course::add_grade(app, arguments, run);
  if (const int code = demos::parse(app, argc, argv); code >= 0) return code;
  try {
    return demos::finished(run());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pellucid: %s\n", error.what());
    return 1;
  }
}
