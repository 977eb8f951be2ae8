#include "tutorials/course/options.h"

namespace pellucid::course {

using demos::path;

// Its help is its text alone: CLI11 would add a list of what it needs and excludes.
static CLI::Option* flag(CLI::App* c, const char* name, bool& value, const char* text) {
  return c->add_flag(name, value, text)->option_text(" ");
}

void add_grade(CLI::App& app, GradeArguments& a, demos::Command& run) {
  CLI::App* c = app.add_subcommand("grade", "Grade an exercise of the tutorials");
  c->add_option("exercise", a.exercise, "Its name, such as 01-tensors (default: lists them)")
      ->option_text("NAME")
      ->check(demos::not_empty());
  auto* watch = flag(c, "--watch", a.watch, "Grade again each time the file is saved");
  auto* hint =
      c->add_option("--hint", a.check, "The next hint for CHECK (default: the first that failed)")
          ->option_text("[CHECK]")
          ->expected(0, 1);
  auto* hints = flag(c, "--hints", a.hints, "The hints given so far, once more");
  auto* file = path(c, "--file", a.file, "FILE", "Grade this file (default: the exercise's own)");
  auto* seed = demos::seed_option(c, a.seed, "Seed of the random cases");
  auto* junit = path(c, "--junit", a.junit, "FILE", "Write the results as JUnit XML");
  auto* gradescope =
      path(c, "--gradescope", a.gradescope, "FILE", "Write Gradescope's results.json");
  auto* full = flag(c, "--require-full", a.require_full, "Exit code 1 below full points");
  auto* table =
      flag(c, "--kill-table", a.kill_table, "Examine the grader: wrong solutions and tricks");
  flag(c, "--student-build", a.student_build,
       "Build only what grading needs, for slow machines (read by the start script)");
  for (CLI::Option* option : {junit, gradescope, full, table}) option->group("For teachers");
  for (CLI::Option* once : {file, seed, junit, gradescope, full, table, watch})
    hint->excludes(once), hints->excludes(once);
  hint->excludes(hints);
  for (CLI::Option* once : {file, seed, junit, gradescope, full, watch}) table->excludes(once);
  full->excludes(watch);
  for (CLI::Option* one : {watch, hints, file, seed, junit, gradescope, full, table})
    one->needs(c->get_option("exercise"));
  c->footer(
      "Edit the exercise's file, grade it, mend the first case that fails, grade again:\n"
      "  grade 01-tensors            points, and for each check the first case that fails\n"
      "  grade 01-tensors --watch    the same each time you save the file\n"
      "  grade 01-tensors --hint     when you are stuck\n"
      "Exit codes: 0 when the grading came to its end, whatever the points; 1 when it could not,\n"
      "or below what --require-full or --kill-table asks; 2 for a wrong line; 130 after Ctrl-C.");
  c->callback([&a, &run, hint] {
    a.hint = hint->count() > 0;
    if (a.hint && a.exercise.empty()) std::swap(a.exercise, a.check);  // --hint NAME
    if (a.hint && a.exercise.empty()) throw CLI::RequiresError("--hint", "exercise");
    run = [&a] { return grade_command(a); };
  });
}

}  // namespace pellucid::course
