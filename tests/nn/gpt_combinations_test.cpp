// Every combination of GPT's choices: its gradient along a line through all parameters, cached
// decoding, causality, JSON. gpt_test.cpp checks single elements of the gradient, for some of them.
#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/engine.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

using Change = void (*)(GPTConfig&);

// One list a choice; a combination takes one of each.
const std::vector<std::vector<Change>> kChoices = {
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.position = "rope"; },
     [](GPTConfig& c) { c.position = "rope", c.rope_layout = "adjacent"; }},
    {[](GPTConfig& c) { c.attention = "sa"; }, [](GPTConfig&) {},
     [](GPTConfig& c) { c.xsa_gate = true; }, [](GPTConfig& c) { c.xsa_layers = {1}; },
     [](GPTConfig& c) { c.xsa_layers = {0}, c.xsa_gate = true; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.n_kv_head = 1; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.sink = true; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.qk_norm = true; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.mlp = "gelu_tanh"; },
     [](GPTConfig& c) { c.mlp = "swiglu", c.n_hidden = 3; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.norm = "rms_norm"; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.tied_head = false; }},
    {[](GPTConfig&) {}, [](GPTConfig& c) { c.bias = false; }},
};

std::vector<GPTConfig> combinations() {
  GPTConfig base;
  base.vocab_size = 5, base.block_size = 4, base.n_layer = 2, base.n_head = 2, base.n_embd = 4;
  base.n_hidden = 5;
  std::vector<GPTConfig> all{base};
  for (const std::vector<Change>& choices : kChoices) {
    std::vector<GPTConfig> more;
    for (const GPTConfig& config : all)
      for (const Change change : choices) change(more.emplace_back(config));
    all = std::move(more);
  }
  return all;
}

// |slope by autograd - slope by differences| / its scale, along a random direction.
double slope_error(GPT& model, const Tensor& ids, const Tensor& targets) {
  const NamedTensors parameters = model.named_parameters();
  TensorList direction;
  double slope = 0, size = 0;
  model.loss(ids, targets).backward();
  NoGradGuard no_grad;
  for (const auto& [key, x] : parameters) {
    Generator rng{.seed = 9, .stream = stream_of(key)};
    const Tensor d = randn(x.shape(), rng, kFloat64);
    direction.push_back(d);
    const double part = sum(x.grad() * d).item();
    slope += part, size += std::abs(part);
  }
  model.zero_grad();
  double at = 0;  // along the line
  const auto loss_at = [&](double to) {
    for (std::size_t i = 0; i < parameters.size(); ++i)
      add_(parameters[i].second, direction[i] * (to - at));
    at = to;
    return model.loss(ids, targets).item();
  };
  // Some of the small models bend sharply: their fifth derivative times h^4 is to be below 1e-8.
  // The rounding of a loss, 1e-15 / h, is too.
  const double h = 5e-6, near = loss_at(h) - loss_at(-h), far = loss_at(2 * h) - loss_at(-2 * h);
  loss_at(0);
  return std::abs(slope - (8 * near - far) / (12 * h)) / size;
}

}  // namespace

TEST_CASE("every combination: gradient, cached decoding, causality, JSON") {
  const std::vector<GPTConfig> all = combinations();
  CHECK(all.size() == 2880);
  const Tensor ids = random_ids(2, 4, 5, 3), targets = random_ids(2, 4, 5, 4);
  std::vector<double> changed_ids = ids.to_vector();
  changed_ids[3] += 1, changed_ids[7] += 1;  // the last token of each text
  const Tensor other = from_vector(changed_ids, {2, 4}, kInt64);
  double worst_slope = 0, worst_decoding = 0;
  for (const GPTConfig& config : all) {
    const nlohmann::json j = config;
    CAPTURE(j.dump());
    const bool same_config = j.get<GPTConfig>() == config;
    CHECK(same_config);

    GPTConfig wider = config;
    wider.vocab_size = 6;  // the changed token may be 5
    GPT model = tiny_gpt(wider);
    const double slope = slope_error(model, ids, targets);
    if (!(slope < 1e-8)) CHECK(slope < 1e-8);
    worst_slope = std::max(worst_slope, slope);

    NoGradGuard no_grad;
    const Tensor full = model.hidden(ids);  // (B, T, C)
    std::vector<KVCache> caches = model.make_caches(2);
    const Tensor first = model.hidden(slice(ids, 1, 0, 2), &caches),
                 third = model.hidden(slice(ids, 1, 2, 3), &caches),
                 last = model.hidden(slice(ids, 1, 3, 4), &caches);
    const double decoding =
        max_difference(cat({first, third, last}, 1).to_vector(), full.to_vector());
    if (!(decoding < 1e-12)) CHECK(decoding < 1e-12);
    worst_decoding = std::max(worst_decoding, decoding);

    const Tensor changed = model.hidden(other);
    const bool causal = slice(changed, 1, 0, 3).to_vector() == slice(full, 1, 0, 3).to_vector() &&
                        slice(changed, 1, 3, 4).to_vector() != slice(full, 1, 3, 4).to_vector();
    if (!causal) CHECK(causal);
  }
  std::cout << "FIGURE | " << all.size()
            << " kinds of GPT, float64: slope by autograd against differences, worst relative | "
            << worst_slope << "\nFIGURE | the same, cached decoding against the full forward | "
            << worst_decoding << std::endl;
}
