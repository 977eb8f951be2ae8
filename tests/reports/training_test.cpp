// Known faults of optimisers, schedules and accumulation. Each check is shown to see the mistakes
// that it is there for.
#include <algorithm>
#include <iostream>

#include "nn/optim.h"
#include "nn/tiny_gpt.h"
#include "reports.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

// The known ways to write AdamW.
enum class Variant {
  kRight,
  kNoBiasCorrection,
  kEpsBeforeCorrection,  // the correction multiplies eps too
  kEpsInsideRoot,
  kDecayAfterStep,   // of the weight that has been updated
  kDecayInGradient,  // L2 regularisation
  kNoDecay,
};

// Steps with gradients g[0], g[1], ... from theta, in long double.
std::vector<long double> adamw_by_formula(Variant variant, long double theta,
                                          const std::vector<long double>& g, long double lr,
                                          long double beta1, long double beta2, long double decay) {
  const long double eps = 1e-8L;
  long double m = 0, v = 0, power1 = 1, power2 = 1;
  std::vector<long double> path;
  for (long double gradient : g) {
    power1 *= beta1, power2 *= beta2;
    long double c1 = 1 - power1, c2 = 1 - power2;
    if (variant == Variant::kNoBiasCorrection) c1 = c2 = 1;
    if (variant == Variant::kDecayInGradient) gradient += decay * theta;
    if (variant != Variant::kDecayInGradient && variant != Variant::kNoDecay &&
        variant != Variant::kDecayAfterStep)
      theta -= lr * decay * theta;
    m = beta1 * m + (1 - beta1) * gradient;
    v = beta2 * v + (1 - beta2) * gradient * gradient;
    long double below = std::sqrt(v) / std::sqrt(c2) + eps;
    if (variant == Variant::kEpsBeforeCorrection) below = (std::sqrt(v) + eps) / std::sqrt(c2);
    if (variant == Variant::kEpsInsideRoot) below = std::sqrt(v / c2 + eps);
    theta -= lr / c1 * m / below;
    if (variant == Variant::kDecayAfterStep) theta -= lr * decay * theta;
    path.push_back(theta);
  }
  return path;
}

struct Setting {
  double lr, beta2, decay;
};
const Setting kSettings[] = {{1e-2, 0.999, 0.1}, {1e-2, 0.999, 0}, {1e-4, 0.95, 0.1}};
const std::vector<double> kTheta{1, -2, 0.5};
const std::vector<Values> kGradients{{.1, -.2, 0}, {.3, -.1, 1e-8}, {-.2, .4, 0}};

// The largest difference, relative to 1, between nn::AdamW and a formula over all three steps.
double worst_difference(Variant variant, const Setting& s) {
  const Tensor theta = from_vector(kTheta, {3}, kFloat64).set_requires_grad(true);
  AdamWOptions options;
  options.beta2 = s.beta2;
  AdamW optimizer({{{{"theta", theta}}, s.decay}}, options);
  std::vector<std::vector<long double>> path;
  for (std::size_t i = 0; i < 3; ++i) {
    std::vector<long double> g;
    for (const Values& step : kGradients) g.push_back(step[i]);
    path.push_back(adamw_by_formula(variant, kTheta[i], g, s.lr, 0.9, s.beta2, s.decay));
  }
  long double worst = 0;
  for (std::size_t step = 0; step < 3; ++step) {
    theta.grad() = from_vector(kGradients[step], {3}, kFloat64);
    optimizer.step(s.lr);
    const Values found = theta.to_vector();
    for (std::size_t i = 0; i < 3; ++i) worst = std::max(worst, std::abs(found[i] - path[i][step]));
  }
  return double(worst);
}

}  // namespace

TEST_CASE(
    "AdamW is the formula within 1e-15, and every known mistake is further from it "
    "(ml-explore/mlx PR#1640, EurekaLabsAI/micrograd PR#2, pytorch/pytorch PR#22628, "
    "aiqm/torchani PR#261, huggingface/transformers#14539, joennlae/tensorli#1, "
    "bitsandbytes#2010)") {
  for (const Setting& s : kSettings) {
    CHECK(worst_difference(Variant::kRight, s) <= 1e-15);
    for (const Variant mistake :
         {Variant::kNoBiasCorrection, Variant::kEpsBeforeCorrection, Variant::kEpsInsideRoot,
          Variant::kDecayAfterStep, Variant::kDecayInGradient, Variant::kNoDecay}) {
      const bool decay = mistake == Variant::kDecayAfterStep ||
                         mistake == Variant::kDecayInGradient || mistake == Variant::kNoDecay;
      if (decay && s.decay == 0) continue;
      CAPTURE(int(mistake));
      CHECK(worst_difference(mistake, s) > 1e-10);
    }
  }
}

TEST_CASE("AdamW's first step, and a gradient of 0 with no past (EurekaLabsAI/micrograd PR#2)") {
  // Bias-corrected, the first step is lr g / (|g| + eps) for a gradient of any size.
  for (const double g : {1e-3, 0.1, -0.1, 1.0, -1e10, 1e-8}) {
    const Tensor w = from_vector(Values(33, 1.0), {33}, kFloat64).set_requires_grad(true);
    AdamW optimizer({{{{"w", w}}, 0}});
    w.grad() = full({33}, g, kFloat64);
    optimizer.step(1e-2);
    const double wanted = 1 - 1e-2 * g / (std::abs(g) + 1e-8);
    for (double v : w.to_vector()) CHECK(std::abs(v - wanted) <= 4 * 0x1p-53);
  }
  const Tensor w = full({33}, 3, kFloat64).set_requires_grad(true);
  AdamW optimizer({{{{"w", w}}, 0.5}});
  w.grad() = zeros({33}, kFloat64);
  optimizer.step(0.1);
  for (double v : w.to_vector()) CHECK(std::abs(v - 3 * (1 - 0.1 * 0.5)) <= 3 * 0x1p-52);
}

TEST_CASE(
    "the norm of all gradients: no overflow, and what is not finite is an error that changes "
    "nothing (pytorch/pytorch#46849, pytorch/pytorch PR#53843)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : {1, 2, 15, 17, 33, 1000, 40000})
      for (const double size : {1e-30, 1.0, 1e20, 3e38}) {
        const Tensor w = zeros({n}, dtype).set_requires_grad(true);
        AdamW optimizer({{{{"w", w}}, 0}});
        const Tensor g = full({n}, size, dtype);
        w.grad() = g;
        const double wanted = g.to_vector()[0] * std::sqrt(double(n));
        const double norm = optimizer.clip_grad_norm(1e-3 * wanted);
        // n squares added in blocks in double, and a root: far below 2 n u.
        CHECK(std::abs(norm - wanted) <= 2 * double(n) * 0x1p-53 * wanted);
        optimizer.step(1e-2);
        for (double v : w.to_vector()) CHECK(std::isfinite(v));
      }
  for (const int64_t n : {1, 3, 17, 130})
    for (int64_t at = 0; at < n; at += 1 + n / 17)
      for (const double bad : {kInf, -kInf, kNaN}) {
        const Tensor a = ones({3}).set_requires_grad(true), b = ones({n}).set_requires_grad(true);
        AdamW optimizer({{{{"a", a}, {"b", b}}, 0.1}});
        Values g(std::size_t(n), 0.5);
        g[std::size_t(at)] = bad;
        a.grad() = ones({3});
        b.grad() = from_vector(g, {n});
        CHECK_THROWS_WITH_AS(optimizer.clip_grad_norm(1),
                             "clip_grad_norm: the gradient of b is not finite", NotFinite);
        CHECK(optimizer.steps() == 0);
        CHECK(same_bits(a, ones({3})));
        CHECK(same_bits(b, ones({n})));
        CHECK(same_bits(b.grad(), from_vector(g, {n})));
      }
}

TEST_CASE(
    "the learning rate for every warm-up and length: above 0 from the first step, no jump, a "
    "cosine to min_lr, min_lr at the end and after (karpathy/nanoGPT PR#578, "
    "NVIDIA-NeMo/Speech#10582, "
    "meta-pytorch/torchtune#2010, EleutherAI/gpt-neox PR#1008)") {
  const long double pi = std::acos(-1.0L);
  for (const double peak : {1.0, 3e-4})
    for (const double min_lr : {0.0, 0.1 * peak, peak})
      for (int64_t warmup = 0; warmup <= 12; ++warmup)
        for (int64_t total = 0; total <= 12; ++total) {
          const Schedule s{.peak = peak, .min_lr = min_lr, .warmup = warmup, .total = total};
          int wrong = 0;
          for (int64_t step = 0; step <= 30; ++step) {
            const double lr = learning_rate(s, step);
            long double wanted = min_lr;
            if (step < warmup)
              wanted = (long double)peak * (long double)(step + 1) / (long double)(warmup + 1);
            else if (step < total)
              wanted = min_lr + (peak - (long double)min_lr) / 2 *
                                    (1 + std::cos(pi * (long double)(step - warmup) /
                                                  (long double)(total - warmup)));
            wrong += !(std::abs(lr - wanted) <= 8 * 0x1p-53 * peak);
            wrong += step >= std::max(warmup, total) && lr != min_lr;
            wrong += step < std::max(warmup, total) && min_lr > 0 && !(lr > 0);
            wrong += step < warmup && !(lr > 0 && lr < peak);
          }
          wrong +=
              warmup < total && !(std::abs(learning_rate(s, warmup) - peak) <= 4 * 0x1p-53 * peak);
          wrong += learning_rate(s, INT64_MAX) != min_lr;
          CHECK_MESSAGE(wrong == 0, "warm-up ", warmup, ", total ", total, ", min_lr ", min_lr);
        }
}

TEST_CASE(
    "8 micro-batches of 1 give the gradients of one batch of 8; an overwritten, forgotten or "
    "unscaled one is seen in every parameter (karpathy/llm.c PR#408)") {
  constexpr int64_t B = 8;
  double worst_share = 0, worst_error = 0;
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config);
    const int64_t length = config.block_size, V = config.vocab_size;
    const Tensor ids = random_ids(B, length, V, 1), targets = random_ids(B, length, V, 2);
    const auto gradients = [&](int64_t from, int64_t to) {  // added to what is there
      model.loss(slice(ids, 0, from, to), slice(targets, 0, from, to)).backward();
      std::vector<Values> all;
      for (const auto& [name, x] : model.named_parameters()) all.push_back(x.grad().to_vector());
      return all;
    };
    const std::vector<Values> whole = gradients(0, B);

    // Each row of the batch has its own terms, the same in both ways but for a power of two: what
    // differs is the order of the sums over B rows of `length` tokens each. Two orders of n terms
    // differ by at most 2 n u sum |terms|; the terms are the gradients of one target each.
    std::vector<Values> terms;
    for (const Values& g : whole) terms.emplace_back(g.size(), 1e-300);
    const Values target = targets.to_vector();
    for (int64_t at = 0; at < B * length; ++at) {
      model.zero_grad();
      Ids only(std::size_t(length), int64_t{-100});
      only[std::size_t(at % length)] = int64_t(target[std::size_t(at)]);
      model.loss(slice(ids, 0, at / length, at / length + 1), from_vector(only, {1, length}))
          .backward();
      std::size_t p = 0;
      for (const auto& [name, x] : model.named_parameters()) {
        const Values g = x.grad().to_vector();
        for (std::size_t i = 0; i < g.size(); ++i)
          terms[p][i] += std::abs(g[i]) / double(B * length);
        ++p;
      }
    }
    // A bias of the keys shifts all scores of a row alike: its gradient is 0, the sum over the
    // tokens of terms that cancel within one target already. They are of the size of the terms of
    // the queries' bias beside it, so in this vector the largest judges all.
    for (std::size_t p = 0; p < terms.size(); ++p)
      if (model.named_parameters()[p].first.ends_with("c_attn.bias"))
        std::fill(terms[p].begin(), terms[p].end(),
                  *std::max_element(terms[p].begin(), terms[p].end()));
    // The largest |a - b / scale| in a parameter, as a share of its bound.
    const auto share = [&](std::size_t p, const Values& b, double scale) {
      double worst = 0;
      for (std::size_t i = 0; i < b.size(); ++i) {
        const double error = std::abs(whole[p][i] - b[i] / scale);
        worst = std::max(worst, error / (2 * double(B * length) * 0x1p-53 * terms[p][i]));
      }
      return worst;
    };
    model.zero_grad();
    std::vector<Values> sums;
    for (int64_t b = 0; b < B; ++b) sums = gradients(b, b + 1);
    model.zero_grad();
    const std::vector<Values> last = gradients(B - 1, B);  // what `=` in place of `+=` would leave
    for (std::size_t p = 0; p < sums.size(); ++p) {
      CAPTURE(model.named_parameters()[p].first);
      CHECK(share(p, sums[p], double(B)) <= 1);
      worst_share = std::max(worst_share, share(p, sums[p], double(B)));
      Values scaled = sums[p], forgotten = sums[p];
      for (std::size_t i = 0; i < scaled.size(); ++i) {
        worst_error = std::max(worst_error, std::abs(whole[p][i] - scaled[i] / double(B)));
        forgotten[i] -= last[p][i];
      }
      CHECK(share(p, last[p], double(B)) > 1e6);
      CHECK(share(p, forgotten, double(B)) > 1e6);
      CHECK(share(p, sums[p], 1) > 1e6);
    }
    model.zero_grad();
  }
  CHECK(worst_error <= 1e-15);
  std::cout << "FIGURE | 8 x 1 against 1 x 8 in float64, largest difference | " << worst_error
            << "\nFIGURE | the same, as a share of the rounding bound | " << worst_share << "\n";
}
