#include "tutorials/demos/json_lines.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "tensor/check.h"
#include "tensor/files.h"
#include "tensor/json.h"

namespace pellucid::demos {

bool each_json_line(const std::string& path, CutLine cut_line,
                    const std::function<void(const nlohmann::json&, int64_t line)>& visit) {
  const std::string text = read_file(path);
  int64_t line = 0;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = std::min(text.find('\n', at), text.size());
    ++line;
    const std::string words = text.substr(at, end - at);
    if (words.find_first_not_of(" \t\r") == words.npos) continue;
    try {
      const nlohmann::json j = parse_json(words, false);
      if (j.is_discarded() && end == text.size() && cut_line == CutLine::kDrop) return true;
      CHECK_ARG(!j.is_discarded(), "this is not JSON");
      CHECK_ARG(j.is_object(), "wanted a JSON object; got ", j.dump());
      visit(j, line);
    } catch (const std::invalid_argument& error) {
      throw std::runtime_error(path + ":" + std::to_string(line) + ": " + error.what() +
                               "; mend the line or take it out");
    }
  }
  return false;
}

}  // namespace pellucid::demos
