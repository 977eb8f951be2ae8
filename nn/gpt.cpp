// The model, and its configuration as JSON.
#include "nn/gpt.h"

#include <algorithm>
#include <cmath>

#include "nn/fields.h"

namespace pellucid::nn {
namespace {

using Names = std::initializer_list<const char*>;
constexpr char kWho[] = "GPT config";

// Calls field("name", member) for each member: the one list that reading and writing share.
template <class Config, class Field>
void each_field(Config& c, Field field) {
  field("vocab_size", c.vocab_size);
  field("block_size", c.block_size);
  field("n_layer", c.n_layer);
  field("n_head", c.n_head);
  field("n_kv_head", c.n_kv_head);
  field("n_embd", c.n_embd);
  field("dropout", c.dropout);
  field("bias", c.bias);
  field("tied_head", c.tied_head);
  field("norm", c.norm);
  field("position", c.position);
  field("mlp", c.mlp);
  field("n_hidden", c.n_hidden);
  field("attention", c.attention);
  field("xsa_layers", c.xsa_layers);
  field("xsa_gate", c.xsa_gate);
  field("sink", c.sink);
  field("qk_norm", c.qk_norm);
  field("norm_eps", c.norm_eps);
  field("rope_base", c.rope_base);
  field("rope_layout", c.rope_layout);
}

void check_range(const char* key, int64_t value, int64_t low, int64_t high) {
  CHECK_ARG(low <= value && value <= high, "GPT config: ", key, " must be from ", low, " to ", high,
            "; got ", value);
}

void check_choice(const char* key, const std::string& value, Names allowed) {
  std::string list;
  for (const char* choice : allowed) {
    if (value == choice) return;
    list += (list.empty() ? "" : ", ") + std::string(choice);
  }
  fail("GPT config: ", key, " must be one of ", list, "; got \"", value, "\"");
}

Norm make_norm(const GPTConfig& c, DType dtype) {
  const auto kind = c.norm == "rms_norm" ? Norm::Kind::kRMSNorm : Norm::Kind::kLayerNorm;
  return Norm(kind, c.n_embd, c.bias, c.norm_eps, dtype);
}

AttentionConfig attention_config(const GPTConfig& c, int64_t layer, DType dtype) {
  AttentionConfig a;
  a.C = c.n_embd;
  a.H = c.n_head;
  a.Hkv = c.kv_heads();
  a.kind = c.is_xsa(layer) ? AttentionKind::kXSA : AttentionKind::kSA;
  a.gate = c.xsa_gate && c.is_xsa(layer);
  a.sink = c.sink;
  a.qk_norm = c.qk_norm;
  a.norm_eps = c.norm_eps;
  a.bias = c.bias;
  a.dropout = c.dropout;
  a.dtype = dtype;
  if (c.position == "rope") {
    const bool halves = c.rope_layout == "halves";
    a.rope = RopeOptions{.layout = halves ? RopeLayout::kHalves : RopeLayout::kAdjacent,
                         .base = c.rope_base};
  }
  return a;
}

const GPTConfig& validated(const GPTConfig& config) {
  config.validate();
  return config;
}

}  // namespace

int64_t GPTConfig::hidden_size() const {
  if (n_hidden > 0) return n_hidden;
  return mlp == "swiglu" ? (n_embd + 2) / 3 * 8 : 4 * n_embd;
}

bool GPTConfig::is_xsa(int64_t layer) const {
  return attention == "xsa" &&
         (xsa_layers.empty() || std::count(xsa_layers.begin(), xsa_layers.end(), layer) > 0);
}

void GPTConfig::validate() const {
  // Bounds far above any model that fits into memory keep a damaged file from asking for it.
  check_range("vocab_size", vocab_size, 1, int64_t{1} << 24);
  check_range("block_size", block_size, 1, int64_t{1} << 24);
  check_range("n_layer", n_layer, 1, 1000);
  check_range("n_head", n_head, 1, 1000);
  check_range("n_kv_head", n_kv_head, 0, n_head);
  check_range("n_embd", n_embd, 1, 1 << 16);
  check_range("n_hidden", n_hidden, 0, 1 << 20);
  CHECK_ARG(n_embd % n_head == 0, "GPT config: n_embd must be a multiple of n_head; got n_embd ",
            n_embd, ", n_head ", n_head);
  check_range("n_embd / n_head, the size of a head,", n_embd / n_head, 1, 256);
  CHECK_ARG(n_head % kv_heads() == 0,
            "GPT config: n_head must be a multiple of n_kv_head; got n_head ", n_head,
            ", n_kv_head ", n_kv_head);
  CHECK_ARG(dropout >= 0 && dropout < 1, "GPT config: dropout must be in [0, 1); got ", dropout);
  CHECK_ARG(norm_eps > 0 && std::isfinite(norm_eps), "GPT config: norm_eps must be positive; got ",
            norm_eps);
  CHECK_ARG(rope_base > 0 && std::isfinite(rope_base),
            "GPT config: rope_base must be positive; got ", rope_base);
  check_choice("norm", norm, {"layer_norm", "rms_norm"});
  check_choice("position", position, {"learned", "rope"});
  check_choice("mlp", mlp, {"gelu", "gelu_tanh", "swiglu"});
  check_choice("attention", attention, {"sa", "xsa"});
  check_choice("rope_layout", rope_layout, {"halves", "adjacent"});
  CHECK_ARG(!xsa_gate || attention == "xsa", "GPT config: xsa_gate needs attention \"xsa\"");
  CHECK_ARG(xsa_layers.empty() || attention == "xsa",
            "GPT config: xsa_layers needs attention \"xsa\"");
  std::set<int64_t> layers;
  for (const int64_t layer : xsa_layers) {
    check_range("each of xsa_layers", layer, 0, n_layer - 1);
    CHECK_ARG(layers.insert(layer).second, "GPT config: xsa_layers names layer ", layer, " twice");
  }
  CHECK_ARG(position != "rope" || n_embd / n_head % 2 == 0,
            "GPT config: rope turns pairs, so that n_embd / n_head must be even; got n_embd ",
            n_embd, ", n_head ", n_head);
}

void to_json(nlohmann::json& j, const GPTConfig& config) {
  j = nlohmann::json::object();
  each_field(config, [&](const char* key, const auto& value) { j[key] = value; });
}

void from_json(const nlohmann::json& j, GPTConfig& config) {
  GPTConfig c;
  read_fields(kWho, j, [&](const auto& field) {
    if (!j.contains("mlp")) field("activation", c.mlp);  // in older files
    each_field(c, field);
  });
  config = validated(c);
}

Block::Block(const GPTConfig& c, int64_t layer, DType dtype)
    : ln_1(make_norm(c, dtype)),
      attn(attention_config(c, layer, dtype)),
      ln_2(make_norm(c, dtype)),
      mlp(c.n_embd, c.hidden_size(), c.bias, c.dropout,
          c.mlp == "swiglu"      ? Activation::kSwiGLU
          : c.mlp == "gelu_tanh" ? Activation::kGeluTanh
                                 : Activation::kGelu,
          dtype) {}

Tensor Block::forward(const Tensor& x, Generator& rng, KVCache* cache) const {
  Tensor y = x + named("attn", attn, named("ln_1", ln_1, x), rng, cache);  // (B, T, C)
  return y + named("mlp", mlp, named("ln_2", ln_2, y), rng);               // (B, T, C)
}

GPT::GPT(const GPTConfig& gpt_config, uint64_t seed, DType dtype)
    : config(validated(gpt_config)),
      rng{.seed = seed, .stream = stream_of("dropout")},
      wte(config.vocab_size, config.n_embd, dtype),
      drop(config.dropout),
      ln_f(make_norm(config, dtype)) {
  if (config.position == "learned") wpe = Embedding(config.block_size, config.n_embd, dtype);
  for (int64_t i = 0; i < config.n_layer; ++i) h.emplace_back(config, i, dtype);
  if (config.tied_head) {
    lm_head.weight = wte.weight;
  } else {
    lm_head = Linear(config.n_embd, config.vocab_size, false, dtype);
  }

  // Each layer adds to the residual stream twice: keep its variance as if it were added to once.
  constexpr double kStd = 0.02;
  init_normal(*this, kStd, seed);
  const double small = kStd / std::sqrt(2 * static_cast<double>(config.n_layer));
  for (const auto& [key, x] : named_parameters())
    if (key.ends_with("c_proj.weight")) init_normal(key, x, small, seed);
}

void GPT::visit(Visitor& v) {
  v("wte", wte), v("wpe", wpe), v("drop", drop);
  for (std::size_t i = 0; i < h.size(); ++i) v("h." + std::to_string(i), h[i]);
  v("ln_f", ln_f), v("lm_head", lm_head);
}

Tensor GPT::hidden(const Tensor& ids, std::vector<KVCache>* caches) {
  CHECK_ARG(ids.defined() && ids.dim() == 2 && ids.dtype() == kInt64,
            "GPT: wanted ids (B, T) int64; got ", ids.defined() ? ids.shape() : Shape{}, " ",
            ids.defined() ? name(ids.dtype()) : "undefined");
  CHECK_ARG(!caches || caches->size() == h.size(), "GPT: wanted one cache a layer, ", h.size(),
            "; got ", caches->size());
  const int64_t begin = caches ? caches->front().length : 0, end = begin + ids.size(1);
  CHECK_ARG(end <= config.block_size, "GPT: ", end,
            " tokens are more than block_size = ", config.block_size, "; pass the last ",
            config.block_size, " only");

  GradModeGuard mode(grad_enabled() && !caches);
  Tensor x = named("wte", wte, ids);  // (B, T, C)
  if (wpe.weight.defined()) {
    const NameScope scope("wpe");
    x = x + slice(wpe.weight, 0, begin, end);  // + (T, C)
  }
  x = named("drop", drop, x, rng);  // (B, T, C)
  for (std::size_t i = 0; i < h.size(); ++i)
    x = named("h." + std::to_string(i), h[i], x, rng,
              caches ? &(*caches)[i] : nullptr);  // (B, T, C)
  return named("ln_f", ln_f, x);                  // (B, T, C)
}

Tensor GPT::loss(const Tensor& ids, const Tensor& targets) {
  return cross_entropy(forward(ids), targets);
}

std::vector<KVCache> GPT::make_caches(int64_t B) const {
  std::vector<KVCache> caches;
  for (const Block& block : h) caches.push_back(block.attn.make_cache(B, config.block_size));
  return caches;
}

}  // namespace pellucid::nn
