// The house's rules that a program can check: floors, the line budget, file lengths, characters.
#include <doctest/doctest.h>

#include <cctype>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

namespace {

const fs::path kRoot = PELLUCID_SOURCE_DIR;

struct SourceFile {
  std::string name;  // from the root: "kernels/gemm.cpp"
  std::vector<std::string> lines;
};

std::vector<SourceFile> files_under(const std::string& folder,
                                    const std::set<std::string>& extensions) {
  std::vector<SourceFile> files;
  for (const auto& entry : fs::recursive_directory_iterator(kRoot / folder)) {
    if (!entry.is_regular_file() || !extensions.count(entry.path().extension().string())) continue;
    SourceFile file{fs::relative(entry.path(), kRoot).generic_string(), {}};
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) file.lines.push_back(line);
    files.push_back(file);
  }
  return files;
}

const std::vector<std::string> kFloors = {"kernels", "tensor", "autograd", "nn", "tutorials"};
const std::set<std::string> kCode = {".h", ".cpp", ".cu", ".cuh"};

// The folder that an include of one of ours names, or "".
std::string included_folder(const std::string& line) {
  const std::string begin = "#include \"";
  if (line.rfind(begin, 0) != 0) return "";
  const std::size_t slash = line.find('/');
  return slash == std::string::npos ? "" : line.substr(begin.size(), slash - begin.size());
}

int64_t floor_of(const std::string& folder) {
  for (std::size_t i = 0; i < kFloors.size(); ++i)
    if (kFloors[i] == folder) return static_cast<int64_t>(i);
  return -1;
}

bool has_word(const std::string& line, const std::string& word) {
  const auto letter = [&](std::size_t i) {
    return i < line.size() && (std::isalnum(static_cast<unsigned char>(line[i])) || line[i] == '_');
  };
  for (std::size_t at = 0; (at = line.find(word, at)) != std::string::npos; at += word.size())
    if (!(at > 0 && letter(at - 1)) && !letter(at + word.size())) return true;
  return false;
}

bool is_code(const std::string& line) {
  const std::size_t at = line.find_first_not_of(" \t");
  return at != std::string::npos && line.compare(at, 2, "//") != 0;
}

}  // namespace

TEST_CASE("no include points up a floor, and nn includes no kernel") {
  int64_t includes = 0;
  for (const std::string& floor : kFloors)
    for (const SourceFile& file : files_under(floor, kCode))
      for (const std::string& line : file.lines) {
        const std::string folder = included_folder(line);
        if (floor_of(folder) < 0) continue;
        ++includes;
        INFO(file.name << ": " << line);
        CHECK(floor_of(folder) <= floor_of(floor));
        if (floor == "nn") CHECK(folder != "kernels");
      }
  CHECK(includes > 50);
}

TEST_CASE("tensor, autograd and nn fit in 7,600 lines of code") {
  int64_t total = 0;
  for (const std::string floor : {"tensor", "autograd", "nn"})
    for (const SourceFile& file : files_under(floor, {".h", ".cpp"}))
      for (const std::string& line : file.lines) total += is_code(line);
  std::cout << "FIGURE | tensor + autograd + nn, lines of code (at most 7,600) | " << total << "\n";
  CHECK(total > 500);
  CHECK(total <= 7600);
}

TEST_CASE("files are short, ASCII, and free of tabs and trailing space") {
  for (const std::string folder : {"kernels", "tensor", "autograd", "nn", "tutorials", "tests"})
    for (const SourceFile& file : files_under(folder, kCode)) {
      INFO(file.name);
      CHECK(file.lines.size() <= 500);
      for (const std::string& line : file.lines) {
        INFO(line);
        bool plain = line.empty() || line.back() != ' ';
        for (char c : line) plain = plain && c >= ' ' && c <= '~';
        if (!plain) CHECK(plain);
      }
    }
}

TEST_CASE("a library folder prints nothing and ends no process") {
  // Each floor below the tutorials reports by exceptions and return values; only the start-up check
  // of the CPU writes and exits.
  for (const std::string folder : {"kernels", "tensor", "autograd", "nn"})
    for (const SourceFile& file : files_under(folder, kCode)) {
      if (file.name == "kernels/cpu_check.cpp") continue;
      for (const std::string& line : file.lines) {
        if (!is_code(line)) continue;
        for (const char* word : {"cout", "cerr", "printf", "puts", "abort", "exit"}) {
          const bool found = has_word(line, word);
          INFO(file.name << ": " << line);
          if (found) CHECK_FALSE(found);
        }
      }
    }
}

TEST_CASE("the top level holds what it should") {
  const std::set<std::string> allowed = {
      "kernels",   "tensor",    "autograd",        "nn",
      "tutorials", "tests",     "CMakeLists.txt",  "CMakePresets.json",
      "LICENSE",   "README.md", "CONTRIBUTING.md", "pellucid",
      "build"};
  for (const auto& entry : fs::directory_iterator(kRoot)) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    CHECK((name[0] == '.' || name.rfind("build", 0) == 0 || allowed.count(name) == 1));
  }
}
