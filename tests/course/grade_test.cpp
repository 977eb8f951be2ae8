// `pellucid grade` as learners and courses meet it: its text, its files, its options, its errors.
#include <doctest/doctest.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <regex>
#include <thread>

#include "course/learner_files.h"
#include "error_of.h"
#include "tutorials/course/grader.h"
#include "tutorials/course/inspect.h"
#include "tutorials/course/process.h"
#include "tutorials/course/results.h"
#include "tutorials/course/symbols.h"

using namespace pellucid;
using nlohmann::json;

TEST_CASE("grade without a name lists the exercises") {
  const Ended ended = run({"grade"});
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "01-tensors      20 points  strides, broadcasting"));
}

TEST_CASE("an output that nobody reads on ends it silently; a full disk is an error") {
  const std::string grader = PELLUCID_LESSONS "/grader";
  for (const std::string& program : {std::string(PELLUCID_PROGRAM), grader}) {
    // Writes until the pipe is closed for sure, and only then grades.
    const std::string closed =
        "trap '' PIPE; { while echo x 2>/dev/null; do :; done; \"$0\" grade; echo \"$?\" >&2; } | "
        ":";
    CHECK(run({"-c", closed, program}, {.program = "/bin/sh"}).err == "141\n");
    if (access("/dev/full", W_OK) != 0) continue;
    const Ended full = run({"grade"}, {.program = program, .out_to = "/dev/full"});
    CHECK(full.code == 1);
    CHECK(full.err == "pellucid: the output could not be written: is the disk full?\n");
  }
}

TEST_CASE("a grading tells points, the first failing case as code, and writes both results files") {
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  spit(file, mistaken());
  const Ended ended = run({"grade", "01-tensors", "--file", file, "--junit",
                           folder.file("junit.xml"), "--gradescope", folder.file("results.json")});
  INFO(ended.out << ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.err == "");
  CHECK(ascii(ended.out));
  CHECK(has(ended.out, "  2/2  row_major: the strides of a tensor without gaps\n"));
  CHECK(has(ended.out,
            "  0/2  offset_of: where an element lies\n"
            "         offset_of({1, 2}, {4, 1})\n"
            "         is 6; yours gives 8\n"));
  CHECK(has(ended.out, "18/20 points\n"));

  const json results = json::parse(slurp(folder.file("results.json")));
  CHECK(results["score"] == 18);
  CHECK(results["tests"].size() == 9);
  CHECK(results["tests"][1]["score"] == 0);
  CHECK(results["tests"][1]["max_score"] == 2);
  CHECK(has(results["tests"][1]["output"], "yours gives 8"));
  const std::string summary = results["output"];
  CHECK(has(summary, "\n  2/2  row_major: the strides of a tensor without gaps\n"));
  CHECK(has(summary, "\n  0/2  offset_of: where an element lies\n"));
  CHECK(summary.ends_with("\n18/20 points, --seed 1\n"));
  const std::string junit = slurp(folder.file("junit.xml"));
  CHECK(has(junit, "<testsuite name=\"01-tensors\" tests=\"9\" failures=\"1\" errors=\"0\">"));
  CHECK(has(junit, "<testcase classname=\"01-tensors\" name=\"row_major\"/>"));
  CHECK(has(junit,
            "<failure message=\"2 points: offset_of: where an element lies\">offset_of({1, 2}, {4, "
            "1})&#10;is 6"));

  CHECK(has(junit, "<property name=\"seed\" value=\"1\"/>"));
  CHECK(has(ended.out, file + " --seed 1\n"));

  CHECK(run({"grade", "01-tensors", "--file", file, "--require-full"}).code == 1);
  const Ended full = run({"grade", "01-tensors", "--file", kLibrary, "--require-full"});
  CHECK(full.code == 0);
  CHECK(full.out.ends_with("\n20/20 points\n"));  // there is nothing more to do
}

TEST_CASE("a compile error names the learner's file and line, and a refusal says what to do") {
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  spit(file,
       "#include \"tensor/strides.h\"\nnamespace pellucid {\nShape row_major(const Shape& sizes) { "
       "return size; }\n}\n");
  Ended ended = run({"grade", "01-tensors", "--file", file});
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "mine.cpp does not compile:\n"));
  CHECK(has(ended.out, "mine.cpp:3:"));
  CHECK(has(ended.out, "0/20 points\n"));

  spit(file,
       "#include \"tensor/strides.h\"\nnamespace pellucid {\nShape row_major(Shape s) { return s; "
       "}\n}\n");
  ended = run({"grade", "01-tensors", "--file", file});
  CHECK(has(ended.out, "mine.cpp is refused:\n"));
  run({"grade", "01-tensors", "--file", file, "--gradescope", folder.file("results.json")});
  const std::string summary = json::parse(slurp(folder.file("results.json")))["output"];
  CHECK(has(summary, "\nNothing was run: mine.cpp is refused\n"));
  CHECK(has(summary, "\nmissing row_major(Shape const&); you define row_major(Shape)\n"));
  CHECK(has(ended.out, "missing row_major(Shape const&); you define row_major(Shape)\n"));
  CHECK(has(ended.out,
            "missing offset_of(Shape const&, Shape const&), which tensor/strides.h declares: is it "
            "deleted, renamed, or hidden in an unnamed namespace?\n"));
}

#ifdef __linux__  // macOS has no limit of memory
TEST_CASE("a limit that keeps AddressSanitizer from starting is told, and nothing is graded") {
  const std::string grade = "ulimit -v 8000000; exec \"$0\" grade 01-tensors --file \"$1\"";
  const Ended ended = run({"-c", grade, PELLUCID_PROGRAM, kLibrary}, {.program = "/bin/sh"});
  INFO(ended.out << ended.err);
  if (has(ended.out, "20/20 points\n")) return;  // built without it
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "(ulimit -v) keeps AddressSanitizer from starting; grade without it\n"));
}

TEST_CASE("a file that takes the compiler's memory is refused, and told so") {
  TemporaryFolder folder;
  spit(folder.file("mine.cpp"), "#define ENDLESS \"/dev/zero\"\n#include ENDLESS\n");
  const Ended ended = run({"grade", "01-tensors", "--file", folder.file("mine.cpp")});
  INFO(ended.out << ended.err);
  CHECK(has(ended.out,
            "mine.cpp does not compile:\n  compiling it takes more than 4 GB of memory: "));
  CHECK(has(ended.out, "0/20 points\n"));
}
#endif

TEST_CASE("a file with a byte order mark, as some editors save it, is graded like others") {
  TemporaryFolder folder;
  spit(folder.file("mine.cpp"), "\xEF\xBB\xBF" + slurp(kLibrary));
  const Ended ended = run({"grade", "01-tensors", "--file", folder.file("mine.cpp")});
  CHECK(has(ended.out, "20/20 points\n"));
}

TEST_CASE(
    "a crash, an endless loop, a flood and an exception name the call, and all but the last the "
    "line; they cost their own check only") {
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  const auto graded = [&](const std::string& statement) {
    std::string text = slurp(kLibrary);
    const std::string begin = "  int64_t offset = 0;\n";
    text.replace(text.find(begin), begin.size(), begin + statement + "\n");
    spit(file, "#include <cstdio>\n" + text);
    const Ended ended = run({"grade", "01-tensors", "--file", file});
    INFO(ended.out << ended.err);
    CHECK(has(ended.out, "16/20 points\n"));  // offset_of and corners
    for (const std::string call : {"offset_of({1, 2}, {4, 1})", "offset_of({}, {})"})
      CHECK(has(ended.out, "\n         " + call + "\n         "));
    return ended.out;
  };
  const std::string line = "mine.cpp:19";
  CHECK(has(graded("*static_cast<volatile int*>(nullptr) = 1;"), "crashed at " + line));
  CHECK(has(graded("for (volatile bool on = true; on;) {}"),
            "did not end within 1 s: it was at " + line));
  CHECK(has(graded("for (;;) std::puts(\"ha\");"), "printed more than 1 MB at " + line));
  CHECK(has(graded("throw std::out_of_range(\"too far\");"), "throws an exception: too far\n"));
  CHECK(has(graded("throw std::out_of_range(\"\\33[2J\");"), "throws an exception: ?[2J\n"));
  CHECK(has(graded("throw 1;"), "throws an exception that is no std::exception\n"));
  const std::string printed = graded("std::printf(\"dims %d\\n\", 7); return -1;");
  CHECK(has(printed, "Your file printed:\n"));
  CHECK(has(printed, "  dims 7\n"));
  const std::string ten = graded("for (int i = 0; i < 10; ++i) std::puts(\"ha\"); return -1;");
  CHECK(std::regex_search(
      ten, std::regex("Your file printed:\n  \\(the last 10 of \\d+0 lines\\)\n(  ha\n){10}\n")));
}

TEST_CASE("a refusal by another exception is told which one is wanted, other checks are not") {
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  std::string text = slurp(kLibrary);
  const std::string check = "CHECK_ARG(lead >= 0, ", other = "  int64_t offset = 0;\n";
  text.replace(text.find(check), check.size(),
               "if (lead < 0) throw std::out_of_range(\"no\");\n  CHECK_ARG(lead >= 0, ");
  text.replace(text.find(other), other.size(), other + "  throw std::out_of_range(\"far\");\n");
  spit(file, "#include <stdexcept>\n" + text);
  const Ended ended = run({"grade", "01-tensors", "--file", file});
  INFO(ended.out);
  CHECK(has(ended.out,
            "         throws an exception: no\n"
            "         what does not fit is refused by std::invalid_argument, which CHECK_ARG "
            "throws\n"));
  CHECK(has(ended.out, "         throws an exception: far\n  3/3  "));
}

TEST_CASE("help: the learner's options, then those for teachers, the loop, the exit codes") {
  const std::string help = run({"grade", "--help"}).out;
  INFO(help);
  CHECK(!has(help, "Excludes"));
  CHECK(!has(help, "Needs"));
  const std::size_t teachers = help.find("\nFor teachers:\n");
  REQUIRE(teachers != std::string::npos);
  for (const char* option :
       {"\n  --watch ", "\n  --hint [CHECK] ", "\n  --hints ", "\n  --seed N "})
    CHECK(help.find(option) < teachers);
  for (const char* option :
       {"\n  --junit ", "\n  --gradescope ", "\n  --require-full ", "\n  --kill-table "}) {
    CHECK(help.find(option) > teachers);
    CHECK(has(help, option));
  }
  CHECK(has(help, "\n  grade 01-tensors --watch "));
  CHECK(has(help, "\nExit codes: 0 when "));
}

TEST_CASE("--watch grades again when the file is saved, and ends by Ctrl-C with 130") {
  TemporaryFolder folder;
  const std::string file = folder.file("mine.cpp");
  spit(file, mistaken());
  Process watch({"grade", "01-tensors", "--watch", "--file", file});
  const auto wait_for = [&](const std::string& text) {
    for (int tenth = 0; tenth < 1200 && !has(watch.output(), text); ++tenth)
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    return has(watch.output(), text);
  };
  CHECK(wait_for("18/20 points"));
  CHECK(wait_for("Waiting for you to save mine.cpp; Ctrl-C ends this."));
  spit(file, slurp(kLibrary));
  CHECK(wait_for("20/20 points"));
  const std::regex rule("\nWaiting [^\n]*\n\n---- \\d\\d:\\d\\d:\\d\\d -+\n\n01-tensors: ");
  CHECK(std::regex_search(watch.output(), rule));
  std::filesystem::remove(file);  // as some editors do for a moment
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  CHECK(watch.running());
  watch.signal(SIGINT);
  CHECK(watch.wait().code == 130);
}

TEST_CASE("wrong input: one line, and the exit code") {
  const auto refused = [](const std::vector<std::string>& arguments, int code,
                          const std::string& error) {
    const Ended ended = run(arguments);
    INFO(ended.out << ended.err);
    CHECK(ended.code == code);
    CHECK(lines(ended.err) == 1);
    CHECK(has(ended.err, error));
  };
  refused({"grade", "02-nothing"}, 1, "grade: no exercise \"02-nothing\"; there are: 01-tensors");
  refused({"grade", "01-tensors", "--file", "/no/such.cpp"}, 1, "/no/such.cpp: ");
  refused({"grade", "01-tensors", "--file", "/"}, 1, "/: ");
  refused({"grade", "01-tensors", "--seed", "x"}, 2, "wanted a whole number");
  refused({"grade", "01-tensors", "--hint", "--seed", "2"}, 2, "--hint");
  refused({"grade", "--watch"}, 2, "--watch");
  TemporaryFolder folder;
  const std::string x = folder.file("x"), again = folder.path.string() + "/./x";
  refused({"grade", "01-tensors", "--junit", x, "--gradescope", again}, 2,
          "--junit and --gradescope are the same file, " + again);
  CHECK(!std::filesystem::exists(x));
  refused({"grade", "01-tensors", "--junit", "new.xml", "--gradescope", "./new.xml"}, 2,
          "--junit and --gradescope are the same file, ./new.xml");
  refused({"grade", "01-tensors", "--file", kLibrary, "--junit", kStub}, 2,
          "the exercise's own file and --junit are the same file, " + kStub);
  spit(x + ".tmp", "mine");
  refused({"grade", "01-tensors", "--file", x + ".tmp", "--junit", x}, 2,
          "--junit is called " + x + ".tmp while it is written, as the graded file is");
  refused({"grade", "01-tensors", "--junit", x + ".tmp", "--gradescope", x}, 2,
          "--gradescope is called " + x + ".tmp while it is written, as --junit is");
  CHECK(slurp(x + ".tmp") == "mine");
  spit(x, "mine");
  refused({"grade", "01-tensors", "--file", x, "--junit", x}, 2,
          "the graded file and --junit are the same file, " + x);
  const std::string link = folder.file("link");  // a mistake would only overwrite the link
  std::filesystem::create_symlink(kStub, link);
  refused({"grade", "01-tensors", "--gradescope", link}, 2,
          "the graded file and --gradescope are the same file, " + link);
  CHECK(slurp(x) == "mine");
  spit(folder.file("a\nb.cpp"), slurp(kLibrary));
  refused({"grade", "01-tensors", "--file", folder.file("a\nb.cpp")}, 1,
          "b.cpp: the path has a line's end");
  refused({"grade", "01-tensors", "--junit", "/no/folder/x.xml", "--file", kLibrary}, 1,
          "/no/folder/x.xml");
}

TEST_CASE(
    "a name as the shell completes it is taken, and a near one is answered by the right one") {
  std::filesystem::remove(course::read_exercise("01-tensors").folder + "/hints.json");
  for (const std::string name : {"01-tensors/", "tutorials/01-tensors", "./tutorials/01-tensors//",
                                 "tutorials/01-tensors/exercise/"})
    CHECK(has(run({"grade", name, "--hints"}).out, " grade 01-tensors --hint\n"));
  CHECK(has(run({"grade", "tutorials/11-xsa/exercise-kernel", "--hints"}).out, "11-xsa-kernel"));
  const std::pair<std::string, std::string> near[] = {{"tensors", "01-tensors"},
                                                      {"01", "01-tensors"},
                                                      {"01-tensor", "01-tensors"},
                                                      {"xsa", "11-xsa"},
                                                      {"11-xsa-krenel", "11-xsa-kernel"}};
  for (const auto& [name, meant] : near) {
    const Ended ended = run({"grade", name});
    CHECK(ended.code == 1);
    CHECK(ended.err ==
          "pellucid: grade: no exercise \"" + name + "\"; did you mean " + meant + "?\n");
  }
}

TEST_CASE("a learner's file that is gone: the way back") {
  TemporaryFolder folder;
  course::Exercise exercise;
  exercise.file = folder.file("strides.cpp");
  const std::string path = std::filesystem::proximate(exercise.file).string(),
                    error = error_of([&] { course::grade(exercise, exercise.file, 1); });
  CHECK(error == "grade: " + path + " is gone; to begin again: git checkout -- " + path);
}

TEST_CASE("a missing tool: what to install") {
  TemporaryFolder folder;
  const Ended ended =
      run({"grade", "01-tensors"}, {.environment = {{"PATH", folder.path.string()}}});
  CHECK(ended.code == 1);
  CHECK(has(ended.err,
            "grade: ninja is not on PATH; install it: apt-get install ninja-build (macOS: brew "
            "install ninja)"));
}

TEST_CASE("results files are well-formed whatever a program printed") {
  using namespace pellucid::course;
  Exercise exercise;
  exercise.name = "a&b";
  exercise.checks = {{"c", "says \"<so>\"", 3}, {"d", "the last", 1}};
  Grade result;
  result.file = "f.cpp";
  std::string bytes;
  for (int c = 1; c < 256; ++c) bytes += static_cast<char>(c);
  result.checks = {{exercise.checks[0], false, bytes}, {exercise.checks[1]}};
  const std::string xml = to_junit(exercise, result);
  for (char c : xml) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  CHECK(has(xml, "3 points: says &quot;&lt;so&gt;&quot;"));
  CHECK(has(xml, "message=\"1 point: the last\""));
  CHECK(!has(xml, "a&b"));
  const json parsed = json::parse(to_gradescope(exercise, result));
  CHECK(parsed["tests"][0]["max_score"] == 3);
}

TEST_CASE("a kernel for one dtype only is found out, although instantiations are weak") {
  using namespace pellucid::course;
  TemporaryFolder folder;
  const std::string kernel =
      "namespace pellucid::cpu {\n"
      "template <class T> void row(T* y, const T* x) { *y = *x; }\n"
      "template void row<float>(float*, const float*);\n";
  const auto compiled = [&](const std::string& name, const std::string& text) {
    spit(folder.file(name + ".cpp"), text);
    const std::string object = folder.file("floor.dir/kernels/" + name + ".cpp.o");
    const ToolRun run =
        run_tool({PELLUCID_CXX, "-std=c++20", "-c", folder.file(name + ".cpp"), "-o", object});
    INFO(run.output);
    REQUIRE(run.code == 0);
    return object;
  };
  std::filesystem::create_directories(folder.file("floor.dir/kernels"));
  Exercise exercise;
  exercise.replaces = "kernels/row.cpp";
  exercise.header = "kernels/row.h";
  exercise.templates = {"pellucid::cpu::row<"};
  exercise.library = {
      compiled("row", kernel + "template void row<double>(double*, const double*);\n}\n")};
  exercise.object = exercise.library[0];
  CHECK(object_faults(exercise).empty());
  exercise.object = compiled("mine", kernel + "}\n");
  CHECK(object_faults(exercise) ==
        std::vector<std::string>{
            "missing void cpu::row<double>(double*, double const*), which "
            "kernels/row.h declares: is it deleted, renamed, or not instantiated for this type?"});
  exercise.object = compiled(
      "calls", kernel +
                   "template void row<double>(double*, const double*);\n"
                   "}\nnamespace pellucid { void row_finished(); void f() { row_finished(); } }\n");
  CHECK(object_faults(exercise) ==
        std::vector<std::string>{
            "f() is none of the exercise's functions: put yours in an unnamed namespace",
            "calls row_finished(); write it yourself"});
}

TEST_CASE("what a symbol is") {
  using namespace pellucid::course;
  CHECK(readable("_ZN8pellucid9row_majorERKNS_5ShapeE") == "row_major(Shape const&)");
  CHECK(bare_name("_ZN8pellucid9row_majorERKNS_5ShapeE") == "row_major");
  CHECK(readable("exit") == "exit()");
  CHECK(is_std("_ZNSt6vectorIiSaIiEE9push_backERKi"));
  CHECK(is_std("_ZSt4cout"));
  CHECK(!is_std("_ZN8pellucid9row_majorERKNS_5ShapeE"));
  CHECK(!is_std("_ZN8pellucid3sumERKSt6vectorIiSaIiEE"));
  CHECK(is_compilers_own("_ZTIFN8pellucid5ShapeERKS0_E"));  // clang's, of functions
  for (const char* fine : {"printf", "memcpy", "expf", "sqrt", "_Znwm", "_ZdlPvm", "_ZSt4cout",
                           "__cxa_throw", "__asan_report_load8"})
    CHECK(is_harmless(fine));
  for (const char* not_fine :
       {"exit", "_Exit", "fork", "system", "open", "dlopen", "write", "syscall", "_ZSt3cin",
        "_ZNSt13basic_filebufIcSt11char_traitsIcEE4openEPKcSt13_Ios_Openmode"})
    CHECK(!is_harmless(not_fine));
  CHECK(text_faults("int f() { a\\\nsm(\"nop\"); }").size() == 1);
  CHECK(text_faults("int f() { a\\ \t\v\f\r\nsm(\"nop\"); }").size() == 1);
  CHECK(text_faults("#include \"/dev/null\"\n").size() == 1);
  CHECK(text_faults("%:\tinclude <x/../y.h>\n").size() == 1);
  CHECK(text_faults("#include <vector>  // .. /\nchar c = '\\\\';\n").empty());
  CHECK(text_faults("int f() { return plasma + asmx; }").empty());
}
