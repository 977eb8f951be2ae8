// tests/run.sh: its counts are right whatever becomes of a group of tests.
#include <doctest/doctest.h>

#include "demos/program.h"

namespace {

// Runs the script on groups made of shell commands: {name, command}; "" is a program not built.
struct Groups {
  TemporaryFolder folder;

  explicit Groups(const std::vector<std::pair<std::string, std::string>>& groups) {
    std::string file;
    for (const auto& [name, command] : groups)
      file += "add_test(" + name +
              (command.empty() ? " \"" + folder.file("none") + "\")\n"
                               : " \"/bin/sh\" \"-c\" [==[" + command + "]==])\n") +
              "set_tests_properties(" + name + " PROPERTIES TIMEOUT 5)\n";
    spit(folder.file("CTestTestfile.cmake"), file);
  }
  Ended tests(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {PELLUCID_SOURCE_DIR "/tests/run.sh",
                                          folder.path.string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    RunOptions shell;
    shell.program = "/bin/sh";
    shell.environment = {{"PELLUCID_TEST_ALL", ""}};
    return run(arguments, shell);
  }
};

std::string last_line(const std::string& text) {
  const std::size_t end = text.size() - 1;
  return text.substr(text.rfind('\n', end - 1) + 1, end - text.rfind('\n', end - 1) - 1);
}

void check(const std::vector<std::pair<std::string, std::string>>& groups,
           const std::string& counts, int code) {
  const Ended ended = Groups(groups).tests();
  INFO(ended.out);
  CHECK(last_line(ended.out) == counts);
  CHECK(ended.code == code);
}

}  // namespace

TEST_CASE("the counts are those of the cases; figures and skipped names stand before them") {
  const Groups groups({{"one",
                        "echo 'FIGURE | what | 3'; echo 'SKIPPED | case | why'; "
                        "echo 'CASES | 3 | 0'"},
                       {"two", "echo 'CASES | 4 | 0'"}});
  const Ended ended = groups.tests();
  INFO(ended.out);
  CHECK(ended.code == 0);
  CHECK(ended.out.find("Figures measured by this run\n  what   ") != std::string::npos);
  CHECK(ended.out.ends_with("\nSkipped\n  case (why)\n\n7 passed, 0 failed, 1 skipped\n"));
}

TEST_CASE("groups that fail, crash, hang, are no doctest program, or are not built") {
  check({{"bad", "echo 'CASES | 3 | 2'; exit 1"}}, "3 passed, 2 failed, 0 skipped", 1);
  check({{"crash", "kill -SEGV $$"}}, "0 passed, 1 failed, 0 skipped", 1);
  check({{"late", "echo 'CASES | 3 | 0'; kill -KILL $$"}}, "3 passed, 1 failed, 0 skipped", 1);
  check({{"plain", "true"}}, "1 passed, 0 failed, 0 skipped", 0);
  check({{"plain", "false"}}, "0 passed, 1 failed, 0 skipped", 1);
  check({{"absent", ""}}, "0 passed, 1 failed, 0 skipped", 1);
  check({{"good", "echo 'CASES | 3 | 0'"}, {"absent", ""}, {"bad", "echo 'CASES | 1 | 1'; exit 1"}},
        "4 passed, 2 failed, 0 skipped", 1);
  // What a group prints is not taken for what CTest says of it.
  check({{"quotes", "echo 'Test Failed.'; echo 'Command: \"\"'; echo 'CASES | 1 | 0'"}},
        "1 passed, 0 failed, 0 skipped", 0);
  check({{"slow", "exec sleep 60"}}, "0 passed, 1 failed, 0 skipped", 1);
  check({}, "0 passed, 0 failed, 0 skipped", 1);
}

TEST_CASE("names choose groups, --all reaches the programs, other options are refused") {
  const Groups groups({{"nn.data", "echo \"CASES | ${PELLUCID_TEST_ALL:-0} | 0\""},
                       {"nn.gpt", "echo 'CASES | 10 | 0'"},
                       {"tensor.npy", "echo 'CASES | 100 | 0'"}});
  CHECK(last_line(groups.tests({"nn"}).out) == "10 passed, 0 failed, 0 skipped");
  CHECK(last_line(groups.tests({"data", "npy"}).out) == "100 passed, 0 failed, 0 skipped");
  CHECK(last_line(groups.tests({"--all"}).out) == "111 passed, 0 failed, 0 skipped");
  CHECK(last_line(groups.tests({"--all", "nn"}).out) == "11 passed, 0 failed, 0 skipped");
  CHECK(last_line(groups.tests({"--without", "^nn.gpt$|npy", "--all"}).out) ==
        "1 passed, 0 failed, 0 skipped");
  const Ended none = groups.tests({"nothing"});
  CHECK(none.code == 1);
  CHECK(none.out.find("No group of tests has a name with nothing in it") != std::string::npos);
  CHECK(last_line(none.out) == "0 passed, 0 failed, 0 skipped");
  // A slip of the pen is told, also beside a name that some group has.
  const Ended slip = groups.tests({"gpt", "tensr"});
  CHECK(slip.out.find("No group of tests has a name with tensr in it") != std::string::npos);
  CHECK(slip.out.ends_with("\n10 passed, 0 failed, 0 skipped\n"));
  CHECK(groups.tests({"--without", "npy", "gpt", "npy"}).out.find("No group") ==
        std::string::npos);  // left out is no slip
  // Names are texts, not patterns.
  CHECK(last_line(groups.tests({"nn.gpt"}).out) == "10 passed, 0 failed, 0 skipped");
  for (const std::string name : {"nn.g.t", "[", "n*", "(", "\\", "^nn", "gpt$", "a|b", "+", "%s"}) {
    const Ended odd = groups.tests({name});
    INFO(odd.out, odd.err);
    CHECK(odd.code == 1);
    CHECK(odd.err.find("RegularExpression") == std::string::npos);
    CHECK(odd.out.find("a name with " + name + " in it") != std::string::npos);
  }
  RunOptions shell;
  shell.program = "/bin/sh";
  const Ended help = run({PELLUCID_SOURCE_DIR "/tests/run.sh", "--help"}, shell);
  CHECK(help.code == 0);
  CHECK(help.out.starts_with("Usage: ./pellucid test [--all] [NAME...]"));
  const Ended wrong = groups.tests({"--fast"});
  CHECK(wrong.code == 2);
  CHECK(wrong.err ==
        "pellucid test: no option --fast; there is --all, and right after test "
        "--sanitize or --mutants\n");
}
