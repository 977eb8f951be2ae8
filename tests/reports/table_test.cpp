// README.md's table: each line is there, names its report, and each case that it names is in the
// file that it names; each report that a case of this folder names is in the table.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

const std::filesystem::path kTests = std::filesystem::path(PELLUCID_SOURCE_DIR) / "tests";

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// The names of a file's cases; a name may be several literals, one after the other.
std::vector<std::string> cases_in(const std::filesystem::path& path) {
  const std::string text = text_of(path);
  static const std::regex kCase("\nTEST_CASE(_TEMPLATE)?\\(\\s*((\"([^\"\\\\]|\\\\.)*\"\\s*)+)");
  static const std::regex kLiteral("\"(([^\"\\\\]|\\\\.)*)\"");
  std::vector<std::string> names;
  for (std::sregex_iterator m(text.begin(), text.end(), kCase), end; m != end; ++m) {
    const std::string literals = (*m)[2];
    std::string name;
    for (std::sregex_iterator l(literals.begin(), literals.end(), kLiteral); l != end; ++l)
      name += (*l)[1];
    names.push_back(name);
  }
  return names;
}

// "owner/name#12" and "owner/name PR#12", wherever they stand.
std::set<std::string> reports_in(const std::string& text) {
  static const std::regex kReport("[A-Za-z][\\w.-]*(/[\\w.-]+)?( PR)?#\\d+");
  return {std::sregex_token_iterator(text.begin(), text.end(), kReport),
          std::sregex_token_iterator()};
}

// How many reports the table names, each once.
constexpr std::size_t kReports = 169;

struct Row {
  std::string id, report, fault, held_by;
};
std::vector<Row> table() {
  std::vector<Row> rows;
  std::stringstream lines(text_of(kTests / "reports/README.md"));
  static const std::regex kRow(R"(\| (R\d\d) \| ([^|]+) \| ([^|]+) \| ([^|]+) \|)");
  for (std::string line; std::getline(lines, line);) {
    std::smatch m;
    if (std::regex_match(line, m, kRow)) rows.push_back({m[1], m[2], m[3], m[4]});
  }
  return rows;
}

}  // namespace

TEST_CASE("the table has a line for each report, in order, none twice") {
  std::vector<std::string> wanted;
  for (int i = 1; i <= 88; ++i)  // 63 and 83 to 85 are faults of CUDA kernels
    if (i != 63 && (i < 83 || i > 85)) wanted.push_back((i < 10 ? "R0" : "R") + std::to_string(i));
  std::vector<std::string> ids;
  std::set<std::string> reports;
  for (const Row& row : table()) {
    ids.push_back(row.id);
    const std::set<std::string> of_row = reports_in(row.report);
    CHECK_MESSAGE(!of_row.empty(), row.id);
    reports.insert(of_row.begin(), of_row.end());
  }
  CHECK(ids == wanted);
  CHECK(reports.size() == kReports);
}

TEST_CASE("each case that the table names is in the file that it names, once") {
  static const std::regex kHeld("`([a-z_/]+_test\\.cpp)` \"([^\"]+)\"");
  std::map<std::string, std::vector<std::string>> cases;
  int64_t held = 0, without = 0;
  for (const Row& row : table()) {
    const std::sregex_iterator first(row.held_by.begin(), row.held_by.end(), kHeld), end;
    for (std::sregex_iterator m = first; m != end; ++m, ++held) {
      const std::string file = (*m)[1], name = (*m)[2];
      if (!cases.count(file)) cases[file] = cases_in(kTests / file);
      int64_t found = 0;
      for (const std::string& one : cases[file]) found += one.rfind(name, 0) == 0;
      CHECK_MESSAGE(found == 1, row.id, ": ", file, " has ", found, " cases that begin with ",
                    name);
    }
    if (first == end) {  // then it says why
      ++without;
      CHECK_MESSAGE(row.held_by.find("here") != std::string::npos, row.id, ": ", row.held_by);
    }
  }
  CHECK(held > 100);
  std::cout << "FIGURE | reports without a layer here | " << without << "\n";
}

TEST_CASE("each report that a case names is in the table") {
  std::set<std::string> reports;
  for (const Row& row : table())
    for (const std::string& report : reports_in(row.report)) reports.insert(report);
  int64_t named = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kTests / "reports"))
    if (entry.path().extension() == ".cpp")
      for (const std::string& name : cases_in(entry.path()))
        for (const std::string& report : reports_in(name)) {
          ++named;
          CHECK_MESSAGE(reports.count(report) == 1, entry.path().filename().string(), ": ", report);
        }
  CHECK(named > 50);
}
