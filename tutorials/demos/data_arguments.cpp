#include "tutorials/demos/data_arguments.h"

#include <filesystem>

namespace pellucid::demos {

nn::DataSource DataArguments::source() const {
  nn::DataSource source{.paths = paths};
  std::error_code error;
  if (paths.size() > 1 || std::filesystem::is_directory(paths.at(0), error))
    source.documents = "files";
  if (!documents.empty()) source.documents = documents;
  if (!separator.empty()) source.documents = "separator", source.separator = separator;
  return source;
}

nn::DataSource from_here(nn::DataSource source) {
  for (std::string& path : source.paths) {
    const auto near =
        std::filesystem::path(path).lexically_proximate(std::filesystem::current_path());
    if (*near.begin() != "..") path = near.string();
  }
  return source;
}

}  // namespace pellucid::demos
