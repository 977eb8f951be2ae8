// run_limited: whatever a program does, the grader gets its lines, its end, and its process back.
#include "tutorials/course/process.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <csignal>

#include "tensor/file_helpers.h"

using namespace pellucid::course;

namespace {

LimitedRun shell(const std::string& script, const Limits& limits = {.seconds = 0.5}) {
  return run_limited({"/bin/sh", "-c", script}, "key 1 check\n", limits);
}

using Lines = std::vector<std::string>;

// The process whose id a script wrote into a file is gone, or a zombie that is nobody's.
bool is_gone(const std::string& file) {
  const int pid = std::atoi(slurp(file).c_str());
  REQUIRE(pid > 1);
  return kill(pid, 0) != 0;
}

}  // namespace

TEST_CASE("a program that ends: its lines, its output, its exit code") {
  const LimitedRun run =
      shell("read line; echo seen $line; echo err >&2; echo key done >&3; exit 7");
  CHECK(run.stop == LimitedRun::kNone);
  CHECK(run.code == 7);
  CHECK(run.lines == Lines{"key done"});
  CHECK(run.printed == "seen key 1 check\nerr\n");
}

TEST_CASE("lines without the key, and lines that do not end, are no results") {
  const LimitedRun run =
      shell("echo forged >&3; echo key2 forged >&3; echo key one >&3; printf 'key two' >&3");
  CHECK(run.lines == Lines{"key one"});
}

TEST_CASE("a program that is killed by a signal") {
  CHECK(shell("kill -SEGV $$").code == 128 + SIGSEGV);
}

TEST_CASE("a program that never reads and never writes") {
  CHECK(shell("exec <&- >&- 2>&- 3>&-; exit 3").code == 3);
}

TEST_CASE("an endless loop gets SIGABRT, and SIGKILL if it does not heed that") {
  const LimitedRun run = shell("while :; do :; done");
  CHECK(run.stop == LimitedRun::kTime);
  CHECK(run.code == 128 + SIGABRT);
  const LimitedRun stubborn = shell("trap '' ABRT; while :; do :; done");
  CHECK(stubborn.stop == LimitedRun::kTime);
  CHECK(stubborn.code == 128 + SIGKILL);
}

TEST_CASE("who sleeps is stopped by the clock on the wall") {
  const LimitedRun run = shell("sleep 1000", {.seconds = 0.02});
  CHECK(run.stop == LimitedRun::kTime);
}

TEST_CASE("lines with the key give more time, others do not") {
  const std::string busy =
      "i=0; while [ $i -lt 4 ]; do j=0; while [ $j -lt 40000 ]; do j=$((j+1)); done; ";
  CHECK(shell(busy + "echo key $i >&3; i=$((i+1)); done", {.seconds = 20}).lines.size() == 4);
  const LimitedRun forged = shell("while :; do echo more >&3; done", {.seconds = 0.3});
  CHECK(forged.stop != LimitedRun::kNone);
  CHECK(forged.lines.empty());
}

TEST_CASE("of the calls that a program tells the last is known, and they give no more time") {
  LimitedRun run = shell("echo key begin >&3; echo key call f1 >&3; echo key call 'f 2' >&3");
  CHECK(run.lines == Lines{"key begin"});
  CHECK(run.call == "f 2");
  run = shell("echo key call f >&3; echo key pass >&3");
  CHECK(run.call == "");
  run = shell("while :; do echo key call f >&3; done");
  CHECK(run.stop == LimitedRun::kTime);
  CHECK(run.call == "f");
}

TEST_CASE("a flood of output is stopped, and little of it kept") {
  const LimitedRun run =
      shell("while :; do echo ha ha ha ha ha ha ha ha; done", {.seconds = 20, .output = 100000});
  CHECK(run.stop == LimitedRun::kOutput);
  CHECK(run.printed.size() <= 200000);
}

TEST_CASE("memory is limited" * doctest::skip(access("/proc/self/statm", R_OK) != 0)) {
  const LimitedRun run =
      shell("x=0123456789; while :; do x=$x$x; done", {.seconds = 20, .memory = 50 << 20});
  CHECK(run.stop == LimitedRun::kMemory);
}

TEST_CASE("children that are left behind end, in the group and out of it") {
  TemporaryFolder folder;
  const std::string one = folder.file("one"), two = folder.file("two");
  shell("sleep 1000 & echo $! >'" + one + "'", {.seconds = 5});
  // RLIMIT_FSIZE keeps the program from writing files: these are empty.
  CHECK(slurp(one) == "");
  LimitedRun run = shell("sleep 1000 & echo key $! >&3", {.seconds = 5});
  REQUIRE(run.lines.size() == 1);
  spit(one, run.lines[0].substr(4));
  CHECK(is_gone(one));
#ifdef __linux__
  run = shell("setsid sh -c 'echo key $$ >&3; exec sleep 1000' & sleep 0.2", {.seconds = 5});
  REQUIRE(run.lines.size() == 1);
  spit(two, run.lines[0].substr(4));
  CHECK(is_gone(two));
#endif
}

TEST_CASE("a tool's output and exit code; a tool that is missing or takes too long") {
  const ToolRun run = run_tool({"sh", "-c", "echo out; echo err >&2; exit 3"});
  CHECK(run.code == 3);
  CHECK(run.output == "out\nerr\n");
  CHECK(run_tool({"no-such-tool-anywhere"}).code == 127);
  CHECK(run_tool({"sleep", "1000"}, 0.1).code == 128 + SIGTERM);
  CHECK(run_tool({"sh", "-c", "while :; do :; done"}, 600, {.cpu_seconds = 1}).code ==
        128 + SIGXCPU);
  CHECK(run_tool({"sh", "-c", "ulimit -t"}, 600, {.cpu_seconds = 7}).output == "7\n");
  TemporaryFolder folder;
  const std::string large = "exec dd if=/dev/zero bs=1000 count=9 of='" + folder.file("x") + "'";
  CHECK(run_tool({"sh", "-c", large}, 600, {.file = 5000}).code == 128 + SIGXFSZ);
#ifdef __linux__  // macOS has no such limit
  CHECK(run_tool({"sh", "-c", "ulimit -v"}, 600, {.memory = 1 << 30}).output == "1048576\n");
#endif
  CHECK(find_program("no-such-tool-anywhere") == "");
  CHECK(find_program("sh") != "");
}
