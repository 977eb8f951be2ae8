// `pellucid sample`: what a trained model writes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace pellucid::demos {

struct SampleArguments {
  std::string model;      // a run's folder, or a file that others made (pretrained.h)
  std::string tokenizer;  // of such a file
  // None: a new document, if the model learned from documents, else a new line.
  std::optional<std::string> prompt;
  bool interactive = false;  // each line of stdin is a prompt
  int64_t samples = 1, tokens = 300, top_k = 0;
  double top_p = 1, temperature = 0.8;
  uint64_t seed = 1;
};
// Prints the prompt and the text that follows as it is made, in whole characters, until the
// document ends or there are enough tokens; so many samples of it. Returns the exit code.
int sample(const SampleArguments& arguments);

}  // namespace pellucid::demos
