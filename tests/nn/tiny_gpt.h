// Small models of every kind for the tests of the nn floor.
#pragma once
#include <cmath>
#include <map>

#include "nn/gpt.h"

namespace pellucid::nn {

// One model for each choice that changes the code that runs: V 7, C 8, two layers.
inline std::map<std::string, GPTConfig> tiny_configs() {
  GPTConfig base;
  base.vocab_size = 7;
  base.block_size = 6;
  base.n_layer = 2;
  base.n_head = 2;
  base.n_embd = 8;
  std::map<std::string, GPTConfig> configs;
  auto add = [&](const std::string& key, auto change) {
    configs[key] = base;
    change(configs[key]);
  };
  add("xsa", [](GPTConfig&) {});
  add("sa", [](GPTConfig& c) { c.attention = "sa"; });
  add("xsa, gate", [](GPTConfig& c) { c.xsa_gate = true; });
  add("sa, GQA, rope",
      [](GPTConfig& c) { c.attention = "sa", c.n_head = 4, c.n_kv_head = 2, c.position = "rope"; });
  add("xsa, GQA, gate, rope adjacent, rms_norm, untied, no bias", [](GPTConfig& c) {
    c.n_head = 4, c.n_kv_head = 1, c.xsa_gate = true, c.position = "rope";
    c.rope_layout = "adjacent", c.norm = "rms_norm", c.tied_head = false, c.bias = false;
  });
  add("sa, untied, gelu_tanh",
      [](GPTConfig& c) { c.attention = "sa", c.tied_head = false, c.mlp = "gelu_tanh"; });
  add("xsa, rms_norm, rope", [](GPTConfig& c) { c.norm = "rms_norm", c.position = "rope"; });
  add("sa, GQA, rope, swiglu, sink, qk_norm", [](GPTConfig& c) {
    c.attention = "sa", c.n_head = 4, c.n_kv_head = 2, c.position = "rope", c.mlp = "swiglu";
    c.sink = c.qk_norm = true;
  });
  add("xsa in layer 1, gate, sink, qk_norm, swiglu of 5, no bias", [](GPTConfig& c) {
    c.xsa_layers = {1}, c.xsa_gate = c.sink = c.qk_norm = true, c.mlp = "swiglu", c.n_hidden = 5;
    c.bias = false;
  });
  add("xsa in layer 0, gelu of 3", [](GPTConfig& c) { c.xsa_layers = {0}, c.n_hidden = 3; });
  return configs;
}

// A float64 model whose every parameter counts: biases, norms and gates away from 0 and 1 too, and
// matrices ten times as large as GPT-2's, so that no part of it is nearly linear.
inline GPT tiny_gpt(const GPTConfig& config, uint64_t seed = 1, DType dtype = kFloat64) {
  GPT model(config, seed, dtype);
  NoGradGuard no_grad;
  for (const auto& [key, x] : model.named_parameters()) {
    Generator rng{.seed = seed, .stream = stream_of(key + " of the test")};
    add_(x, mul_(randn(x.shape(), rng, dtype), 0.2));
  }
  return model;
}

// (B, T) ids below V, different for each seed.
inline Tensor random_ids(int64_t B, int64_t T, int64_t V, uint64_t seed) {
  Generator rng{.seed = seed};
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < B * T; ++i) ids.push_back(rng.below(V));
  return from_vector(ids, {B, T});
}

// Makes list[i] the i-th of model.named_parameters(), wherever the model holds it.
inline void bind_parameters(GPT& model, const TensorList& list) {
  std::map<const TensorImpl*, Tensor> by_old;
  const NamedTensors old = model.named_parameters();
  for (std::size_t i = 0; i < old.size(); ++i) by_old[old[i].second.impl().get()] = list[i];
  Visitor visitor([&](const std::string&, Tensor& x) { x = by_old.at(x.impl().get()); });
  visitor(model);
}

inline TensorList parameter_list(GPT& model) {
  TensorList list;
  for (const auto& [key, x] : model.named_parameters()) list.push_back(x);
  return list;
}

inline double max_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    worst = d <= worst ? worst : d;  // keeps a NaN
  }
  return worst;
}

}  // namespace pellucid::nn
