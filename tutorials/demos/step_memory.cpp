#include "tutorials/demos/step_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace pellucid::demos {
namespace {

// The width of q, k and v together.
double packed_width(const nn::GPTConfig& m) {
  return double(m.n_embd) * (1 + 2 * double(m.kv_heads()) / double(m.n_head));
}

// Of the blocks' matrices and of the tables; biases and norms are too small to count.
double matrices(const nn::GPTConfig& m) {
  const double C = double(m.n_embd), hidden = double(m.hidden_size());
  const double block = C * packed_width(m) + C * C + (m.mlp == "swiglu" ? 3 : 2) * C * hidden;
  return double(m.n_layer) * block;
}
double tables(const nn::GPTConfig& m) {
  const double rows = double(m.vocab_size) * (m.tied_head ? 1 : 2) +
                      (m.position == "learned" ? double(m.block_size) : 0);
  return rows * double(m.n_embd);
}

// Parameters, gradients and the optimizer's moments. Muon keeps one for a block's matrix, and makes
// it orthogonal by products that need about six of the largest besides.
double kept_tensors(const nn::TrainConfig& config) {
  const nn::GPTConfig& m = config.model;
  if (config.optimizer == "sgd") return 3 * (matrices(m) + tables(m));
  if (config.optimizer != "muon") return 4 * (matrices(m) + tables(m));
  const double largest = double(m.n_embd) * std::max(packed_width(m), double(m.hidden_size()));
  return 3 * matrices(m) + 4 * tables(m) + 6 * largest;
}

// Numbers a place that live at the end of the forward pass, and the gradient that it begins with.
double activations(const nn::GPTConfig& m) {
  const double C = double(m.n_embd), hidden = double(m.hidden_size());
  const double attention = 3 * C + (m.qk_norm ? 3 : 1) * packed_width(m);  // x, ln_1(x), qkv, y
  const double mlp = 2 * C + (m.mlp == "swiglu" ? 3 : 2) * hidden;         // x, ln_2(x), inside
  const double head = 2 * C + 2 * double(m.vocab_size);                    // x, ln_f(x), logits
  return double(m.n_layer) * (attention + mlp) + head;
}

// The number in a file of Linux's control groups; they say "max" for none.
double limit_in(const char* path, double otherwise) {
  double limit = 0;
  return std::ifstream(path) >> limit ? limit : otherwise;
}

// Of the memory, for tensors: the program, the allocator's gaps and passing tensors take the rest.
constexpr double kShare = 0.8;

}  // namespace

StepMemory step_memory(const nn::TrainConfig& config, double places) {
  return {.parameters = kept_tensors(config) * sizeof(float),
          .activations = activations(config.model) * places * sizeof(float),
          .batches = 2 * places * double(config.accumulation) * sizeof(int64_t)};
}

double most_places(const nn::TrainConfig& config, const std::vector<int64_t>& tokens,
                   std::optional<int64_t> end_of_text) {
  const double T = double(config.model.block_size), full = double(config.batch_size) * T;
  if (!end_of_text) return full;
  double longest = 0, windows = 0;  // of up to T tokens
  for (auto begin = tokens.begin(); begin != tokens.end();) {
    const auto end = std::find(begin + 1, tokens.end(), *end_of_text);
    longest = std::max(longest, double(end - begin));
    windows += double(end - begin) / T + 2;  // two are left over where a long one is cut
    begin = end;
  }
  return std::min(full, windows * std::min(longest, T));
}

double machine_memory() {
  double bytes = double(sysconf(_SC_PHYS_PAGES)) * double(sysconf(_SC_PAGESIZE));
  for (const char* path :
       {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"})
    bytes = std::min(bytes, limit_in(path, bytes));
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
    bytes = std::min(bytes, double(limit.rlim_cur));
  return bytes;
}

std::string memory_text(double bytes) {
  char text[64];
  const bool tera = bytes >= 1e12;
  std::snprintf(text, sizeof text, "%.1f %s", bytes / (tera ? 1e12 : 1e9), tera ? "TB" : "GB");
  return text;
}

void check_memory(const nn::TrainConfig& config, double places) {
  const StepMemory step = step_memory(config, places);
  const double there = machine_memory();
  if (step.all() <= kShare * there) return;
  const char* repair =
      step.parameters > kShare * there
          ? "its parameters alone are too many: give a smaller n_embd, "
            "n_layer, block_size or vocabulary"
      : step.batches > step.activations
          ? "give a smaller accumulation"
          : "give a smaller batch_size, with more accumulation in its place, or block_size";
  throw std::runtime_error("train: a step would take about " + memory_text(step.all()) +
                           " of memory, more than 80 % of the " + memory_text(there) +
                           " that this machine has; " + repair);
}

}  // namespace pellucid::demos
