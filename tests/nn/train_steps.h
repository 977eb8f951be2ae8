// What the tests of the optimizers share: steps on a tiny GPT, and what they have changed.
#pragma once
#include "nn/optim.h"
#include "tiny_gpt.h"

namespace pellucid::nn {

// All parameters, one after the other.
inline std::vector<double> all_weights(GPT& model) {
  std::vector<double> all;
  for (const auto& [key, x] : model.named_parameters())
    for (const double w : x.to_vector()) all.push_back(w);
  return all;
}

inline StateDict copy_of(const StateDict& state) {
  StateDict copy;
  for (const auto& [key, x] : state) copy[key] = copy_(empty_like(x), x.detach());
  return copy;
}

// Steps [from, to) on texts of their own, for a vocabulary of 7 or more.
inline void train(GPT& model, Optimizer& optimizer, int from, int to) {
  for (int i = from; i < to; ++i) {
    const Tensor ids = random_ids(2, 6, 7, static_cast<uint64_t>(i));
    model.loss(ids, ids).backward();
    optimizer.clip_grad_norm(0.5);
    optimizer.step(1e-2);
    optimizer.zero_grad();
  }
}

}  // namespace pellucid::nn
