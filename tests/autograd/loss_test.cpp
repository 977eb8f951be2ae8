// The losses, beyond the table of ops: no row that counts, an ignore_index that is also a class,
// targets changed before backward, the memory that backward takes; logits of any size, 0 log 0.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "tensor/allocator.h"

using namespace pellucid;

static Tensor logits_of(const Shape& shape) {
  Generator rng{.seed = 7};
  return randn(shape, rng, kFloat64).set_requires_grad(true);
}

TEST_CASE("with every target ignored a loss is 0 with zero gradients, fused and plain (R24)") {
  const Tensor ignored = full({2, 3}, -1, kInt64);
  const auto check = [&](const auto& loss_of) {
    const Tensor x = logits_of({2, 3, 5});
    static_cast<double*>(x.data())[7] = NAN;
    const Tensor loss = sum(loss_of(x));
    CHECK(loss.item() == 0);
    loss.backward();
    for (double dx : x.grad().to_vector()) CHECK(dx == 0);
  };
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    for (double e : {0.0, 0.1}) {
      const CrossEntropyOptions options{-1, e, reduction};
      check([&](const Tensor& x) { return cross_entropy(x, ignored, options); });
      check([&](const Tensor& x) { return plain::cross_entropy(x, ignored, options); });
    }
    check([&](const Tensor& x) { return nll_loss(x, ignored, reduction, -1); });
  }
}

TEST_CASE("cross_entropy by hand: the classes of weight 1, 2 and 5 of 8, smoothed and not") {
  const Tensor x = log(tensor({{1, 2, 5}, {2, 5, 1}}, kFloat64));
  const Tensor targets = tensor({2, 0}, kInt64);
  const double first = std::log(8.0 / 5), second = std::log(8.0 / 2);
  const double even = std::log(8.0) - std::log(1.0 * 2 * 5) / 3;  // of each row
  const auto loss = [&](const CrossEntropyOptions& options) {
    return cross_entropy(x, targets, options).to_vector();
  };
  CHECK(loss({})[0] == doctest::Approx((first + second) / 2).epsilon(1e-14));
  CHECK(loss({.reduction = Reduction::kSum})[0] == doctest::Approx(first + second).epsilon(1e-14));
  CHECK(loss({.reduction = Reduction::kNone})[1] == doctest::Approx(second).epsilon(1e-14));
  CHECK(loss({.label_smoothing = 0.3})[0] ==
        doctest::Approx(0.7 * (first + second) / 2 + 0.3 * even).epsilon(1e-14));
  CHECK(loss({.ignore_index = 2, .label_smoothing = 0.3})[0] ==
        doctest::Approx(0.7 * second + 0.3 * even).epsilon(1e-14));
}

TEST_CASE("a class masked by -inf costs nothing, unless labels are smoothed over it") {
  const Tensor x = tensor({{1, -HUGE_VAL, 2}}, kFloat64), targets = zeros({1}, kInt64);
  x.set_requires_grad(true);
  const Tensor loss = cross_entropy(x, targets);
  CHECK(loss.item() == doctest::Approx(std::log1p(std::exp(1.0))));
  CHECK(grad(loss, {x})[0].to_vector()[1] == 0);
  CHECK(std::isinf(cross_entropy(x, targets, {.label_smoothing = 0.1}).item()));
}

TEST_CASE("an ignored row may hold anything, fused and under create_graph") {
  const Tensor x = from_vector({1, 2, NAN, 0, -HUGE_VAL, -HUGE_VAL}, {3, 2}, kFloat64);
  x.set_requires_grad(true);
  for (const bool create_graph : {false, true}) {
    const Tensor loss = cross_entropy(x, from_vector({0, -100, -100}, {3}, kInt64));
    const auto dx = grad(loss, {x}, {}, {.create_graph = create_graph})[0].to_vector();
    CHECK(dx[0] == doctest::Approx(-dx[1]));
    CHECK(dx[0] < -0.5);
    for (std::size_t i = 2; i < 6; ++i) CHECK(dx[i] == 0);
  }
}

TEST_CASE("ignore_index may be a class, or lie anywhere else") {
  for (int64_t ignore : {int64_t{2}, int64_t{-100}, int64_t{5}, INT64_MIN, INT64_MAX}) {
    const Tensor x = logits_of({4, 5});
    const Tensor targets = full({4}, 0, kInt64);
    static_cast<int64_t*>(targets.data())[1] = ignore;
    const Tensor loss = cross_entropy(x, targets, {.ignore_index = ignore});
    CHECK(std::abs(loss.item() -
                   plain::cross_entropy(x, targets, {.ignore_index = ignore}).item()) < 1e-14);
    loss.backward();
    for (int64_t v = 0; v < 5; ++v) CHECK(x.grad().to_vector()[std::size_t(5 + v)] == 0);
  }
}

TEST_CASE("targets changed after the loss are noticed, not followed out of bounds") {
  const Tensor x = logits_of({2, 3}), targets = full({2}, 1, kInt64);
  const Tensor loss = cross_entropy(x, targets);
  copy_(targets, full({2}, 1000, kInt64));
  CHECK_THROWS_WITH(loss.backward(),
                    "cross_entropy: needs for its backward a tensor of shape (2) that copy_ has "
                    "changed in place since (version 2, saved at 1); change a copy of it, as x * "
                    "1.0 is, or use an op that is not in place");
}

TEST_CASE("targets changed behind the library's back are refused by backward (R27)") {
  const Tensor x = logits_of({2, 3}), targets = full({2}, 1, kInt64);
  const Tensor loss = cross_entropy(x, targets);
  targets.data<int64_t>()[1] = 1000;
  CHECK_THROWS_WITH(loss.backward(),
                    "cross_entropy: target of row 1 is 1000; wanted a class in [0, 3) or "
                    "ignore_index = -100");
}

TEST_CASE("cross_entropy's backward takes memory for the gradient only") {
  NoGradGuard no_grad;
  const Tensor x = logits_of({1000, 64}), targets = full({1000}, 3, kInt64);
  Tensor loss;
  {
    const GradModeGuard on(true);
    loss = cross_entropy(x, targets);
  }
  reset_peak();
  const int64_t before = int64_t(memory_stats().bytes_in_use);
  loss.backward();
  const int64_t taken = int64_t(memory_stats().peak_bytes_in_use) - before;
  CHECK(taken >= int64_t(1000 * 64 * sizeof(double)));
  CHECK(taken <= int64_t(1000 * 64 * sizeof(double)) * 5 / 4 + 4096);  // a size class, and the seed
}

TEST_CASE("nll_loss of log_softmax is cross_entropy") {
  const Tensor x = logits_of({4, 5}), targets = tensor({3, -100, 0, 4}, kInt64);
  const Tensor log_probs = log(softmax(x));
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum, Reduction::kNone}) {
    const auto a = nll_loss(log_probs, targets, reduction).to_vector(),
               b = cross_entropy(x, targets, {.reduction = reduction}).to_vector();
    for (std::size_t i = 0; i < a.size(); ++i) CHECK(std::abs(a[i] - b[i]) < 1e-14);
  }
}

TEST_CASE_TEMPLATE("binary_cross_entropy_with_logits of any logit", T, float, double) {
  const DType dtype = kDTypeOf<T>;
  // loss and derivative by x for the targets 0 and 1: log(1 + e^x), sigmoid(x); the same of -x,
  // less 1.
  for (double size : {0.0, 1e-30, 0.5, 20.0, 88.0, 110.0, 1e4, 1e30})
    for (double x : {size, -size})
      for (double t : {0.0, 1.0, 0.5}) {
        INFO("x ", x, ", t ", t);
        const Tensor logit = tensor({x}, dtype).set_requires_grad(true);
        const Tensor target = tensor({t}, dtype).set_requires_grad(true);
        const Tensor loss = binary_cross_entropy_with_logits(logit, target);
        const TensorList dx = grad(loss, {logit, target});
        const double a = t == 0.5 ? size : t == 0 ? x : -x;
        const double softplus = std::max(a, 0.0) + std::log1p(std::exp(-std::abs(a)));
        const double wanted = t == 0.5 ? softplus - size / 2 : softplus;
        const double unit = std::numeric_limits<T>::epsilon();
        CHECK(std::abs(loss.item() - wanted) <= 4 * unit * wanted + 0x1p-148);
        CHECK(std::abs(dx[0].item() - (1 / (1 + std::exp(-x)) - t)) <= 4 * unit);
        CHECK(dx[1].item() == static_cast<T>(-x));
      }
}

TEST_CASE("binary_cross_entropy_with_logits keeps NaN, and its own slope at 0") {
  const Tensor x = tensor({0, NAN}, kFloat64).set_requires_grad(true);
  const Tensor loss =
      binary_cross_entropy_with_logits(x, tensor({1, 1}, kFloat64), Reduction::kNone);
  const auto y = loss.to_vector(), dx = grad(loss, {x}, ones({2}, kFloat64))[0].to_vector();
  CHECK(y[0] == doctest::Approx(std::log(2.0)).epsilon(1e-15));
  CHECK(dx[0] == -0.5);
  CHECK((std::isnan(y[1]) && std::isnan(dx[1])));
}

TEST_CASE("kl_div takes 0 log 0 as 0, also where log_p is -inf, and no NaN comes back") {
  const Tensor log_p = tensor({-HUGE_VAL, -1, -2}, kFloat64).set_requires_grad(true);
  const Tensor q = tensor({0, 0.5, 0.5}, kFloat64).set_requires_grad(true);
  const Tensor loss = kl_div(log_p, q, Reduction::kSum);
  CHECK(loss.item() == doctest::Approx(1.5 + std::log(0.5)).epsilon(1e-15));
  const TensorList dx = grad(loss, {log_p, q});
  CHECK(dx[0].to_vector() == std::vector<double>{0, -0.5, -0.5});
  CHECK(dx[1].to_vector()[0] == 0);
  CHECK(dx[1].to_vector()[1] == doctest::Approx(std::log(0.5) + 2).epsilon(1e-15));
  CHECK(std::isinf(kl_div(log_p, full({3}, 0.5, kFloat64), Reduction::kSum).item()));
}

TEST_CASE("the mean loss of no elements is NaN, the sum 0") {
  const Tensor none = ones({0, 3});
  for (auto* loss : {&mse_loss, &binary_cross_entropy_with_logits, &kl_div}) {
    CHECK(std::isnan((*loss)(none, none, Reduction::kMean).item()));
    CHECK((*loss)(none, none, Reduction::kSum).item() == 0);
    CHECK((*loss)(none, none, Reduction::kNone).shape() == Shape{0, 3});
  }
}
