// --data, --documents and --separator: what `train` and `eval` read.
#pragma once
#include <string>
#include <vector>

#include "nn/corpus.h"

namespace pellucid::demos {

struct DataArguments {
  std::vector<std::string> paths;
  std::string documents;  // "text", "files" or "lines"; "": text for one file,
                          // files for more
  std::string separator;

  nn::DataSource source() const;
};

// A run remembers absolute paths; those below the current folder as one would give them here.
nn::DataSource from_here(nn::DataSource source);

}  // namespace pellucid::demos
