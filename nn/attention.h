// Multi-head causal self-attention: SA, or XSA, which takes from each head's output the part along
// the token's own value (arXiv:2603.09078). Heads of queries may share heads of keys and values
// (GQA); RoPE turns queries and keys; XSA's strength may be a gate tanh(theta) per head.
//
//   x (B, T, C) -> c_attn -> (B, T, (H + 2 Hkv) D) -> rope -> attention (B, T, H D) -> c_proj
#pragma once
#include <optional>

#include "nn/layers.h"

namespace pellucid::nn {

struct AttentionConfig {
  int64_t C = 0, H = 1, Hkv = 1;  // D = C / H
  AttentionKind kind = AttentionKind::kXSA;
  bool gate = false;  // XSA: learn a strength per head, which starts at tanh(0) = 0
  bool bias = true;
  double dropout = 0;  // of the output; the weights have no dropout: they are never formed
  std::optional<RopeOptions> rope;  // none: positions come from elsewhere
  DType dtype = kFloat32;
};

// The keys (turned by RoPE already) and values of one layer at positions 0 .. length - 1.
struct KVCache {
  Tensor k, v;  // (B, capacity, Hkv, D)
  int64_t length = 0;
};

struct MultiHeadAttention : Module {
  explicit MultiHeadAttention(const AttentionConfig& attention_config);
  void visit(Visitor& v) override {
    v("c_attn", c_attn), v("c_proj", c_proj), v("gate", gate), v("dropout", drop);
  }
  // With a cache, decoding, without a gradient: x (B, Tq, C) holds the positions from cache->length
  // on; their keys and values are added to the cache.
  Tensor forward(const Tensor& x, Generator& rng, KVCache* cache = nullptr) const;
  KVCache make_cache(int64_t B, int64_t capacity) const;

  AttentionConfig config;
  Linear c_attn, c_proj;
  Tensor gate;  // theta (H), or undefined: strength 1
  Dropout drop;

 private:
  // The heads' outputs before c_proj, (B, Tq, H D), of qkv that rope has turned.
  Tensor decode(const Tensor& qkv, const Tensor& strength, const AttentionOptions& options,
                KVCache& cache) const;
};

}  // namespace pellucid::nn
