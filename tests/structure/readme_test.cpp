// Everything in README.md that can run, runs: each line of its sh blocks, and its C++ program,
// whose output must be the one that the README prints. The op that CONTRIBUTING.md shows is a
// file's text, built and run as a test of its own.
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "structure/readme_blocks.h"

namespace fs = std::filesystem;

namespace {

struct Ended {
  int code;
  std::string output;
};
Ended run(const std::string& command) {
  FILE* pipe = popen(("( " + command + " ) 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  std::array<char, 4096> part;
  while (const std::size_t n = fread(part.data(), 1, part.size(), pipe))
    output.append(part.data(), n);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, output};
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

}  // namespace

TEST_CASE("the README's commands run, in its order") {
  const fs::path folder =
      fs::temp_directory_path() / ("pellucid-readme-" + std::to_string(getpid()));
  fs::create_directories(folder / "build");
  fs::copy_file(std::string(PELLUCID_SOURCE_DIR) + "/README.md", folder / "README.md");
  int ran = 0;
  for (const std::string& block : blocks("sh")) {
    std::istringstream lines(block);
    for (std::string line; std::getline(lines, line);) {
      // This very test is part of `test`; the demo takes its five minutes in the long test below.
      if (line.rfind("./pellucid test", 0) == 0) continue;
      if (line == "./pellucid demo") line += " --minutes 0.05";
      replace_all(line, "./pellucid ", "\"" PELLUCID_PROGRAM "\" ");
      const Ended ended = run("cd '" + folder.string() + "' && " + line);
      INFO(line << "\n" << ended.output);
      CHECK(ended.code == 0);
      CHECK(ended.output.size() > 20);
      ++ran;
    }
  }
  CHECK(ran >= 6);
  fs::remove_all(folder);
}

TEST_CASE("the op that CONTRIBUTING.md shows is the file that is built") {
  std::ifstream in(PELLUCID_SOURCE_DIR "/tutorials/examples/custom_op.cpp");
  std::ostringstream file;
  file << in.rdbuf();
  const std::vector<std::string> shown = blocks("cpp", "/CONTRIBUTING.md");
  REQUIRE(shown.size() == 1);
  CHECK(shown[0] == file.str());
}

TEST_CASE("the README's program prints what the README says") {
  const std::vector<std::string> output = blocks("text");
  REQUIRE(output.size() == 1);
  const Ended ended = run("\"" PELLUCID_README_EXAMPLE "\"");
  CHECK(ended.code == 0);
  CHECK(ended.output == output[0]);
}
