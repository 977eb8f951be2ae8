// The programs of tutorials/examples: each is short, uses public headers only, and trains to what
// it is said to reach.
#include <doctest/doctest.h>

#include <filesystem>
#include <set>
#include <sstream>

#include "demos/program.h"

namespace fs = std::filesystem;

// The number that follows `what` in the program's output.
static double printed(const std::string& example, const std::string& what) {
  const Ended ended = run({}, {.program = PELLUCID_EXAMPLES "/example_" + example});
  INFO(example << ":\n" << ended.out << ended.err);
  REQUIRE(ended.code == 0);
  CHECK(ascii(ended.out));
  const std::size_t at = ended.out.find(what + ": ");
  REQUIRE(at != std::string::npos);
  const double value = std::stod(ended.out.substr(at + what.size() + 2));
  std::printf("FIGURE | example %s, %s | %g\n", example.c_str(), what.c_str(), value);
  return value;
}

TEST_CASE("an MLP tells two moons apart") {
  CHECK(printed("two_moons", "accuracy on unseen points") >= 0.99);
}
TEST_CASE("a convolutional network reads digits") {
  CHECK(printed("digits", "accuracy on unseen images") >= 0.97);
}
TEST_CASE("a recurrent network closes brackets") {
  CHECK(printed("char_rnn", "right closing brackets") >= 0.97);
}

TEST_CASE("an op of one's own passes its gradcheck, in fifteen lines of code") {
  const Ended ended = run({}, {.program = PELLUCID_EXAMPLES "/example_custom_op"});
  CHECK(ended.code == 0);
  CHECK(ended.out.rfind("gradcheck: passed, 9 elements; the worst: cube: ", 0) == 0);
  std::istringstream in(slurp(PELLUCID_SOURCE_DIR "/tutorials/examples/custom_op.cpp"));
  int code = 0;
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find_first_not_of(' ');
    code += at != std::string::npos && line.compare(at, 2, "//") != 0;
  }
  CHECK(code <= 15);
}

TEST_CASE("each example has at most 60 lines, on public headers, and a case here") {
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(PELLUCID_SOURCE_DIR "/tutorials/examples")) {
    if (entry.path().extension() != ".cpp") continue;
    const std::string text = slurp(entry.path().string());
    names.insert(entry.path().stem().string());
    INFO(entry.path().string());
    CHECK(lines(text) <= 60);
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);)
      if (line.rfind("#include \"", 0) == 0)
        CHECK((line.rfind("#include \"nn/", 0) == 0 || line.rfind("#include \"autograd/", 0) == 0 ||
               line.rfind("#include \"tensor/", 0) == 0));
  }
  CHECK(names == std::set<std::string>{"char_rnn", "custom_op", "digits", "two_moons"});
}
