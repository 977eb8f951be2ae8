// What `pellucid grade` tells who is not done yet: what is to be written, hints, the next command.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "course/learner_files.h"
#include "tutorials/course/grader.h"

using namespace pellucid;
using nlohmann::json;

TEST_CASE("what is not written yet is told so, in full at the first check that waits for it") {
  const Ended ended = run({"grade", "01-tensors", "--file", kStub});
  INFO(ended.out);
  CHECK(has(ended.out,
            "  0/2  row_major: the strides of a tensor without gaps\n"
            "         not written yet: row_major in strides.cpp\n"
            "  0/2  offset_of: where an element lies\n"
            "         not written yet: offset_of in strides.cpp\n"));
  CHECK(has(ended.out,
            "\n  0/2  all five: no dimensions, sizes of 1 and of 0 (waits for row_major)\n\n0/20 "
            "points\n"));
  CHECK(!has(ended.out, "exception"));
  TemporaryFolder folder;
  run({"grade", "01-tensors", "--file", kStub, "--gradescope", folder.file("results.json")});
  const json results = json::parse(slurp(folder.file("results.json")));
  CHECK(results["tests"][8]["output"] == "not written yet: row_major in strides.cpp");
  // Other exceptions of this kind are the learner's own.
  std::string text = slurp(kStub);
  const std::string stubs = "offset_of is not written yet";
  spit(folder.file("mine.cpp"), text.replace(text.find(stubs), stubs.size(), "too far"));
  CHECK(has(run({"grade", "01-tensors", "--file", folder.file("mine.cpp")}).out,
            "         offset_of({1, 2}, {4, 1})\n         throws an exception: too far\n"));
}

TEST_CASE("hints come one after the other, for the first check that failed") {
  run({"grade", "01-tensors", "--file", kStub});
  std::filesystem::remove(course::read_exercise("01-tensors").folder + "/hints.json");
  CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "Hint 1 of 3 for row_major:\n"));
  CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "Hint 2 of 3 for row_major:\n"));
  CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "Hint 3 of 3 for row_major:\n"));
  CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "No more hints for row_major."));
  CHECK(has(run({"grade", "--hint", "01-tensors"}).out, "No more hints for row_major."));
  TemporaryFolder folder;
  spit(folder.file("mine.cpp"), mistaken());
  run({"grade", "01-tensors", "--file", folder.file("mine.cpp")});
  CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "Hint 1 of 2 for offset_of:\n"));
  for (const char* damaged : {"damaged", "[]", R"({"failed": "nothing", "shown": {}})",
                              R"({"failed": "row_major", "shown": {"row_major": -1}})",
                              R"({"failed": "corners", "refused": 1, "shown": {}})",
                              R"({"failed": "corners", "shown": 2})"}) {
    INFO(std::string(damaged));
    spit(course::read_exercise("01-tensors").folder + "/hints.json", damaged);
    CHECK(has(run({"grade", "01-tensors", "--hint"}).out, "Hint 1 of 3 for row_major:\n"));
  }
}

TEST_CASE("hints can be asked for by check, and read again") {
  std::filesystem::remove(course::read_exercise("01-tensors").folder + "/hints.json");
  CHECK(has(run({"grade", "01-tensors", "--hints"}).out, "No hint was given yet. The first: "));
  const std::string late = run({"grade", "01-tensors", "--hint", "must_copy"}).out,
                    first = run({"grade", "01-tensors", "--hint"}).out,
                    second = run({"grade", "01-tensors", "--hint", "row_major"}).out;
  CHECK(late.rfind("Hint 1 of 2 for must_copy:\n", 0) == 0);
  CHECK(second.rfind("Hint 2 of 3 for row_major:\n", 0) == 0);
  for (int time = 0; time < 2; ++time)
    CHECK(run({"grade", "01-tensors", "--hints"}).out.rfind(first + second + late + "For ", 0) ==
          0);
  CHECK(has(run({"grade", "01-tensors", "--hints"}).out,
            "01-tensors --hint CHECK\nwhere CHECK is one of row_major, offset_of, "));
  const Ended ended = run({"grade", "01-tensors", "--hint", "row"});
  CHECK(ended.code == 1);
  CHECK(ended.err ==
        "pellucid: grade: 01-tensors has no check \"row\"; there are: row_major, offset_of, "
        "broadcast_shape, broadcast_refuses, expanded_strides, expanded_refuses, view_strides, "
        "must_copy, corners\n");
}

TEST_CASE("a hint by an older grading says so, and of a file that was refused there is none") {
  std::filesystem::remove(course::read_exercise("01-tensors").folder + "/hints.json");
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  const std::string older = "By the grading before your last change: grade again";
  const auto graded = [&] { return run({"grade", "01-tensors", "--file", file}).out; };
  const auto hint = [] { return run({"grade", "01-tensors", "--hint"}).out; };
  CHECK(hint().rfind("Hint 1 of 3 for row_major:\n", 0) == 0);  // without any grading
  spit(file, mistaken());
  CHECK(has(graded(), "--hint offset_of\n"));
  CHECK(hint().rfind("Hint 1 of 2 for offset_of:\n", 0) == 0);
  spit(file, slurp(file) + "int x = y;\n");
  CHECK(has(hint(), older));
  CHECK(!has(run({"grade", "01-tensors", "--hint", "corners"}).out, older));

  CHECK(!has(graded(), "A hint: "));
  const std::string refused = hint();
  INFO(refused);
  CHECK(refused.rfind("mine.cpp does not compile: mine.cpp:", 0) == 0);
  CHECK(has(refused, " error: "));
  CHECK(has(refused, "\nHints begin when that is mended. "));
  CHECK(has(refused, "\nwhere CHECK is one of row_major, offset_of, "));
  CHECK(has(run({"grade", "01-tensors", "--hint", "corners"}).out, "Hint 2 of 3 for corners:\n"));
  spit(file, "");
  graded();
  CHECK(has(hint(), "mine.cpp is refused: does not include \"tensor/strides.h\"\n"));
  spit(file, slurp(kLibrary));
  CHECK(has(hint(), older));
  graded();
  CHECK(hint() == "All checks passed the last time: there is nothing left to hint at.\n");
}

TEST_CASE("lines that tell a command keep --student-build") {
  RunOptions options;
  options.environment = {{"PELLUCID_COMMAND", "./pellucid"}};
  std::filesystem::remove(course::read_exercise("01-tensors").folder + "/hints.json");
  CHECK(has(run({"grade", "01-tensors", "--student-build", "--file", kStub}, options).out,
            "A hint: ./pellucid grade 01-tensors --student-build --hint row_major\n"));
  CHECK(has(run({"grade", "01-tensors", "--file", kStub}, options).out,
            "A hint: ./pellucid grade 01-tensors --hint row_major\n"));
  CHECK(has(run({"grade", "01-tensors", "--student-build", "--hints"}, options).out,
            "The first: ./pellucid grade 01-tensors --student-build --hint\n"));
}
