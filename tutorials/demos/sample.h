// `pellucid sample` and `pellucid eval`: what a trained model writes, and how well it predicts.
#pragma once
#include <cstdint>
#include <string>

namespace pellucid::demos {

struct SampleArguments {
  std::string model, prompt = "\n";
  int64_t tokens = 300, top_k = 0;
  double temperature = 0.8;
  uint64_t seed = 1;
};
// Prints the prompt and the text that follows as it is made. Returns the exit code.
int sample(const SampleArguments& arguments);

// Prints the mean loss on the last 10 % of the file, which training leaves out, and on all of it.
int evaluate_file(const std::string& model, const std::string& data);

}  // namespace pellucid::demos
