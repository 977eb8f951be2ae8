// The code blocks of README.md and CONTRIBUTING.md, which tests run.
#pragma once
#include <fstream>
#include <string>
#include <vector>

// The blocks of one language: ```sh ... ```.
inline std::vector<std::string> blocks(const std::string& language,
                                       const std::string& page = "/README.md") {
  std::ifstream in(PELLUCID_SOURCE_DIR + page);
  std::vector<std::string> found;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (!inside && line == "```" + language) {
      inside = true;
      found.emplace_back();
    } else if (inside && line == "```") {
      inside = false;
    } else if (inside) {
      found.back() += line + "\n";
    }
  }
  return found;
}
