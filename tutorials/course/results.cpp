#include "tutorials/course/results.h"

#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <vector>

namespace pellucid::course {

namespace {

// Each line of a text behind as many spaces.
std::string indented(const std::string& text, std::size_t spaces) {
  std::string out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) out += std::string(spaces, ' ') + line + "\n";
  return out;
}

// The last lines, printable, and how many there were if not all.
std::string tail(const std::string& text, std::size_t most) {
  std::vector<std::string> lines;
  std::istringstream in(printable(text));
  for (std::string line; std::getline(in, line);) lines.push_back(line.substr(0, 200));
  std::string out;
  if (lines.size() > most)
    out = "(the last " + std::to_string(most) + " of " + std::to_string(lines.size()) + " lines)\n";
  for (std::size_t i = lines.size() - std::min(most, lines.size()); i < lines.size(); ++i)
    out += lines[i] + "\n";
  return out;
}

// XML allows no control characters, not even as entities; other bytes that are not ASCII need not
// be UTF-8.
std::string xml(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else if (c == '\n')
      out += "&#10;";
    else
      out += c < ' ' || c > '~' ? '?' : c;
  }
  return out;
}

// Its points, and what it is.
std::string line_of(const CheckGrade& c, const std::string& more = "") {
  return "  " + std::to_string(c.passed ? c.check.points : 0) + "/" +
         std::to_string(c.check.points) + "  " + c.check.says + more + "\n";
}

// A function that is not written yet is told in full at the first check that waits for it.
std::string to_text(const std::vector<CheckGrade>& checks) {
  std::ostringstream out;
  std::set<std::string> told;
  for (const CheckGrade& c : checks) {
    const bool waits = !c.unwritten.empty() && !told.insert(c.unwritten).second;
    out << line_of(c, waits ? " (waits for " + printable(c.unwritten) + ")" : "");
    if (!c.passed && !waits) out << indented(printable(c.text), 9);
  }
  return out.str();
}

std::string reason(const Grade& grade) {
  std::string text = grade.refused;
  for (const std::string& fault : grade.faults) text += "\n" + fault;
  return text;
}

}  // namespace

std::string to_text(const Exercise& exercise, const Grade& grade) {
  std::ostringstream out;
  out << exercise.name << ": " << exercise.title << "\n"
      << grade.file << " --seed " << grade.seed << "\n\n";
  if (!grade.warnings.empty())
    out << "The compiler warns (it costs no points):\n"
        << indented(tail(grade.warnings, 20), 2) << "\n";
  if (!grade.refused.empty()) {
    const std::string name = grade.file.substr(grade.file.rfind('/') + 1);
    out << name << " " << grade.refused << ":\n";
    for (const std::string& fault : grade.faults) out << "  " << printable(fault) << "\n";
    out << "\n";
  } else {
    out << to_text(grade.checks) << "\n";
    if (!grade.printed.empty())
      out << "Your file printed:\n" << indented(tail(grade.printed, 10), 2) << "\n";
  }
  out << grade.points() << "/" << exercise.points() << " points\n";
  return out.str();
}

std::string to_junit(const Exercise& exercise, const Grade& grade) {
  std::size_t failures = 0;
  for (const CheckGrade& c : grade.checks) failures += !c.passed;
  std::ostringstream out;
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\""
      << xml(exercise.name) << "\" tests=\"" << grade.checks.size() << "\" failures=\"" << failures
      << "\" errors=\"0\">\n    <properties><property name=\"seed\" value=\"" << grade.seed
      << "\"/></properties>\n";
  for (const CheckGrade& c : grade.checks) {
    out << "    <testcase classname=\"" << xml(exercise.name) << "\" name=\"" << xml(c.check.name)
        << "\"";
    if (c.passed) {
      out << "/>\n";
      continue;
    }
    const std::string text = grade.refused.empty() ? c.text : reason(grade);
    out << ">\n      <failure message=\"" << c.check.points
        << (c.check.points == 1 ? " point: " : " points: ") << xml(c.check.says) << "\">"
        << xml(text) << "</failure>\n    </testcase>\n";
  }
  out << "  </testsuite>\n</testsuites>\n";
  return out.str();
}

// What a student sees above the tests: what each gave, and all together.
static std::string summary(const Exercise& exercise, const Grade& grade) {
  std::string text = exercise.name + ": " + exercise.title + "\n";
  if (!grade.refused.empty())
    text += "Nothing was run: " + grade.file.substr(grade.file.rfind('/') + 1) + " " +
            reason(grade) + "\n";
  for (const CheckGrade& c : grade.checks) text += line_of(c);
  return text + std::to_string(grade.points()) + "/" + std::to_string(exercise.points()) +
         " points, --seed " + std::to_string(grade.seed) + "\n";
}

std::string to_gradescope(const Exercise& exercise, const Grade& grade) {
  using nlohmann::json;
  json tests = json::array();
  for (const CheckGrade& c : grade.checks)
    tests.push_back({{"name", c.check.says},
                     {"score", c.passed ? c.check.points : 0},
                     {"max_score", c.check.points},
                     {"status", c.passed ? "passed" : "failed"},
                     {"output", c.passed                ? ""
                                : grade.refused.empty() ? c.text
                                                        : reason(grade)},
                     {"visibility", "visible"}});
  const json all = {{"score", grade.points()},
                    {"output", summary(exercise, grade)},
                    {"tests", tests},
                    {"extra_data", {{"exercise", exercise.name}, {"seed", grade.seed}}}};
  return all.dump(2, ' ', true, json::error_handler_t::replace) + "\n";
}

}  // namespace pellucid::course
