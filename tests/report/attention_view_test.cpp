// Attention's weights, outputs and similarities, against plain loops in double.
#include "tutorials/report/attention_view.h"

#include <doctest/doctest.h>

#include <cmath>

#include "error_of.h"

using namespace pellucid;
using namespace pellucid::report;

namespace {

struct Naive {
  std::vector<double> p, y, v;  // (H, T, T), (H, T, D), (H, T, D)
};

// By the definition, one number after the other; qkv (T, (H + 2 Hkv) D).
Naive naive(const std::vector<double>& qkv, int64_t T, int64_t H, int64_t Hkv, int64_t D,
            const std::vector<double>& sink) {
  const int64_t width = (H + 2 * Hkv) * D;
  const auto at = [&](int64_t i, int64_t head, int64_t d) {
    return qkv[static_cast<std::size_t>(i * width + head * D + d)];
  };
  Naive n;
  for (int64_t h = 0; h < H; ++h) {
    const int64_t key = H + h / (H / Hkv), value = key + Hkv;
    for (int64_t i = 0; i < T; ++i) {
      std::vector<double> weight(static_cast<std::size_t>(T), 0.0);
      double total = sink.empty() ? 0 : std::exp(sink[static_cast<std::size_t>(h)]);
      for (int64_t j = 0; j <= i; ++j) {
        double score = 0;
        for (int64_t d = 0; d < D; ++d) score += at(i, h, d) * at(j, key, d);
        weight[static_cast<std::size_t>(j)] = std::exp(score / std::sqrt(double(D)));
        total += weight[static_cast<std::size_t>(j)];
      }
      for (double& w : weight) w /= total, n.p.push_back(w);
      for (int64_t d = 0; d < D; ++d) {
        double sum = 0;
        for (int64_t j = 0; j <= i; ++j)
          sum += weight[static_cast<std::size_t>(j)] * at(j, value, d);
        n.y.push_back(sum), n.v.push_back(at(i, value, d));
      }
    }
  }
  return n;
}

void check_near(const Tensor& x, const std::vector<double>& wanted, double bound) {
  const std::vector<double> found = x.to_vector();
  REQUIRE(found.size() == wanted.size());
  double worst = 0;
  for (std::size_t i = 0; i < found.size(); ++i)
    worst = std::max(worst, std::abs(found[i] - wanted[i]));
  CHECK(worst <= bound);
}

std::vector<int64_t> some_ids(int64_t n, int64_t vocabulary, uint64_t seed) {
  Generator rng{.seed = seed};
  std::vector<int64_t> ids;
  for (int64_t i = 0; i < n; ++i) ids.push_back(rng.below(vocabulary));
  return ids;
}

nn::GPTConfig small_config() {
  nn::GPTConfig c;
  c.vocab_size = 19;
  c.block_size = 23;
  c.n_layer = 3;
  c.n_head = 4;
  c.n_embd = 20;
  c.dropout = 0.5;
  return c;
}

}  // namespace

TEST_CASE("weights and outputs are those of plain loops in double, with groups and sinks") {
  for (const int64_t Hkv : {1, 2, 4})
    for (const bool with_sink : {false, true}) {
      const int64_t T = 13, H = 4, D = 5;
      Generator rng{.seed = 7};
      const Tensor qkv = randn({1, T, (H + 2 * Hkv) * D}, rng, kFloat64);
      const Tensor sink = with_sink ? randn({H}, rng, kFloat64) : Tensor();
      const AttentionView view = view_attention(qkv, H, Hkv, sink);
      const Naive wanted = naive(qkv.to_vector(), T, H, Hkv, D,
                                 with_sink ? sink.to_vector() : std::vector<double>());
      CHECK(view.p.shape() == Shape{H, T, T});
      CHECK(view.y.shape() == Shape{H, T, D});
      // A score is a sum of D products of numbers below 4, an output one of T such numbers.
      check_near(view.p, wanted.p, 1e-14);
      check_near(view.y, wanted.y, 1e-13);
      check_near(view.v, wanted.v, 0);
    }
}

TEST_CASE("the outputs are what the model's own attention makes: of SA all, of XSA before it") {
  for (const std::string position : {"learned", "rope"})
    for (const int64_t kv : {1, 2, 4})
      for (const std::string kind : {"sa", "xsa"}) {
        nn::GPTConfig config = small_config();
        config.position = position, config.n_kv_head = kv, config.attention = kind;
        config.n_embd = 32;
        config.sink = kv == 2, config.qk_norm = kv > 1;
        if (kind == "xsa" && kv == 4) config.xsa_layers = {1};
        nn::GPT model(config, 3, kFloat64);
        const std::vector<int64_t> ids = some_ids(17, config.vocab_size, 5);
        std::vector<Tensor> qkv;
        for (nn::Block& block : model.h)
          block.attn.on_qkv = [&](const Tensor& x) { qkv.push_back(x.detach()); };
        model.eval();
        model.hidden(from_vector(ids, {1, 17}));
        const std::vector<AttentionView> views = view_attention(model, ids);
        REQUIRE(qkv.size() == 3);
        REQUIRE(views.size() == 3);
        for (std::size_t i = 0; i < 3; ++i) {
          const Tensor fused =
              attention(qkv[i], {}, 4, kv, {}, model.h[i].attn.sink);  // (1, T, H D)
          const Tensor by_head = permute(reshape(fused, {17, 4, 8}), {1, 0, 2});
          check_near(views[i].y, by_head.to_vector(), 1e-13);
        }
      }
}

TEST_CASE(
    "similarities: the means of the loops' cosines; the same each time, the model as before") {
  nn::GPTConfig config = small_config();
  config.n_kv_head = 2;
  nn::GPT model(config, 3, kFloat64);
  const std::vector<std::vector<int64_t>> texts = {some_ids(9, 19, 1), some_ids(23, 19, 2)};
  const auto layers = measure_similarity(model, texts);
  CHECK(model.training());
  for (const nn::Block& block : model.h) CHECK_FALSE(block.attn.on_qkv);

  REQUIRE(layers.size() == 3);
  for (std::size_t l = 0; l < 3; ++l) {
    REQUIRE(layers[l].heads.size() == 4);
    double mean = 0;
    for (std::size_t h = 0; h < 4; ++h) {
      double similarity = 0, diagonal = 0;
      for (const auto& text : texts) {
        const auto T = text.size();
        const AttentionView view = view_attention(model, text)[l];
        const auto y = view.y.to_vector(), v = view.v.to_vector(), p = view.p.to_vector();
        for (std::size_t i = 1; i < T; ++i) {
          double yv = 0, yy = 0, vv = 0;
          for (std::size_t d = (h * T + i) * 5; d < (h * T + i + 1) * 5; ++d)
            yv += y[d] * v[d], yy += y[d] * y[d], vv += v[d] * v[d];
          similarity += yv / std::sqrt(yy * vv) / 30;
          diagonal += p[(h * T + i) * T + i] / 30;
        }
      }
      CHECK(layers[l].heads[h].similarity == doctest::Approx(similarity).epsilon(1e-12));
      CHECK(layers[l].heads[h].diagonal == doctest::Approx(diagonal).epsilon(1e-12));
      CHECK(std::abs(layers[l].heads[h].baseline) < 1);
      CHECK(layers[l].heads[h].baseline != layers[l].heads[h].similarity);
      mean += similarity / 4;
    }
    CHECK(layers[l].mean.similarity == doctest::Approx(mean).epsilon(1e-12));
  }
  CHECK(measure_similarity(model, texts)[2].mean.baseline == layers[2].mean.baseline);
  CHECK(measure_similarity(model, texts, 2)[2].mean.baseline != layers[2].mean.baseline);
}

TEST_CASE(
    "a head that looks only at itself: all similarities 1; random values: the baseline is 0") {
  // q = k = 30 e_i makes p the identity, so that y = v.
  const int64_t T = 12;
  Tensor qkv = zeros({1, T, 3 * T}, kFloat64);
  const Tensor one = eye(T, kFloat64) * 30.0;
  Generator rng{.seed = 1};
  qkv = cat({reshape(one, {1, T, T}), reshape(one, {1, T, T}), randn({1, T, T}, rng, kFloat64)}, 2);
  const AttentionView view = view_attention(qkv, 1, 1);
  check_near(view.p, eye(T, kFloat64).to_vector(), 1e-12);
  check_near(view.y, view.v.to_vector(), 1e-12);
}

TEST_CASE("too short a text, and none, are refused") {
  nn::GPT model(small_config());
  CHECK(error_of([&] { measure_similarity(model, {{1}}); }) ==
        "similarity: wanted texts of 2 tokens or more; got 1");
  CHECK(error_of([&] { measure_similarity(model, {}); }) == "similarity: wanted at least one text");
  CHECK(
      error_of([&] { view_attention(model, some_ids(24, 19, 1)); }).starts_with("GPT: 24 tokens"));
  for (const nn::Block& block : model.h) CHECK_FALSE(block.attn.on_qkv);
  CHECK(model.training());
}
