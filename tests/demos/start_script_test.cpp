// The start script ./pellucid in a world of stubs: what it asks, says, installs, builds and runs.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <sstream>

#include "program.h"

namespace fs = std::filesystem;

namespace {

const std::string kSource = PELLUCID_SOURCE_DIR;

// A bare machine: a PATH of stubs that log their calls, and a clone in a folder with a space.
// "missing" lists the packages whose headers the compiler does not find.
struct Machine {
  TemporaryFolder folder;
  std::string root = folder.file("a clone");

  Machine() {
    fs::create_directories(root + "/tests");
    fs::create_directories(folder.file("bin"));
    fs::create_directories(folder.file("elsewhere"));
    fs::copy_file(kSource + "/pellucid", root + "/pellucid");
    spit(root + "/tests/run.sh", "echo tests \"$@\"\n");
    spit(folder.file("missing"), "");
    spit(folder.file("log"), "");
    for (const char* tool : {"sh", "env", "dirname", "sed", "awk", "cat", "rm", "mkdir", "grep",
                             "chmod", "sleep", "timeout"})
      for (const char* place : {"/bin/", "/usr/bin/"})
        if (fs::exists(place + std::string(tool)) && !fs::exists(bin(tool)))
          fs::create_symlink(place + std::string(tool), bin(tool));
    stub("id", "echo 0");
    stub("uname", "echo Linux");
    stub("g++",
         "case \"$*\" in\n"
         "*-P*) sed -n 's/^MISSING //p' | while read -r p; do\n"
         "  for m in $(cat \"$WORLD/missing\"); do [ $p != $m ] || echo MISSING $p; done; done ;;\n"
         "*) cat >/dev/null ;;\n"
         "esac");
    stub("cmake",
         "if [ \"$1\" = --version ]; then echo cmake version 3.25.1; exit; fi\n"
         "echo cmake >>\"$WORLD/log\"\n"
         "echo \"CMAKE_HOME_DIRECTORY:INTERNAL=$2\" >\"$4/CMakeCache.txt\"\n"
         "for a; do case $a in -DPELLUCID*)\n"
         "  echo \"$a\" | sed 's/-D//; s/:STRING//; s/=/:STRING=/' >>\"$4/CMakeCache.txt\" ;; "
         "esac; done\n"
         "echo >\"$4/build.ninja\"");
    stub("ninja",
         "[ \"$3\" != build.ninja ] || exit 0\n"
         "echo 'ninja: no work to do.'\n"
         "(shift 2; echo \"ninja $*\") >>\"$WORLD/log\"\n"
         "for program in pellucid grader; do\n"
         "cat >\"$2/$program\" <<'END'\n"
         "#!/bin/sh\n"
         "echo \"pid $$ in $PWD\"\n"
         "[ \"${1:-}\" != command ] || echo \"$PELLUCID_COMMAND\"\n"
         "for a; do echo \"<$a>\"; done\n"
         "case ${1:-} in wait) trap 'exit 7' TERM; echo ready; while :; do sleep 0.01; done ;; "
         "fail) exit 5 ;; "
         "esac\n"
         "END\n"
         "chmod +x \"$2/$program\"\n"
         "done");
    stub("apt-get",
         "echo \"apt-get $*\" >>\"$WORLD/log\"\n"
         "[ ! -e \"$WORLD/offline\" ] || exit 100\n"
         "[ \"$1\" = update ] || echo >\"$WORLD/missing\"");
  }
  std::string bin(const std::string& tool) const { return folder.file("bin/" + tool); }
  void stub(const std::string& name, const std::string& body) const {
    fs::remove(bin(name));
    spit(bin(name), "#!/bin/sh\n" + body + "\n");
    chmod(bin(name).c_str(), 0755);
  }
  void user(bool sudo) const {
    stub("id", "echo 1000");
    if (sudo) stub("sudo", "echo \"sudo $*\" >>\"$WORLD/log\"\nexec \"$@\"");
  }
  void missing(const std::string& packages) const { spit(folder.file("missing"), packages); }
  std::string log() const { return slurp(folder.file("log")); }

  RunOptions options(const std::string& input = "") const {
    RunOptions o;
    o.program = root + "/pellucid";
    o.folder = folder.file("elsewhere");
    o.environment = {{"PATH", folder.file("bin")},
                     {"WORLD", folder.path.string()},
                     {"CI", ""},
                     {"CXX", ""},
                     {"PELLUCID_MARCH", ""}};
    o.input = input;
    return o;
  }
  Ended start(const std::vector<std::string>& arguments, const std::string& input = "") const {
    return run(arguments, options(input));
  }
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const std::string kInstall = "apt-get install -y --no-install-recommends ";

std::vector<std::string> shells() {
  std::vector<std::string> found;
  for (const char* shell : {"/bin/sh", "/bin/dash", "/bin/bash", "/bin/busybox", "/bin/zsh"})
    if (fs::exists(shell)) found.push_back(shell);
  return found;
}

}  // namespace

TEST_CASE(
    "nothing is missing: no apt-get, one configuration, then the program in the caller's folder") {
  const Machine machine;
  Process first({"sample", "--prompt", "a  b", ""}, machine.options());
  const pid_t pid = first.pid();
  const Ended ended = first.wait();
  INFO(ended.err);
  CHECK(ended.code == 0);
  CHECK(ended.out == "pid " + std::to_string(pid) + " in " + machine.folder.file("elsewhere") +
                         "\n<sample>\n<--prompt>\n<a  b>\n<>\n");
  CHECK(ended.err == "Building Pellucid in build/ (a few minutes, once)\nninja: no work to do.\n");
  CHECK(machine.log() == "cmake\nninja pellucid_program\n");
  const Ended second = machine.start({"doctor"});
  CHECK(second.err == "");
  CHECK(machine.log() == "cmake\nninja pellucid_program\nninja pellucid_program\n");
}

TEST_CASE("it works from the clone itself, and with every shell that is here") {
  const Machine machine;
  RunOptions options = machine.options();
  options.folder = machine.root;
  options.program = "/bin/sh";
  CHECK(run({"-c", "./pellucid doctor"}, options).code == 0);
  CHECK(has(run({"-c", "./pellucid command"}, options).out, "\n./pellucid\n"));
  CHECK(has(run({"-c", "sh pellucid command"}, options).out, "\n./pellucid\n"));
  for (const std::string& shell : shells()) {
    CAPTURE(shell);
    std::vector<std::string> arguments = {machine.root + "/pellucid", "doctor"};
    if (shell.ends_with("busybox")) arguments.insert(arguments.begin(), "sh");
    options = machine.options();
    options.program = shell;
    const Ended ended = run(arguments, options);
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(has(ended.out, "<doctor>"));
    for (const char* script : {"/pellucid", "/tests/run.sh", "/.ci/run"}) {
      std::vector<std::string> check = {"-n", kSource + script};
      if (shell.ends_with("busybox")) check.insert(check.begin(), "sh");
      CHECK(run(check, options).code == 0);
    }
  }
}

TEST_CASE("shellcheck finds nothing" * doctest::skip(access("/usr/bin/shellcheck", X_OK) != 0) *
          doctest::description("shellcheck is not installed")) {
  RunOptions options;
  options.program = "/usr/bin/shellcheck";
  const Ended ended =
      run({"-s", "sh", kSource + "/pellucid", kSource + "/tests/run.sh", kSource + "/.ci/run"},
          options);
  CHECK(ended.out == "");
  CHECK(ended.code == 0);
}

TEST_CASE("signals reach the program, and its exit code comes back") {
  const Machine machine;
  CHECK(machine.start({"fail"}).code == 5);
  Process process({"wait"}, machine.options());
  while (process.running() && !has(process.output(), "ready")) usleep(1000);
  process.signal(SIGTERM);
  CHECK(process.wait().code == 7);
}

TEST_CASE("root, --yes and CI=true install unasked: update, then install without extras") {
  for (const std::string how : {"root", "--yes demo", "demo --yes", "CI"}) {
    CAPTURE(how);
    const Machine machine;
    machine.missing("doctest-dev libcli11-dev libopenblas-dev");
    RunOptions options = machine.options();
    std::vector<std::string> arguments = {"demo"};
    if (how != "root") machine.user(true);
    if (how == "CI") options.environment["CI"] = "true";
    if (how == "--yes demo") arguments = {"--yes", "demo"};
    if (how == "demo --yes") arguments = {"demo", "--yes"};
    const Ended ended = run(arguments, options);
    INFO(ended.err);
    CHECK(ended.code == 0);
    CHECK(has(ended.err, "Missing packages: doctest-dev libcli11-dev libopenblas-dev\n"));
    CHECK(has(ended.err, kInstall + "doctest-dev libcli11-dev libopenblas-dev\n"));
    CHECK(!has(ended.err, "[y/N]"));
    CHECK(has(ended.out, "<demo>\n"));
    CHECK(!has(ended.out, "--yes"));
    std::string log = machine.log();
    CHECK(has(log, "apt-get update\n"));
    CHECK(log.find("apt-get update\n") < log.find(kInstall + "doctest-dev"));
    CHECK(has(log, "sudo ") == (how != "root"));
  }
}

TEST_CASE("others are asked; no, and no answer, install nothing") {
  for (const std::string answer : {"n\n", "\n", "", "what\n"}) {
    const Machine machine;
    machine.user(true);
    machine.missing("doctest-dev");
    const Ended ended = machine.start({"demo"}, answer);
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(has(ended.err, "sudo " + kInstall + "doctest-dev"));
    CHECK(has(ended.err, "Run it now? [y/N]"));
    CHECK(has(ended.err, "Nothing was installed."));
    CHECK(machine.log() == "");
  }
  const Machine machine;
  machine.user(true);
  machine.missing("doctest-dev");
  CHECK(machine.start({"demo"}, "y\n").code == 0);
  CHECK(has(machine.log(), "sudo env DEBIAN_FRONTEND=noninteractive " + kInstall + "doctest-dev"));
}

TEST_CASE("neither root nor sudo: the command, and exit code 1") {
  const Machine machine;
  machine.user(false);
  machine.missing("doctest-dev");
  for (const std::vector<std::string>& arguments :
       std::vector<std::vector<std::string>>{{"demo"}, {"--yes", "demo"}}) {
    const Ended ended = machine.start(arguments);
    CHECK(ended.code == 1);
    CHECK(ended.out == "");
    CHECK(has(ended.err, "  apt-get update && " + kInstall + "doctest-dev\n"));
    CHECK(!has(ended.err, "sudo apt-get"));
    CHECK(machine.log() == "");
  }
}

TEST_CASE("optional packages that nobody wants are asked for once") {
  const Machine machine;
  machine.user(true);
  machine.missing("libopenblas-dev libbenchmark-dev");
  const Ended first = machine.start({"demo"}, "n\n");
  INFO(first.err);
  CHECK(first.code == 0);
  CHECK(has(first.err, "Going on without: libopenblas-dev libbenchmark-dev"));
  CHECK(has(first.out, "<demo>"));
  const Ended second = machine.start({"demo"}, "y\n");
  CHECK(second.err == "");
  CHECK(!has(machine.log(), "apt-get"));
  CHECK(machine.start({"--yes", "demo"}).code == 0);
  CHECK(has(machine.log(), kInstall + "libopenblas-dev libbenchmark-dev"));
  CHECK(has(machine.log(), "cmake\nninja pellucid_program\nninja pellucid_program\nsudo"));
  CHECK(machine.log().ends_with("cmake\nninja pellucid_program\n"));  // configured anew with them
}

TEST_CASE("an installation that fails: 1 for what is needed, go on without the rest") {
  const Machine machine;
  spit(machine.folder.file("offline"), "");
  machine.missing("doctest-dev libopenblas-dev");
  const Ended needed = machine.start({"demo"});
  CHECK(needed.code == 1);
  CHECK(has(needed.err, "apt-get update failed; going on with the lists at hand"));
  CHECK(has(needed.err, "That did not work"));
  machine.missing("libopenblas-dev");
  CHECK(machine.start({"demo"}).code == 0);
  const std::string log = machine.log();
  CHECK(machine.start({"demo"}).code == 0);
  CHECK(machine.log() == log + "ninja pellucid_program\n");  // not tried again
}

TEST_CASE("a bare machine: every package by its name, g++-12 on Ubuntu 22.04, brew on macOS") {
  const std::string headers =
      "doctest-dev nlohmann-json3-dev libcli11-dev libopenblas-dev "
      "libbenchmark-dev";
  const auto bare = [](const Machine& machine) {
    for (const char* tool : {"g++", "cmake", "ninja"}) fs::remove(machine.bin(tool));
  };
  const Machine debian;
  bare(debian);
  debian.stub("grep", "exit 1");
  CHECK(debian.start({"demo"}).code == 1);  // the stub installs nothing
  CHECK(has(debian.log(), kInstall + "g++ cmake ninja-build " + headers + "\n"));

  const Machine ubuntu;
  bare(ubuntu);
  ubuntu.stub("grep", "[ \"$2\" = '^(UBUNTU|VERSION)_CODENAME=jammy' ]");
  ubuntu.stub("g++", "exit 1");  // 11 is too old
  ubuntu.start({"demo"});
  CHECK(has(ubuntu.log(), kInstall + "g++-12 cmake ninja-build " + headers + "\n"));

  const Machine mac;
  bare(mac);
  mac.user(false);
  mac.stub("uname", "echo Darwin");
  const std::string packages =
      "llvm cmake ninja doctest nlohmann-json cli11 openblas "
      "google-benchmark";
  const Ended without_brew = mac.start({"demo"});
  CHECK(without_brew.code == 1);
  CHECK(has(without_brew.err,
            "Install Homebrew (https://brew.sh), then run:\n  brew install " + packages + "\n"));
  mac.stub("brew", "echo \"brew $*\" >>\"$WORLD/log\"");
  mac.start({"demo"}, "y\n");
  CHECK(mac.log() == "brew install " + packages + "\n");
}

TEST_CASE("CXX and PELLUCID_MARCH choose, and choosing otherwise configures anew") {
  const Machine machine;
  machine.stub("other", "cat >/dev/null");
  RunOptions options = machine.options();
  CHECK(run({"doctor"}, options).code == 0);
  options.environment["CXX"] = "other";
  CHECK(run({"doctor"}, options).code == 0);
  options.environment["PELLUCID_MARCH"] = "haswell";
  CHECK(run({"doctor"}, options).code == 0);
  CHECK(run({"doctor"}, options).code == 0);
  const std::string cache = slurp(machine.root + "/build/CMakeCache.txt");
  CHECK(has(cache, "PELLUCID_MARCH:STRING=haswell"));
  CHECK(has(cache, "PELLUCID_COMPILER:STRING=other"));
  CHECK(machine.log() ==
        "cmake\nninja pellucid_program\ncmake\nninja pellucid_program\ncmake\nninja "
        "pellucid_program\nninja pellucid_program\n");
  options.environment["CXX"] = "absent";
  const Ended ended = run({"doctor"}, options);
  CHECK(ended.code == 1);
  CHECK(ended.err == "pellucid: CXX=absent is missing or too old: g++ 12 or clang 16 is needed\n");
}

TEST_CASE("grade builds the exercise, and with --student-build nothing beside it and the grader") {
  const Machine machine;
  fs::create_directories(machine.root + "/tutorials/01-tensors/exercise");
  Ended ended = machine.start({"grade", "01-tensors", "--file", "no-exercise/strides.cpp"});
  CHECK(ended.code == 0);
  CHECK(machine.log() == "cmake\nninja pellucid_program exercise_01_tensors_library\n");
  ended = machine.start({"grade", "--student-build", "01-tensors"});
  CHECK(machine.log().ends_with("\nninja pellucid_grader exercise_01_tensors_library\n"));
  CHECK(has(ended.out, "<grade>\n<--student-build>\n<01-tensors>\n"));
  fs::create_directories(machine.root + "/tutorials/11-xsa/exercise-kernel");
  for (const std::string name : {"11-xsa-kernel", "./tutorials/11-xsa-kernel//"}) {
    machine.start({"grade", name});
    CHECK(machine.log().ends_with("\nninja pellucid_program exercise_11_xsa_kernel_library\n"));
  }
  // Without a name of an exercise there is only the program to build.
  machine.start({"grade", ""});
  CHECK(machine.log().ends_with("\nninja pellucid_program\n"));
}

TEST_CASE("failures of cmake and ninja show why, and end with 1") {
  const Machine machine;
  machine.stub("ninja", "echo undeclared >&2; exit 1");
  Ended ended = machine.start({"demo"});
  CHECK(ended.code == 1);
  CHECK(has(ended.err, "undeclared\npellucid: the build failed; the lines above say why\n"));
  fs::remove_all(machine.root + "/build");
  machine.stub(
      "cmake",
      "[ \"$1\" != --version ] || { echo cmake version 3.22.0; exit; }\necho broken; exit 1");
  ended = machine.start({"demo"});
  CHECK(ended.code == 1);
  CHECK(ended.err == "broken\npellucid: configuring failed; the lines above say why\n");
  machine.stub("cmake", "echo cmake version 3.21.9");
  ended = machine.start({"demo"});
  CHECK(has(machine.log(), kInstall + "cmake\n"));
}

TEST_CASE("a build of two seconds shows itself, and one that fails shows why") {
  const Machine machine;
  CHECK(machine.start({"demo"}).code == 0);
  machine.stub("ninja", "[ \"$3\" = build.ninja ] || { echo compiling; exec sleep 3; }");
  CHECK(machine.start({"demo"}).err == "compiling\n");
  machine.stub("ninja", "[ \"$3\" = build.ninja ] || { echo undeclared; exit 1; }");
  const Ended ended = machine.start({"demo"});
  CHECK(ended.code == 1);
  CHECK(ended.err == "undeclared\npellucid: the build failed; the lines above say why\n");
}

TEST_CASE("test builds what its names choose, and help builds nothing") {
  const Machine machine;
  for (const char* folder : {"nn", "kernels"})
    fs::create_directories(machine.root + "/tests/" + folder);
  for (const char* file : {"nn/data_test.cpp", "nn/gpt_test.cpp", "kernels/gemm_test.cpp"})
    spit(machine.root + "/tests/" + file, "");
  CHECK(machine.start({"test", "--help"}).out == "tests --help\n");
  CHECK(machine.log() == "");
  CHECK(machine.start({"test", "nn", "gemm"}).code == 0);
  CHECK(machine.log() == "cmake\nninja test_kernels_gemm test_nn_data test_nn_gpt\n");
  CHECK(machine.start({"test", "--all", "nn.gpt"}).code == 0);
  CHECK(machine.log().ends_with("\nninja test_nn_gpt\n"));
  CHECK(machine.start({"test", "nothing"}).code == 0);
  CHECK(machine.log().ends_with("\nninja all\n"));
}

TEST_CASE("help before the first build is the script's own, and builds and asks nothing") {
  const Machine machine;
  machine.missing("doctest-dev");
  for (const std::vector<std::string>& line :
       std::vector<std::vector<std::string>>{{"--help"}, {"-h"}, {"train", "--help"}}) {
    const Ended ended = machine.start(line);
    CHECK(ended.code == 0);
    CHECK(ended.err == "");
    CHECK(ended.out.rfind("Pellucid's start script", 0) == 0);
    CHECK(has(ended.out, "\n  ./pellucid demo  "));
    CHECK(has(ended.out, "\n\nNothing is built yet. "));
    CHECK(!has(ended.out, "set -eu"));
  }
  CHECK(machine.log() == "");
  CHECK(!fs::exists(machine.root + "/build"));
  CHECK(machine.start({"doctor"}).code == 0);
  CHECK(has(machine.start({"train", "--help"}).out, "<train>\n<--help>\n"));
  fs::remove(machine.root + "/build/pellucid");
  CHECK(has(machine.start({"grade", "--student-build", "-h"}).out, "<-h>\n"));
}

TEST_CASE("help builds nothing where there is a program, and the grader alone tells of grade") {
  const Machine machine;
  CHECK(machine.start({"doctor"}).code == 0);
  const std::string log = machine.log();
  CHECK(has(machine.start({"sample", "--help"}).out, "<sample>\n<--help>\n"));
  CHECK(has(machine.start({"--help"}).out, "<--help>\n"));
  fs::remove(machine.root + "/build/pellucid");
  CHECK(has(machine.start({"grade", "--help"}).out, "<grade>\n<--help>\n"));
  CHECK(has(machine.start({"sample", "--help"}).out, "Pellucid's start script"));
  CHECK(machine.log() == log);
}

TEST_CASE("help does not wait for a build that runs; others do, and say so" *
          doctest::skip(access("/usr/bin/flock", X_OK) != 0) *
          doctest::description("flock is not installed")) {
  const Machine machine;
  fs::create_symlink("/usr/bin/flock", machine.bin("flock"));
  CHECK(machine.start({"doctor"}).code == 0);
  const int lock =
      open((machine.root + "/build/.lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  REQUIRE(flock(lock, LOCK_EX) == 0);
  RunOptions options = machine.options();
  options.seconds = 20;
  CHECK(has(run({"train", "--help"}, options).out, "<train>\n<--help>\n"));
  options.program = "/bin/sh";
  Process waits({"-c", "exec \"$0\" doctor 2>&1", machine.root + "/pellucid"}, options);
  while (waits.running() && !has(waits.output(), "\n")) usleep(1000);
  CHECK(waits.output() ==
        "Waiting for another ./pellucid that builds in build/ (Ctrl-C stops waiting; nothing is "
        "lost)\n");
  close(lock);
  const Ended ended = waits.wait();
  CHECK(ended.code == 0);
  CHECK(has(ended.out, "<doctor>\n"));
}

TEST_CASE("test builds everything and hands over to tests/run.sh") {
  const Machine machine;
  const Ended ended = machine.start({"test", "--all", "nn"});
  CHECK(ended.code == 0);
  CHECK(ended.out == "tests " + machine.root + "/build --all nn\n");
  CHECK(machine.log() == "cmake\nninja all\n");
}

TEST_CASE("test --sanitize and --mutants build in folders of their own") {
  const Machine machine;
  for (const std::string name : {"sanitize", "mutants"}) {
    spit(machine.root + "/tests/" + name + ".sh", "echo " + name + " $CXX \"$@\"\n");
    const Ended ended = machine.start({"test", "--" + name, "nn", "a b"});
    CHECK(ended.code == 0);
    CHECK(ended.out == name + " g++ " + machine.root + " nn a b\n");
    CHECK(machine.log() == "");
  }
}
