// GPT: names, initialisation, configuration, gradients of every variant, causality, dropout,
// caches.
#include "nn/gpt.h"

#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <nlohmann/json.hpp>

#include "autograd/gradcheck.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;
using nlohmann::json;

namespace {

std::vector<std::string> names(Module& module) {
  std::vector<std::string> list;
  for (const auto& [key, x] : module.named_parameters()) list.push_back(key);
  return list;
}

// A thousandth of the parameters' size, which is about 0.2: at 0.001 itself the differences' own
// error, h^4 times the fifth derivative, passes the bound (5e-9 on an embedding under XSA).
const GradcheckOptions kStep{.step = 2e-4};

double squares(const Tensor& x) {
  double total = 0;
  for (const double v : x.to_vector()) total += v * v;
  return total;
}

}  // namespace

TEST_CASE("names are those of PyTorch's state_dict, a tied head once") {
  GPTConfig config = tiny_configs()["sa"];
  config.n_layer = 1;
  GPT tied(config);
  CHECK(names(tied) == std::vector<std::string>{"wte.weight", "wpe.weight", "h.0.ln_1.weight",
                                                "h.0.ln_1.bias", "h.0.attn.c_attn.weight",
                                                "h.0.attn.c_attn.bias", "h.0.attn.c_proj.weight",
                                                "h.0.attn.c_proj.bias", "h.0.ln_2.weight",
                                                "h.0.ln_2.bias", "h.0.mlp.c_fc.weight",
                                                "h.0.mlp.c_fc.bias", "h.0.mlp.c_proj.weight",
                                                "h.0.mlp.c_proj.bias", "ln_f.weight", "ln_f.bias"});
  config.tied_head = false, config.norm = "rms_norm", config.position = "rope", config.bias = false;
  config.attention = "xsa", config.xsa_gate = true;
  GPT other(config);
  CHECK(names(other) == std::vector<std::string>{"wte.weight", "h.0.ln_1.weight",
                                                 "h.0.attn.c_attn.weight", "h.0.attn.c_proj.weight",
                                                 "h.0.attn.gate", "h.0.ln_2.weight",
                                                 "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight",
                                                 "ln_f.weight", "lm_head.weight"});
  CHECK(other.lm_head.weight.shape() == Shape{7, 8});
  CHECK(other.h[0].mlp.c_fc.weight.shape() == Shape{32, 8});

  config.n_layer = 2, config.xsa_layers = {1}, config.sink = config.qk_norm = true;
  config.mlp = "swiglu", config.n_head = 4, config.n_kv_head = 2;
  GPT all(config);
  const std::vector<std::string> found = names(all);
  CHECK(std::vector<std::string>(found.begin() + 1, found.begin() + 11) ==
        std::vector<std::string>{
            "h.0.ln_1.weight", "h.0.attn.c_attn.weight", "h.0.attn.q_norm.weight",
            "h.0.attn.k_norm.weight", "h.0.attn.c_proj.weight", "h.0.attn.sink", "h.0.ln_2.weight",
            "h.0.mlp.c_gate.weight", "h.0.mlp.c_fc.weight", "h.0.mlp.c_proj.weight"});
  CHECK(std::count(found.begin(), found.end(), "h.0.attn.gate") == 0);
  CHECK(std::count(found.begin(), found.end(), "h.1.attn.gate") == 1);
  CHECK(all.h[0].attn.q_norm.weight.shape() == Shape{2});
  CHECK(all.h[0].attn.sink.shape() == Shape{4});
  CHECK(all.h[0].mlp.c_gate.weight.shape() == Shape{24, 8});
}

TEST_CASE("inside the MLP: 4 C, or for SwiGLU 8/3 C up to a multiple of 8") {
  const auto hidden = [](const char* mlp, int64_t C, int64_t n_hidden) {
    GPTConfig config;
    config.mlp = mlp, config.n_embd = C, config.n_hidden = n_hidden;
    return config.hidden_size();
  };
  CHECK(hidden("gelu", 48, 0) == 192);
  CHECK(hidden("gelu_tanh", 7, 0) == 28);
  CHECK(hidden("swiglu", 48, 0) == 128);
  CHECK(hidden("swiglu", 64, 0) == 176);  // 170.67
  CHECK(hidden("swiglu", 65, 0) == 176);  // 173.33
  CHECK(hidden("swiglu", 1, 0) == 8);
  CHECK(hidden("swiglu", 64, 172) == 172);
  CHECK(hidden("gelu", 64, 1) == 1);
}

TEST_CASE("GPT-2 small has 124 million parameters") {
  // 50257 768 + 1024 768 + 12 (12 768^2 + 13 768) + 2 768, counted on one layer of the twelve.
  GPTConfig config;
  config.vocab_size = 50257, config.block_size = 1024, config.n_layer = 1, config.n_head = 12;
  config.n_embd = 768;
  CHECK(GPT(config).num_parameters() + 11 * (12 * 768 * 768 + 13 * 768) == 124439808);
}

TEST_CASE("initialisation: N(0, 0.02), residual projections by 1/sqrt(2 L), zeros and ones") {
  GPTConfig config;
  config.vocab_size = 96, config.block_size = 64, config.n_layer = 3, config.n_head = 4;
  config.n_embd = 64, config.mlp = "swiglu";
  config.xsa_gate = config.sink = config.qk_norm = true;
  GPT model(config, 11);
  for (const auto& [key, x] : model.named_parameters()) {
    CAPTURE(key);
    const auto n = static_cast<double>(x.numel());
    const auto v = x.to_vector();
    if (key.ends_with("bias") || key.ends_with("gate") || key.ends_with("sink")) {
      CHECK(squares(x) == 0);
    } else if (x.dim() == 1) {
      CHECK(std::count(v.begin(), v.end(), 1.0) == x.numel());
    } else {
      // The mean of n draws has deviation std / sqrt(n), their mean square std^2 sqrt(2 / n).
      const double std = key.ends_with("c_proj.weight") ? 0.02 / std::sqrt(6.0) : 0.02;
      double total = 0;
      for (const double w : v) total += w;
      CHECK(std::abs(total / n) < 5 * std / std::sqrt(n));
      CHECK(std::abs(squares(x) / n / (std * std) - 1) < 5 * std::sqrt(2 / n));
    }
  }
  // The same seed, the same numbers, whatever else the model holds; another seed, others.
  GPT again(config, 11), seed12(config, 12);
  config.n_layer = 1, config.position = "rope", config.tied_head = false;
  GPT smaller(config, 11);
  const auto fc = model.h[0].mlp.c_fc.weight.to_vector();
  CHECK(again.h[0].mlp.c_fc.weight.to_vector() == fc);
  CHECK(smaller.h[0].mlp.c_fc.weight.to_vector() == fc);
  CHECK(seed12.h[0].mlp.c_fc.weight.to_vector() != fc);
  CHECK(model.h[1].mlp.c_fc.weight.to_vector() != fc);
}

TEST_CASE("a new model's loss is nearly log V") {
  GPTConfig config;
  config.vocab_size = 65, config.block_size = 32, config.n_layer = 2, config.n_head = 4;
  config.n_embd = 64;
  GPT model(config, 1);
  const double loss = model.loss(random_ids(4, 32, 65, 1), random_ids(4, 32, 65, 2)).item();
  // Logits are sums of 64 products of a unit and a 0.02 normal: sd 0.16, which adds its half
  // square.
  CHECK(std::abs(loss - std::log(65.0)) < 0.1);
}

TEST_CASE("the whole model's gradient, every variant, against differences") {
  double worst = 0;
  int64_t count = 0;
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config);
    const Tensor ids = random_ids(2, 5, 7, 3), targets = random_ids(2, 5, 7, 4);
    const Function loss = [&](const TensorList& p) {
      bind_parameters(model, p);
      return model.loss(ids, targets);
    };
    const GradcheckResult result = gradcheck(loss, parameter_list(model), kStep);
    CHECK_MESSAGE(result.passed, result.message());
    worst = std::max(worst, result.worst);
    count += result.elements;
  }
  std::cout << "FIGURE | gradcheck of whole GPTs, " << count
            << " parameters, worst share of the allowed error | " << worst << std::endl;
}

TEST_CASE("gradient through dropout, its generator at one place") {
  GPTConfig config = tiny_configs()["xsa"];
  config.dropout = 0.3, config.n_layer = 1;
  GPT model = tiny_gpt(config);
  const Generator start = model.rng;
  const Tensor ids = random_ids(1, 4, 7, 3), targets = random_ids(1, 4, 7, 4);
  const Function loss = [&](const TensorList& p) {
    bind_parameters(model, p);
    model.rng = start;
    return model.loss(ids, targets);
  };
  const GradcheckResult result = gradcheck(loss, parameter_list(model), kStep);
  CHECK_MESSAGE(result.passed, result.message());

  model.rng = start;
  const auto once = model.forward(ids).to_vector();
  CHECK(model.rng.offset > start.offset);
  CHECK(model.forward(ids).to_vector() != once);
  model.rng = start;
  CHECK(model.forward(ids).to_vector() == once);
  model.eval();
  const auto still = model.forward(ids).to_vector();
  CHECK(model.forward(ids).to_vector() == still);
}

TEST_CASE("a tied head's gradient is the sum of both uses") {
  GPTConfig config = tiny_configs()["xsa"];
  GPT tied = tiny_gpt(config);
  config.tied_head = false;
  GPT untied = tiny_gpt(config);
  StateDict state = tied.state_dict();
  state["lm_head.weight"] = tied.wte.weight;
  untied.load_state_dict(state);
  const Tensor ids = random_ids(2, 6, 7, 3), targets = random_ids(2, 6, 7, 4);
  tied.loss(ids, targets).backward();
  untied.loss(ids, targets).backward();
  const Tensor both = untied.wte.weight.grad() + untied.lm_head.weight.grad();
  CHECK(max_difference(tied.wte.weight.grad().to_vector(), both.to_vector()) < 1e-14);
  CHECK(squares(untied.wte.weight.grad()) > 1e-4);
  CHECK(squares(untied.lm_head.weight.grad()) > 1e-4);
}

TEST_CASE("the past does not see the future: the same bits") {
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config, 1, kFloat32);
    const Tensor ids = random_ids(2, 6, 7, 3);
    const Tensor y = model.forward(ids);
    for (int64_t t = 1; t < 6; ++t) {
      std::vector<double> changed = ids.to_vector();
      for (int64_t i = 0; i < 12; ++i) changed[i] = std::fmod(changed[i] + (i % 6 >= t), 7);
      const Tensor z = model.forward(from_vector(changed, {2, 6}, kInt64));
      CHECK(slice(z, 1, 0, t).to_vector() == slice(y, 1, 0, t).to_vector());
      CHECK(slice(z, 1, t, 6).to_vector() != slice(y, 1, t, 6).to_vector());
    }
  }
}

TEST_CASE("cached decoding gives the full forward's logits at every prefix") {
  double worst = 0;
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config);
    const Tensor ids = random_ids(2, 6, 7, 3);
    std::vector<KVCache> caches = model.make_caches(2);
    for (int64_t t = 0; t < 6; ++t) {
      const Tensor full = model.forward(slice(ids, 1, 0, t + 1));
      const Tensor step = model.lm_head.forward(model.hidden(slice(ids, 1, t, t + 1), &caches));
      const double error =
          max_difference(slice(full, 1, t, t + 1).to_vector(), step.detach().to_vector());
      CHECK(error < 1e-12);
      worst = std::max(worst, error);
    }
    // The same from a prompt of any length.
    for (int64_t t = 1; t < 6; ++t) {
      caches = model.make_caches(2);
      model.hidden(slice(ids, 1, 0, t), &caches);
      const Tensor rest = model.hidden(slice(ids, 1, t, 6), &caches);
      CHECK(max_difference(slice(model.hidden(ids), 1, t, 6).to_vector(), rest.to_vector()) <
            1e-12);
    }
  }
  std::cout << "FIGURE | cached decoding against the full forward, float64, worst | " << worst
            << std::endl;
}

TEST_CASE("what forward refuses") {
  GPT model(tiny_configs()["xsa"]);
  CHECK_THROWS_WITH(model.forward(random_ids(1, 7, 7, 1)),
                    "GPT: 7 tokens are more than block_size = 6; pass the last 6 only");
  CHECK_THROWS_WITH(model.forward(full({2, 3}, 0)),
                    "GPT: wanted ids (B, T) int64; got (2, 3) float32");
  CHECK_THROWS_WITH(model.forward(full({3}, 0, kInt64)),
                    "GPT: wanted ids (B, T) int64; got (3) int64");
  CHECK_THROWS(model.forward(full({1, 1}, 7, kInt64)));
  std::vector<KVCache> caches(1);
  CHECK_THROWS_WITH(model.hidden(random_ids(1, 1, 7, 1), &caches),
                    "GPT: wanted one cache a layer, 2; got 1");
}

TEST_CASE("a configuration survives JSON") {
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    const json j = config;
    CHECK(json::parse(j.dump()).get<GPTConfig>() == config);
    CHECK(j.size() == 21);
  }
  const GPTConfig defaults = json{{"vocab_size", 9}}.get<GPTConfig>();
  CHECK(defaults.vocab_size == 9);
  CHECK(defaults.n_layer == GPTConfig{}.n_layer);

  // What a run wrote before there were SwiGLU, sinks, query-key norm and lists of XSA layers.
  const json old = json::parse(R"({"vocab_size": 9, "block_size": 8, "n_layer": 2, "n_head": 2,
      "n_kv_head": 0, "n_embd": 8, "dropout": 0.1, "bias": false, "tied_head": true,
      "norm": "rms_norm", "position": "rope", "activation": "gelu_tanh", "attention": "xsa",
      "xsa_gate": false, "norm_eps": 1e-5, "rope_base": 10000.0, "rope_layout": "halves"})");
  const auto config = old.get<GPTConfig>();
  CHECK(config.mlp == "gelu_tanh");
  CHECK(config.hidden_size() == 32);
  CHECK((config.is_xsa(0) && config.is_xsa(1) && !config.sink && !config.qk_norm));
  CHECK(json(config).get<GPTConfig>() == config);
}

TEST_CASE("a configuration that cannot be is refused, with the field named") {
  auto with = [](const char* key, json value) {
    json j = GPTConfig{.vocab_size = 9};
    j[key] = std::move(value);
    return [j] { j.get<GPTConfig>(); };
  };
  auto refuses = [](const auto& call, const std::string& message) {
    CHECK_THROWS_WITH(call(), ("GPT config: " + message).c_str());
  };
  refuses(with("vocab_size", 0), "vocab_size must be from 1 to 16777216; got 0");
  refuses(with("block_size", -1), "block_size must be from 1 to 16777216; got -1");
  refuses(with("n_layer", 0), "n_layer must be from 1 to 1000; got 0");
  refuses(with("n_layer", 1.5), "n_layer must be an integer; got 1.5");
  refuses(with("n_layer", 9223372036854775808u),
          "n_layer must be an integer; got 9223372036854775808");
  refuses(with("n_layer", "6"), "n_layer must be an integer; got \"6\"");
  refuses(with("n_head", 5), "n_embd must be a multiple of n_head; got n_embd 384, n_head 5");
  refuses(with("n_head", 1), "n_embd / n_head, the size of a head, must be from 1 to 256; got 384");
  refuses(with("n_kv_head", 4),
          "n_head must be a multiple of n_kv_head; got n_head 6, n_kv_head 4");
  refuses(with("n_kv_head", 7), "n_kv_head must be from 0 to 6; got 7");
  refuses(with("dropout", 1), "dropout must be in [0, 1); got 1");
  refuses(with("dropout", "no"), "dropout must be a number; got \"no\"");
  refuses(with("norm_eps", 0), "norm_eps must be positive; got 0");
  refuses(with("rope_base", -1), "rope_base must be positive; got -1");
  refuses(with("bias", 1), "bias must be true or false; got 1");
  refuses(with("norm", "batch"), "norm must be one of layer_norm, rms_norm; got \"batch\"");
  refuses(with("norm", 3), "norm must be a string; got 3");
  refuses(with("position", ""), "position must be one of learned, rope; got \"\"");
  refuses(with("mlp", "relu"), "mlp must be one of gelu, gelu_tanh, swiglu; got \"relu\"");
  refuses(with("activation", "gelu"), "unknown key \"activation\"");  // besides mlp
  refuses(
      [] {
        json{{"vocab_size", 9}, {"activation", 1}}.get<GPTConfig>();
      },
      "activation must be a string; got 1");
  refuses(with("n_hidden", -1), "n_hidden must be from 0 to 1048576; got -1");
  refuses(with("sink", "yes"), "sink must be true or false; got \"yes\"");
  refuses(with("qk_norm", 1), "qk_norm must be true or false; got 1");
  refuses(with("xsa_layers", 2), "xsa_layers must be a list of integers; got 2");
  refuses(with("xsa_layers", {0, 1.5}), "xsa_layers must be a list of integers; got [0,1.5]");
  refuses(with("xsa_layers", {0, 6}), "each of xsa_layers must be from 0 to 5; got 6");
  refuses(with("xsa_layers", {-1}), "each of xsa_layers must be from 0 to 5; got -1");
  refuses(with("xsa_layers", {1, 0, 1}), "xsa_layers names layer 1 twice");
  refuses(with("attention", "XSA"), "attention must be one of sa, xsa; got \"XSA\"");
  refuses(with("rope_layout", "x"), "rope_layout must be one of halves, adjacent; got \"x\"");
  refuses(with("n_layers", 2), "unknown key \"n_layers\"");
  refuses([] { json(3).get<GPTConfig>(); }, "wanted a JSON object; got 3");
  GPTConfig config{.vocab_size = 9};
  config.attention = "sa", config.xsa_gate = true;
  refuses([&] { GPT model(config); }, "xsa_gate needs attention \"xsa\"");
  config.xsa_gate = false, config.xsa_layers = {0};
  refuses([&] { GPT model(config); }, "xsa_layers needs attention \"xsa\"");
  config.xsa_layers = {}, config.position = "rope", config.n_head = 128;
  refuses([&] { config.validate(); },
          "rope turns pairs, so that n_embd / n_head must be even; got n_embd 384, n_head 128");
}
