// A text, and the program at work on it: trains runs, and checks that what is wrong is refused.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "program.h"

// A text and runs on it, all in one temporary folder, the program's working directory.
struct Desk {
  TemporaryFolder folder;
  std::string text = sentences(4000);

  Desk() { spit(folder.file("text.txt"), text); }
  Ended pellucid(const std::vector<std::string>& arguments, RunOptions options = {}) const {
    options.folder = folder.path.string();
    return run(arguments, options);
  }
  // Trains a run of 40 steps in `name`.
  Ended train(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"train", "--data", "text.txt", "--preset", "tiny",
                                          "--out", name,     "--steps",  "40"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return pellucid(arguments);
  }
  // The command must fail with code 1 and one line on stderr that has the parts, and write nothing.
  void refused(const std::vector<std::string>& arguments, const std::vector<std::string>& parts,
               const RunOptions& options = {}) const {
    const auto before = snapshot(folder.path);
    const Ended ended = pellucid(arguments, options);
    std::string command;
    for (const std::string& argument : arguments) command += argument + " ";
    INFO(command << "\n" << ended.err);
    CHECK(ended.code == 1);
    CHECK(lines(ended.err) == 1);
    CHECK(ended.err.rfind("pellucid: ", 0) == 0);
    CHECK(ended.out == "");
    for (const std::string& part : parts) CHECK(ended.err.find(part) != std::string::npos);
    CHECK(snapshot(folder.path) == before);
  }
};
