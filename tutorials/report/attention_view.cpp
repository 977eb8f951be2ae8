#include "tutorials/report/attention_view.h"

#include <cmath>
#include <limits>

namespace pellucid::report {

AttentionView view_attention(const Tensor& qkv, int64_t H, int64_t Hkv, const Tensor& sink) {
  NoGradGuard no_grad;
  const int64_t T = qkv.size(1), G = H / Hkv, D = qkv.size(2) / (H + 2 * Hkv);
  const auto part = [&](int64_t first, int64_t count) {
    const Tensor x = slice(qkv, 2, first * D, (first + count) * D);      // (1, T, count D)
    return permute(reshape(x, {T, Hkv, count / Hkv, D}), {1, 2, 0, 3});  // (Hkv, G or 1, T, D)
  };
  const Tensor q = part(0, H), k = part(H, Hkv), v = part(H + Hkv, Hkv);

  // The future weighs nothing.
  const double low = -std::numeric_limits<double>::infinity();
  Tensor scores = matmul(q, transpose(k, -1, -2)) * (1 / std::sqrt(static_cast<double>(D)));
  const Tensor future = greater(triu(full_like(qkv, {T, T}, 1), 1), 0);
  scores = masked_fill(scores, expand(future, scores.shape()), low);  // (Hkv, G, T, T)

  // The sink is one more score, whose weight is thrown away.
  if (sink.defined())
    scores = cat({scores, expand(reshape(sink, {Hkv, G, 1, 1}), {Hkv, G, T, 1})}, 3);
  const Tensor p = slice(softmax(scores), 3, 0, T);  // (Hkv, G, T, T)
  return {reshape(p, {H, T, T}), reshape(matmul(p, v), {H, T, D}),
          reshape(expand(v, {Hkv, G, T, D}), {H, T, D})};
}

namespace {

// Eval mode, and an eye on every layer, for a scope.
class Watch {
 public:
  explicit Watch(nn::GPT& model) : model_(model), training_(model.training()) {
    model_.eval();
    for (nn::Block& block : model_.h)
      block.attn.on_qkv = [this, &attn = block.attn](const Tensor& qkv) {
        views.push_back(view_attention(qkv, attn.config.H, attn.config.Hkv, attn.sink));
      };
  }
  ~Watch() {
    for (nn::Block& block : model_.h) block.attn.on_qkv = {};
    model_.train(training_);
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::vector<AttentionView> views;

 private:
  nn::GPT& model_;
  bool training_;
};

double cosine(const double* a, const double* b, int64_t D) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t d = 0; d < D; ++d) ab += a[d] * b[d], aa += a[d] * a[d], bb += b[d] * b[d];
  return aa == 0 || bb == 0 ? 0 : ab / std::sqrt(aa) / std::sqrt(bb);
}

// Adds the text's sums to those of a layer's heads.
void add(LayerSimilarity& layer, const AttentionView& view, Generator& rng) {
  const int64_t H = view.y.size(0), T = view.y.size(1), D = view.y.size(2);
  const std::vector<double> p = view.p.to_vector(), y = view.y.to_vector(), v = view.v.to_vector();
  layer.heads.resize(static_cast<std::size_t>(H));
  for (int64_t h = 0; h < H; ++h)
    for (int64_t i = 1; i < T; ++i) {
      int64_t other = rng.below(T - 1);
      other += other >= i;
      const auto row = [&](const std::vector<double>& x, int64_t at) {
        return x.data() + (h * T + at) * D;
      };
      Similarity& head = layer.heads[static_cast<std::size_t>(h)];
      head.similarity += cosine(row(y, i), row(v, i), D);
      head.baseline += cosine(row(y, i), row(v, other), D);
      head.diagonal += p[static_cast<std::size_t>((h * T + i) * T + i)];
    }
}

}  // namespace

std::vector<AttentionView> view_attention(nn::GPT& model, const std::vector<int64_t>& ids) {
  NoGradGuard no_grad;
  Watch watch(model);
  model.hidden(from_vector(ids, {1, static_cast<int64_t>(ids.size())}));
  return std::move(watch.views);
}

std::vector<LayerSimilarity> measure_similarity(nn::GPT& model,
                                                const std::vector<std::vector<int64_t>>& texts,
                                                uint64_t seed) {
  std::vector<LayerSimilarity> layers(model.h.size());
  Generator rng{seed, nn::stream_of("similarity"), 0};
  double positions = 0;
  for (const std::vector<int64_t>& text : texts) {
    CHECK_ARG(text.size() >= 2, "similarity: wanted texts of 2 tokens or more; got ", text.size());
    const std::vector<AttentionView> views = view_attention(model, text);
    for (std::size_t i = 0; i < layers.size(); ++i) add(layers[i], views[i], rng);
    positions += static_cast<double>(text.size() - 1);
  }
  CHECK_ARG(positions > 0, "similarity: wanted at least one text");
  for (LayerSimilarity& layer : layers) {
    const auto H = static_cast<double>(layer.heads.size());
    for (Similarity& head : layer.heads) {
      head.similarity /= positions, head.baseline /= positions, head.diagonal /= positions;
      layer.mean.similarity += head.similarity / H;
      layer.mean.baseline += head.baseline / H;
      layer.mean.diagonal += head.diagonal / H;
    }
  }
  return layers;
}

}  // namespace pellucid::report
