// Three small GPTs against PyTorch: logits, loss, gradients, ten AdamW steps. The numbers are in
// data/gpt_reference.safetensors, made by data/make_gpt_reference.py, which says how: float64
// throughout, parameters and tokens from a generator that both sides have, some elements of each
// gradient and the product of the whole with known numbers, and for each quantity the larger
// error of two float32 runs of PyTorch that sum in different orders.
//
// Case "sa": GPT-2 (layer norm, learned positions, tied head, biases, gelu_tanh, clipping).
// Case "xsa": the XSA paper's code with a gate, RoPE, two heads of keys for four of queries, RMS
// norm, untied head, no biases, gelu.
// Case "llama": SwiGLU, sinks, query-key norm, RoPE of adjacent pairs, RMS norm, two heads of keys,
// no biases, XSA in layer 1 only, without a gate.
#include <doctest/doctest.h>

#include <cmath>
#include <iostream>

#include "nn/optim.h"
#include "tensor/safetensors.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

// Twelve-bit numbers in [-1/2, 1/2), exact in float32.
std::vector<double> numbers(const std::string& name, int64_t n) {
  uint64_t x = stream_of(name);
  std::vector<double> list;
  for (int64_t i = 0; i < n; ++i) {
    x = x * 6364136223846793005 + 1442695040888963407;
    list.push_back(static_cast<double>(x >> 52) / 4096 - 0.5);
  }
  return list;
}

std::vector<double> thinned(const Tensor& x, std::size_t every) {
  const std::vector<double> all = x.to_vector();
  std::vector<double> some;
  for (std::size_t i = 0; i < all.size(); i += every) some.push_back(all[i]);
  return some;
}

GPT make_model(const std::string& kind, DType dtype) {
  GPTConfig c;
  c.vocab_size = 61, c.block_size = 33, c.n_layer = 2, c.n_head = 4, c.n_embd = 48;
  c.attention = kind == "sa" ? "sa" : "xsa";
  if (kind == "sa") {
    c.mlp = "gelu_tanh";
  } else {
    c.n_kv_head = 2, c.position = "rope", c.norm = "rms_norm", c.bias = false;
  }
  if (kind == "xsa") c.xsa_gate = true, c.tied_head = false;
  if (kind == "llama") {
    c.mlp = "swiglu", c.n_hidden = 20, c.sink = c.qk_norm = true, c.xsa_layers = {1};
    c.rope_layout = "adjacent";
  }
  GPT model(c, 0, dtype);
  StateDict state;
  for (const auto& [key, x] : model.named_parameters()) {
    std::vector<double> values = numbers(key, x.numel());
    const bool norm = key.find("ln_") != key.npos || key.find("_norm") != key.npos;
    const double one = norm && key.ends_with("weight") ? 1 : 0;
    for (double& v : values) v = v / 4 + one;
    state[key] = from_vector(values, x.shape(), dtype);
  }
  model.load_state_dict(state);
  return model;
}

// Compares one quantity: float64 within 1e-10, float32 within 4 times what PyTorch's runs miss,
// and half a unit in the last place of the largest number, which PyTorch may hit by luck.
struct Judge {
  const StateDict& reference;
  std::string kind;
  bool single;
  double worst = 0;

  void operator()(const std::string& key, const std::vector<double>& ours) {
    const std::string full_key = kind + "." + key;
    CAPTURE(full_key);
    const auto wanted = reference.at(full_key).to_vector();
    double size = 0, bound = 1e-10;
    for (const double w : wanted) size = std::max(size, std::abs(w));
    if (single) {
      bound = 4 * std::max(reference.at(full_key + ".float32_error").item(), std::ldexp(size, -24));
    }
    const double error = max_difference(ours, wanted);
    CHECK(error <= bound);
    worst = std::max(worst, error / bound);
  }
};

void compare(const StateDict& reference, const std::string& kind, DType dtype) {
  GPT model = make_model(kind, dtype);
  const Tensor ids = reference.at(kind + ".ids"), targets = reference.at(kind + ".targets");
  Judge judge{reference, kind, dtype == kFloat32};
  const std::size_t every = kind == "llama" ? 97 : 7, every_logit = kind == "llama" ? 13 : 1;
  judge("logits", thinned(model.forward(ids), every_logit));

  // Gradients.
  model.loss(ids, targets).backward();
  for (const auto& [key, x] : model.named_parameters()) {
    const auto g = x.grad().to_vector(), r = numbers("dot", x.numel());
    double dot = 0;
    for (std::size_t i = 0; i < g.size(); ++i) dot += g[i] * r[i];
    judge("grad." + key, thinned(x.grad(), every));
    if (dtype == kFloat64) judge("dot." + key, {dot});
  }
  model.zero_grad();

  // Ten steps of AdamW.
  AdamWOptions options;
  options.beta2 = 0.95;
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.1), options);
  std::vector<double> losses;
  for (int step = 0; step < 10; ++step) {
    const Tensor loss = model.loss(ids, targets);
    losses.push_back(loss.item());
    loss.backward();
    if (kind == "sa") optimizer.clip_grad_norm(0.5);
    optimizer.step(1e-3);
    optimizer.zero_grad();
  }
  losses.push_back(model.loss(ids, targets).item());
  judge("losses", losses);
  std::cout << "FIGURE | GPT (" << kind << ") against PyTorch, " << name(dtype)
            << ", worst share of its bound | " << judge.worst << std::endl;
}

}  // namespace

TEST_CASE("logits, gradients and ten losses are PyTorch's") {
  const StateDict reference =
      load_safetensors(PELLUCID_SOURCE_DIR "/tests/nn/data/gpt_reference.safetensors").tensors;
  for (const char* kind : {"sa", "xsa", "llama"})
    for (const DType dtype : {kFloat64, kFloat32}) compare(reference, kind, dtype);
}
