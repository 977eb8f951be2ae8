// tests/sanitize.sh among stubs: what fails, what reports, what is left out.
#include <doctest/doctest.h>

#include <filesystem>

#include "demos/program.h"

namespace fs = std::filesystem;

namespace {

// A tree whose cmake makes the given groups of tests, each a shell command.
struct World {
  TemporaryFolder folder;
  std::string root = folder.file("root");

  explicit World(const std::string& command) {
    fs::create_directories(root + "/tests/nn");
    fs::create_directories(folder.file("bin"));
    spit(root + "/tests/nn/a_test.cpp", "");
    fs::copy_file(PELLUCID_SOURCE_DIR "/tests/run.sh", root + "/tests/run.sh");
    spit(folder.file("tests"),
         "add_test(nn.a \"/bin/sh\" \"-c\" [==[" + command + "]==])\n" +
             "add_test(autograd.chain \"/bin/sh\" \"-c\" \"echo 'CASES | 100 | 0'\")\n");
    executable("cmake", "echo \"$*\" >>$WORLD/log; cp $WORLD/tests \"$4/CTestTestfile.cmake\"\n");
    executable("ninja", "echo \"ninja $*\" >>$WORLD/log\n");
    executable("cxx", "exit 1\n");
  }
  void executable(const std::string& name, const std::string& text) const {
    const std::string path = folder.file("bin/" + name);
    spit(path, "#!/bin/sh\n" + text);
    fs::permissions(path, fs::perms::owner_all);
  }
  Ended sanitize(const std::vector<std::string>& names = {}) const {
    std::vector<std::string> arguments = {PELLUCID_SOURCE_DIR "/tests/sanitize.sh", root};
    arguments.insert(arguments.end(), names.begin(), names.end());
    RunOptions shell;
    shell.program = "/bin/sh";
    shell.environment = {{"PATH", folder.file("bin") + ":" + std::getenv("PATH")},
                         {"WORLD", folder.path.string()},
                         {"PELLUCID_TEST_ALL", ""},
                         {"CXX", "cxx"}};
    return run(arguments, shell);
  }
};

const char* const kClean = "| address,undefined | 1 passed, 0 failed, 0 skipped        |       0 |";

}  // namespace

TEST_CASE("clean groups pass under each sanitizer; what is left out stands in the table") {
  const World world("echo 'CASES | 1 | 0'");
  const Ended ended = world.sanitize({"nn"});
  INFO(ended.out, ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out.find(kClean) != std::string::npos);
  CHECK(ended.out.find("| thread            | 1 passed") != std::string::npos);
  CHECK(ended.out.find("\nLeft out\n  autograd.chain address,undefined thread: walks") !=
        std::string::npos);
  CHECK(ended.out.find("  leaks: LeakSanitizer needs ptrace") != std::string::npos);
  const std::string log = slurp(world.folder.file("log"));
  CHECK(log.find("-DPELLUCID_SANITIZE=address,undefined") != std::string::npos);
  CHECK(log.find("-DPELLUCID_SANITIZE=thread") != std::string::npos);
  CHECK(log.find("build-asan test_nn_a\n") != std::string::npos);
  CHECK(world.sanitize({"no such group"}).code == 1);
}

TEST_CASE("a group that fails, and one that passes but whose child reports, are found") {
  const Ended failed = World("echo 'CASES | 2 | 1'; exit 1").sanitize();
  CHECK(failed.code == 1);
  const World note(
      "echo Running thread 7 was not suspended >${ASAN_OPTIONS##*log_path=}.7; "
      "echo 'CASES | 1 | 0'");
  CHECK(note.sanitize().code == 0);
  const World child("echo report >${ASAN_OPTIONS##*log_path=}.7; echo 'CASES | 1 | 0'");
  const Ended reported = child.sanitize();
  INFO(reported.out, reported.err);
  CHECK(reported.code == 1);
  CHECK(
      reported.out.find("| address,undefined | 1 passed, 0 failed, 0 skipped        |       1 |") !=
      std::string::npos);
  CHECK(reported.out.find("reports/address.7\nreport\n") != std::string::npos);
}
