// Multi-head attention against the same in plain ops, and its cache.
#include "nn/attention.h"

#include <doctest/doctest.h>

#include "autograd/gradcheck.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

std::map<std::string, AttentionConfig> configs() {
  std::map<std::string, AttentionConfig> all;
  for (const bool xsa : {false, true}) {
    for (const int64_t kv : {4, 2, 1}) {
      for (const bool turned : {false, true}) {
        AttentionConfig c;
        c.C = 8, c.H = 4, c.Hkv = kv, c.dtype = kFloat64;
        c.kind = xsa ? AttentionKind::kXSA : AttentionKind::kSA;
        c.gate = xsa && kv == 2;
        if (turned) c.rope = RopeOptions{};
        const std::string key =
            (xsa ? "xsa " : "sa ") + std::to_string(kv) + (turned ? " rope" : "");
        all[key] = c;
        c.sink = true, c.qk_norm = kv != 4, c.norm_eps = 0.1;
        all[key + " sink" + (c.qk_norm ? " qk_norm" : "")] = c;
      }
    }
  }
  return all;
}

MultiHeadAttention make(const AttentionConfig& config) {
  MultiHeadAttention layer(config);
  init_normal(layer, 0.7, 1);
  NoGradGuard no_grad;
  if (config.gate) copy_(layer.gate, from_vector({0.3, -0.2, 1, 2}, {4}, kFloat64));
  if (config.sink) copy_(layer.sink, from_vector({0.5, -2, 1, 0.1}, {4}, kFloat64));
  if (config.qk_norm) {
    copy_(layer.q_norm.weight, from_vector({1.3, -0.7}, {2}, kFloat64));
    copy_(layer.k_norm.weight, from_vector({0.6, 2.1}, {2}, kFloat64));
  }
  return layer;
}

}  // namespace

TEST_CASE("the layer is projection, query-key norm, rope, attention, projection") {
  Generator rng;
  for (const auto& [key, config] : configs()) {
    CAPTURE(key);
    MultiHeadAttention layer = make(config);
    const Tensor x = random_leaf({2, 5, 8}, 7);
    Tensor qkv = linear(x, layer.c_attn.weight, layer.c_attn.bias);
    CHECK(qkv.size(2) == (4 + 2 * config.Hkv) * 2);
    if (config.qk_norm) {
      TensorList heads = split(qkv, 2, 2);  // D = 2
      for (int64_t h = 0; h < 4 + config.Hkv; ++h) {
        const Tensor& w = h < 4 ? layer.q_norm.weight : layer.k_norm.weight;
        heads[h] = heads[h] * rsqrt(mean(heads[h] * heads[h], -1, true) + 0.1) * w;
      }
      qkv = cat(heads, 2);
    }
    if (config.rope) qkv = rope(qkv, 4 + config.Hkv, 2, *config.rope);
    AttentionOptions options;
    options.kind = config.kind;
    const Tensor strength = config.gate ? tanh(layer.gate) : Tensor();
    Tensor y = plain::attention(qkv, strength, 4, config.Hkv, options, layer.sink);
    y = linear(y, layer.c_proj.weight, layer.c_proj.bias);
    CHECK(max_difference(layer.forward(x, rng).to_vector(), y.to_vector()) < 1e-13);
  }
}

TEST_CASE("decoding in pieces of any length gives the rows of the whole") {
  Generator rng;
  for (const auto& [key, config] : configs()) {
    CAPTURE(key);
    MultiHeadAttention layer = make(config);
    const Tensor x = random_leaf({2, 7, 8}, 8);
    const Tensor whole = layer.forward(x, rng);
    KVCache cache = layer.make_cache(2, 7);
    for (const auto& [begin, end] : {std::pair{0, 1}, {1, 4}, {4, 5}, {5, 7}}) {
      const Tensor y = layer.forward(slice(x, 1, begin, end), rng, &cache);
      CHECK(cache.length == end);
      CHECK(!y.requires_grad());
      CHECK(max_difference(y.to_vector(), slice(whole, 1, begin, end).to_vector()) < 1e-12);
    }
    CHECK_THROWS_WITH(layer.forward(slice(x, 1, 0, 1), rng, &cache),
                      "KVCache: holds 2 texts of 7 positions; got 2 of 8");
    CHECK(cache.length == 7);
  }
}

TEST_CASE("the gate starts at 0, where XSA is SA, and learns") {
  Generator rng;
  AttentionConfig config;
  config.C = 8, config.H = 2, config.Hkv = 2, config.dtype = kFloat64, config.gate = true;
  MultiHeadAttention xsa(config);
  init_normal(xsa, 0.7, 1);
  config.kind = AttentionKind::kSA, config.gate = false;
  MultiHeadAttention sa(config);
  init_normal(sa, 0.7, 1);
  const Tensor x = random_leaf({1, 5, 8}, 2);
  CHECK(max_difference(xsa.forward(x, rng).to_vector(), sa.forward(x, rng).to_vector()) < 1e-14);
  sum(xsa.forward(x, rng) * random_leaf({1, 5, 8}, 3)).backward();
  for (const double g : xsa.gate.grad().to_vector()) CHECK(std::abs(g) > 1e-3);
}

TEST_CASE("what attention refuses") {
  AttentionConfig config;
  config.C = 8, config.H = 3, config.Hkv = 1;
  CHECK_THROWS_WITH(MultiHeadAttention{config},
                    "MultiHeadAttention: C must be a multiple of H; got C 8, H 3");
  config.H = 4, config.Hkv = 3;
  CHECK_THROWS_WITH(MultiHeadAttention{config},
                    "MultiHeadAttention: H must be a multiple of Hkv; got H 4, Hkv 3");
  config.Hkv = 4, config.gate = true, config.kind = AttentionKind::kSA;
  CHECK_THROWS_WITH(MultiHeadAttention{config},
                    "MultiHeadAttention: the gate is XSA's strength; SA has none");
}
