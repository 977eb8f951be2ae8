// How much memory training takes, told before any is taken: Linux promises more than there is, and
// then kills the process without a word.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "nn/trainer.h"

namespace pellucid::demos {

// Bytes, about.
struct StepMemory {
  double parameters = 0;   // they, their gradients, the optimizer's moments, and what it makes
  double activations = 0;  // of one pass: what its way back needs, and the logits
  double batches = 0;      // the tokens of all passes of a step
  double all() const { return parameters + activations + batches; }
};
StepMemory step_memory(const nn::TrainConfig& config, double places);

// B T of the largest pass; of documents no more than all of them make.
double most_places(const nn::TrainConfig& config, const std::vector<int64_t>& tokens,
                   std::optional<int64_t> end_of_text);

// What this machine has, or less where a container or ulimit -v allows less.
double machine_memory();
std::string memory_text(double bytes);  // "1.5 GB"

// Throws if a step takes more than 80 % of what the machine has, naming both and what to change.
void check_memory(const nn::TrainConfig& config, double places);

}  // namespace pellucid::demos
