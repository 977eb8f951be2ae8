// `pellucid train`: trains a GPT on a text file, or goes on with a run that was stopped.
#pragma once
#include <cstdint>
#include <string>

namespace pellucid::demos {

struct TrainArguments {
  std::string data, preset, out;  // a new run
  std::string resume;             // or the folder of an old one; data then only if the file moved
  std::string attention = "xsa";
  int64_t steps = 0;   // 0: the preset's
  double minutes = 0;  // instead of steps
  uint64_t seed = 1;
};

// Returns the exit code: 0 when the run is complete, 128 + signal when it was stopped and saved.
int train(const TrainArguments& arguments);

}  // namespace pellucid::demos
