// Multi-head attention: one product for q, k and v together, one fused attention, one product back.
#include "nn/attention.h"

namespace pellucid::nn {
namespace {

int64_t head_size(const AttentionConfig& c) {
  CHECK_ARG(c.H > 0 && c.C > 0 && c.C % c.H == 0,
            "MultiHeadAttention: C must be a multiple of H; got C ", c.C, ", H ", c.H);
  CHECK_ARG(c.Hkv > 0 && c.H % c.Hkv == 0,
            "MultiHeadAttention: H must be a multiple of Hkv; got H ", c.H, ", Hkv ", c.Hkv);
  CHECK_ARG(!c.gate || c.kind == AttentionKind::kXSA,
            "MultiHeadAttention: the gate is XSA's strength; SA has none");
  return c.C / c.H;
}

// n heads of the packed (B, Tq, (H + 2 Hkv) D): a view (B, Tq, n, D).
Tensor heads(const Tensor& qkv, int64_t D, int64_t first, int64_t n) {
  return view(slice(qkv, 2, first * D, (first + n) * D), {qkv.size(0), qkv.size(1), n, D});
}

}  // namespace

MultiHeadAttention::MultiHeadAttention(const AttentionConfig& attention_config)
    : config(attention_config),
      c_attn(config.C, (config.H + 2 * config.Hkv) * head_size(config), config.bias, config.dtype),
      c_proj(config.C, config.C, config.bias, config.dtype),
      drop(config.dropout) {
  if (config.gate) gate = parameter({config.H}, 0, config.dtype);
  if (config.sink) sink = parameter({config.H}, 0, config.dtype);
  if (config.qk_norm)
    for (Norm* norm : {&q_norm, &k_norm})
      *norm = RMSNorm(head_size(config), config.norm_eps, config.dtype);
}

Tensor MultiHeadAttention::forward(const Tensor& x, Generator& rng, KVCache* cache) const {
  GradModeGuard mode(grad_enabled() && !cache);
  const int64_t H = config.H, Hkv = config.Hkv;
  Tensor qkv = named("c_attn", c_attn, x);  // (B, Tq, (H + 2 Hkv) D)
  if (config.qk_norm) qkv = norm_heads(qkv);
  if (config.rope) {
    RopeOptions options = *config.rope;
    options.position += cache ? cache->length : 0;
    qkv = rope(qkv, H + Hkv, config.C / H, options);  // q and k turn, v does not
  }
  if (on_qkv) on_qkv(qkv);
  const Tensor strength = gate.defined() ? tanh(gate) : Tensor();  // (H)
  AttentionOptions options;
  options.kind = config.kind;
  Tensor y = cache ? decode(qkv, strength, options, *cache)
                   : attention(qkv, strength, H, Hkv, options, sink);  // (B, Tq, H D)
  return named("dropout", drop, named("c_proj", c_proj, y), rng);      // (B, Tq, C)
}

Tensor MultiHeadAttention::norm_heads(const Tensor& qkv) const {
  const int64_t H = config.H, Hkv = config.Hkv, D = config.C / H;
  const Tensor q = named("q_norm", q_norm, heads(qkv, D, 0, H)),  // (B, Tq, H, D)
      k = named("k_norm", k_norm, heads(qkv, D, H, Hkv));         // (B, Tq, Hkv, D)
  return reshape(cat({q, k, heads(qkv, D, H + Hkv, Hkv)}, 2), qkv.shape());
}

Tensor MultiHeadAttention::decode(const Tensor& qkv, const Tensor& strength,
                                  const AttentionOptions& options, KVCache& cache) const {
  const int64_t B = qkv.size(0), Tq = qkv.size(1), H = config.H, Hkv = config.Hkv;
  const int64_t D = config.C / H, begin = cache.length, end = begin + Tq;
  CHECK_ARG(B == cache.k.size(0) && end <= cache.k.size(1), "KVCache: holds ", cache.k.size(0),
            " texts of ", cache.k.size(1), " positions; got ", B, " of ", end);

  // Add the new keys and values to the old ones.
  copy_(slice(cache.k, 1, begin, end), heads(qkv, D, H, Hkv));
  copy_(slice(cache.v, 1, begin, end), heads(qkv, D, H + Hkv, Hkv));
  cache.length = end;

  Tensor y = attention_decode(heads(qkv, D, 0, H), slice(cache.k, 1, 0, end),
                              slice(cache.v, 1, 0, end), strength, options, sink);
  return reshape(y, {B, Tq, H * D});
}

KVCache MultiHeadAttention::make_cache(int64_t B, int64_t capacity) const {
  const Shape shape{B, capacity, config.Hkv, config.C / config.H};
  return {empty(shape, config.dtype), empty(shape, config.dtype)};
}

}  // namespace pellucid::nn
