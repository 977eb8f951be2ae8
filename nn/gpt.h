// GPT: token embeddings, pre-norm blocks of attention and MLP on a residual stream, a final norm
// and a head that gives logits over the vocabulary.
//
//   x = wte[ids] + wpe[positions]
//   x = x + attn(ln_1(x));  x = x + mlp(ln_2(x))       for each block h.i
//   logits = lm_head(ln_f(x))
//
// Radford et al. 2019 ("GPT-2"); parameter names as in its PyTorch state_dict, with nn.Linear's
// (out, in) weights.
#pragma once
#include <nlohmann/json_fwd.hpp>

#include "nn/attention.h"

namespace pellucid::nn {

struct GPTConfig {
  int64_t vocab_size = 0;
  int64_t block_size = 256;  // T: the longest context
  int64_t n_layer = 6;
  int64_t n_head = 6;
  int64_t n_kv_head = 0;  // heads of keys and values; 0: as many as n_head
  int64_t n_embd = 384;   // C
  double dropout = 0;
  bool bias = true;                      // in Linear and LayerNorm
  bool tied_head = true;                 // lm_head.weight is wte.weight
  std::string norm = "layer_norm";       // or "rms_norm"
  std::string position = "learned";      // or "rope"
  std::string mlp = "gelu";              // or "gelu_tanh", "swiglu"; "activation" in older files
  int64_t n_hidden = 0;                  // inside the MLP; 0: see hidden_size()
  std::string attention = "xsa";         // or "sa"
  std::vector<int64_t> xsa_layers = {};  // the layers with XSA, the others have SA; empty: all
  bool xsa_gate = false;                 // XSA's strength per head: tanh(theta), theta starts at 0
  bool sink = false;                     // a logit per head that takes weight and gives nothing
  bool qk_norm = false;                  // RMSNorm of each head's query and key, before rope
  double norm_eps = 1e-5;
  double rope_base = 10000;
  std::string rope_layout = "halves";  // pairs (i, i + D/2), or "adjacent": (2i, 2i + 1)

  int64_t kv_heads() const { return n_kv_head > 0 ? n_kv_head : n_head; }
  // n_hidden, or 4 C; for SwiGLU's three matrices 8/3 C, up to the next multiple of 8: about as
  // many parameters as two of 4 C.
  int64_t hidden_size() const;
  bool is_xsa(int64_t layer) const;
  // Throws with the field's name, its value and what is allowed.
  void validate() const;
  friend bool operator==(const GPTConfig&, const GPTConfig&) = default;
};
// For nlohmann::json: json j = config; j.get<GPTConfig>() refuses unknown keys and wrong types,
// gives missing ones their defaults, and validates.
void to_json(nlohmann::json& j, const GPTConfig& config);
void from_json(const nlohmann::json& j, GPTConfig& config);

// x + attn(ln_1(x)), then x + mlp(ln_2(x)): x (B, T, C)
struct Block : Module {
  Block(const GPTConfig& config, int64_t layer, DType dtype);
  void visit(Visitor& v) override {
    v("ln_1", ln_1), v("attn", attn), v("ln_2", ln_2), v("mlp", mlp);
  }
  // With a cache: decoding, see MultiHeadAttention.
  Tensor forward(const Tensor& x, Generator& rng, KVCache* cache = nullptr) const;

  Norm ln_1;
  MultiHeadAttention attn;
  Norm ln_2;
  MLP mlp;
};

struct GPT : Module {
  // Initialised as GPT-2: matrices N(0, 0.02^2), the projections back into the residual stream
  // smaller by 1 / sqrt(2 n_layer), biases 0, norms 1. Dropout draws from a stream of seed too.
  explicit GPT(const GPTConfig& gpt_config, uint64_t seed = 0, DType dtype = kFloat32);
  void visit(Visitor& v) override;

  // ids (B, T) int64, T <= block_size -> logits (B, T, vocab_size)
  Tensor forward(const Tensor& ids) { return named("lm_head", lm_head, hidden(ids)); }
  // Mean cross-entropy in nats a token; targets (B, T) are the next tokens, -100 for none.
  Tensor loss(const Tensor& ids, const Tensor& targets);

  // The final norm's output, which lm_head turns into logits: (B, T, C). With caches, ids are the
  // tokens that follow what they hold; no gradient is recorded then.
  Tensor hidden(const Tensor& ids, std::vector<KVCache>* caches = nullptr);
  std::vector<KVCache> make_caches(int64_t B) const;  // one a layer, of block_size positions

  GPTConfig config;
  Generator rng;  // of dropout: part of the state that resuming needs
  Embedding wte;  // (vocab_size, C)
  Embedding wpe;  // (block_size, C); undefined with RoPE
  Dropout drop;
  std::vector<Block> h;
  Norm ln_f;
  Linear lm_head;  // (vocab_size, C), no bias
};

}  // namespace pellucid::nn
