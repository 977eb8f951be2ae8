#include "tutorials/course/kill_table.h"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <sstream>
#include <stdexcept>

#include "tensor/files.h"
#include "tutorials/course/grader.h"

namespace pellucid::course {

namespace {

std::string replace_all(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string library_file(const Exercise& e) { return source_folder() + "/" + e.replaces; }

// One line of a block, applied to what the lines before made.
void apply(const Exercise& e, const std::string& line, std::string& old, Kill& kill) {
  const std::size_t space = std::min(line.find(' '), line.size());
  const std::string word = line.substr(0, space);
  const std::string rest = replace_all(line.substr(std::min(space + 1, line.size())), "\\n", "\n");
  if (word == "from") {
    kill.text = rest == "library" ? read_file(library_file(e))
                : rest == "stub"  ? read_file(e.file)
                                  : "";
  } else if (word == "old") {
    if (kill.text.find(rest) == std::string::npos)
      throw std::runtime_error("kills.txt: " + kill.name + ": its file has no \"" + rest + "\"");
    old = rest;
  } else if (word == "new") {
    kill.text = replace_all(kill.text, old, rest);
  } else if (word == "add") {
    kill.text += rest + "\n";
  } else if (word == "refused") {
    kill.refused = rest;
  } else if (word == "loses") {
    std::istringstream names(rest);
    for (std::string name; names >> name;) kill.loses.push_back(name);
    if (rest == "all") kill.loses.clear();
    if (rest == "all")
      for (const ExerciseCheck& check : e.checks) kill.loses.push_back(check.name);
  } else {
    throw std::runtime_error("kills.txt: " + kill.name + ": not understood: " + line);
  }
}

// "" if the grade is as it should be, else what is not.
std::string escape(const Exercise& e, const Kill& kill, const Grade& grade) {
  if (!kill.refused.empty()) {
    std::string faults = grade.refused;
    for (const std::string& fault : grade.faults) faults += " | " + fault;
    if (faults.find(kill.refused) == std::string::npos)
      return "wanted a refusal: " + kill.refused + "; got: " + faults;
    return grade.points() == 0 ? "" : "refused, but with points";
  }
  std::string wrong;
  for (const CheckGrade& c : grade.checks) {
    const bool loses = std::count(kill.loses.begin(), kill.loses.end(), c.check.name) > 0;
    if (loses == c.passed)
      wrong += " " + c.check.name + (c.passed ? " passed" : " failed (" + c.text + ")");
  }
  for (const std::string& name : kill.loses)
    if (std::none_of(e.checks.begin(), e.checks.end(),
                     [&](const auto& c) { return c.name == name; }))
      wrong += " no check " + name;
  if (!grade.refused.empty()) wrong += " " + grade.refused;
  return wrong;
}

}  // namespace

std::vector<Kill> read_kills(const Exercise& e) {
  std::vector<Kill> kills;
  std::string old;
  bool begins = true;
  std::istringstream lines(read_file(e.place + "/kills.txt"));
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("#", 0) == 0) continue;
    if (line.empty()) {
      begins = true;
    } else if (begins) {
      kills.push_back({.name = line, .text = "", .loses = {}, .refused = ""});
      begins = false;
    } else {
      apply(e, line, old, kills.back());
    }
  }
  return kills;
}

KillTable kill_table(const Exercise& e, const std::function<void(const std::string&)>& tell) {
  std::vector<Kill> kills = {{"the library's own file", read_file(library_file(e)), {}, ""}};
  kills.push_back({"the stub as it is handed out", read_file(e.file), {}, ""});
  for (const ExerciseCheck& check : e.checks) kills.back().loses.push_back(check.name);
  for (const Kill& kill : read_kills(e)) kills.push_back(kill);
  KillTable table;
  const std::string file = e.folder + "/kill/" + e.file.substr(e.file.rfind('/') + 1);
  std::filesystem::create_directories(e.folder + "/kill");
  for (const Kill& kill : kills) {
    write_file_atomically(file, kill.text);
    const Grade result = grade(e, file, 1);
    const std::string wrong = escape(e, kill, result);
    ++(wrong.empty() ? table.killed : table.escaped);
    char line[200];
    std::snprintf(line, sizeof line, "%3d/%d  %-7s  %s", result.points(), e.points(),
                  wrong.empty() ? "ok" : "ESCAPED", kill.name.c_str());
    tell(line + (kill.refused.empty() ? "" : " (refused: " + kill.refused + ")") + "\n" +
         (wrong.empty() ? "" : "        " + wrong + "\n"));
  }
  tell(std::to_string(table.killed) + " as they should be, " + std::to_string(table.escaped) +
       " not\n");
  return table;
}

}  // namespace pellucid::course
