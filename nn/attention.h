// Multi-head causal self-attention: SA, or XSA, which takes from each head's output the part along
// the token's own value (arXiv:2603.09078). Heads of queries may share heads of keys and values
// (GQA); XSA's strength may be a gate tanh(theta) per head; a sink is a learned logit per head that
// takes weight and gives nothing; query-key norm makes each head's query and key an RMSNorm of
// itself; RoPE turns queries and keys.
//
//   x (B, T, C) -> c_attn -> (B, T, (H + 2 Hkv) D) -> q_norm, k_norm -> rope
//               -> attention (B, T, H D) -> c_proj
#pragma once
#include <functional>
#include <optional>

#include "nn/layers.h"

namespace pellucid::nn {

struct AttentionConfig {
  int64_t C = 0, H = 1, Hkv = 1;  // D = C / H
  AttentionKind kind = AttentionKind::kXSA;
  bool gate = false;     // XSA: learn a strength per head, which starts at tanh(0) = 0
  bool sink = false;     // learn a logit per head, which starts at 0
  bool qk_norm = false;  // learn D weights for queries and D for keys, each the same for all heads
  double norm_eps = 1e-5;
  bool bias = true;
  double dropout = 0;  // of the output; the weights have no dropout: they are never formed
  std::optional<RopeOptions> rope;  // none: positions come from elsewhere
  DType dtype = kFloat32;
};

// The keys (normed and turned already) and values of one layer at positions 0 .. length - 1.
struct KVCache {
  Tensor k, v;  // (B, capacity, Hkv, D)
  int64_t length = 0;
};

struct MultiHeadAttention : Module {
  explicit MultiHeadAttention(const AttentionConfig& attention_config);
  void visit(Visitor& v) override {
    v("c_attn", c_attn), v("q_norm", q_norm), v("k_norm", k_norm), v("c_proj", c_proj);
    v("gate", gate), v("sink", sink), v("dropout", drop);
  }
  // With a cache, decoding, without a gradient: x (B, Tq, C) holds the positions from cache->length
  // on; their keys and values are added to the cache.
  Tensor forward(const Tensor& x, Generator& rng, KVCache* cache = nullptr) const;
  KVCache make_cache(int64_t B, int64_t capacity) const;

  AttentionConfig config;
  Linear c_attn, c_proj;
  Norm q_norm, k_norm;  // weights (D), or undefined
  Tensor gate;          // theta (H), or undefined: strength 1
  Tensor sink;          // (H), or undefined
  Dropout drop;
  // Looks on, if set: is called with qkv as attention reads it.
  std::function<void(const Tensor& qkv)> on_qkv;

 private:
  // qkv with each head of q and of k divided by its root mean square.
  Tensor norm_heads(const Tensor& qkv) const;
  // The heads' outputs before c_proj, (B, Tq, H D), of qkv that is normed and turned.
  Tensor decode(const Tensor& qkv, const Tensor& strength, const AttentionOptions& options,
                KVCache& cache) const;
};

}  // namespace pellucid::nn
