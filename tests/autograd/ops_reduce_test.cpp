// Reductions: what the table cannot say of them: empty and special values, ties, large means, long
// columns; faults known from other libraries.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

static Tensor counted(const Shape& shape) {
  return reshape(arange(shape.numel(), kFloat64), shape);
}

TEST_CASE(
    "dimensions: none named is all, negative ones count from the end, order does not matter") {
  const Tensor x = counted({2, 3, 4});
  CHECK(sum(x).item() == 276);
  CHECK(sum(x).shape() == Shape{});
  CHECK(sum(x, {}).item() == 276);
  CHECK(sum(x, Dims(), true).shape() == Shape{1, 1, 1});
  CHECK(sum(x, {0, 2}).to_vector() == Values{60, 92, 124});
  CHECK(sum(x, {-1, 0}).to_vector() == Values{60, 92, 124});
  CHECK(sum(x, {0, 2}, true).shape() == Shape{1, 3, 1});
  CHECK(sum(x, {1}).to_vector() == sum(x, 1).to_vector());
  CHECK(mean(x, {0, 1, 2}).item() == 11.5);
}

TEST_CASE("reducing the only dimension (R08)") {
  const Tensor x = full({5}, 1, kFloat64).set_requires_grad(true);
  mean(x * x, 0).backward();
  CHECK(x.grad().shape() == Shape{5});
  for (double g : x.grad().to_vector()) CHECK(g == doctest::Approx(0.4));
}

TEST_CASE("empty reductions: sum 0, mean NaN; only the reduced dimension counts (R06)") {
  const Tensor x = full({2, 0, 4}, 1);
  CHECK(sum(x, 1).to_vector() == Values(8, 0.0));
  CHECK(sum(x).item() == 0);
  CHECK(std::isnan(mean(x).item()));
  for (double m : mean(x, 1).to_vector()) CHECK(std::isnan(m));
  CHECK(mean(x, 0).shape() == Shape{0, 4});
  CHECK(mean(x, {0, 2}).shape() == Shape{0});
  CHECK(amax(full({0, 3}, 1), -1, true).shape() == Shape{0, 1});
}

TEST_CASE("a reduction over dimensions of size 1 is not x itself") {
  const Tensor x = full({1, 3}, 2);
  for (const Tensor& y :
       {sum(x, 0), mean(x, 0), prod(x, 0), amax(x, 0, true), amin(x, 0), max(x, 0), norm(x, 0),
        norm(x, 0, true, 1), norm(x, 0, false, HUGE_VAL), logsumexp(x, 0), cumsum(x, 0)}) {
    CHECK(y.to_vector() == Values{2, 2, 2});
    mul_(y, 5);
    CHECK(x.to_vector() == Values{2, 2, 2});
  }
  for (const Tensor& y : {sum(scalar(2)), prod(scalar(2)), max(scalar(2))}) CHECK(y.item() == 2);
}

TEST_CASE("every axis is equally accurate: a long column of ones (R18)") {
  const int64_t n = (1 << 24) + 1000;
  const Tensor x = expand(full({1, 1}, 1), {n, 2});
  CHECK(mean(x, 0).to_vector() == Values{1, 1});
  CHECK(mean(x).item() == 1);
  CHECK(mean(contiguous(x), 0).to_vector() == Values{1, 1});
  CHECK(mean(contiguous(transpose(x, 0, 1)), 1).to_vector() == Values{1, 1});
}

TEST_CASE("amax finds the largest and keeps NaN, at every place of every length") {
  for (int64_t n = 1; n <= 130; n += 1 + n / 20) {
    int wrong = 0;
    for (int64_t at = 0; at < n; ++at) {
      Values x(static_cast<std::size_t>(n));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i * 37 % 101);
      x[static_cast<std::size_t>(at)] = 1000;
      wrong += amax(from_vector(x, {1, n})).item() != 1000;
      x[static_cast<std::size_t>(at)] = std::nan("");
      wrong += !std::isnan(amax(from_vector(x, {1, n})).item());
    }
    CHECK_MESSAGE(wrong == 0, "length ", n);
  }
}

// ---- Products.

TEST_CASE("the gradient of prod is right beside zeros, and so is its second derivative (R22)") {
  const auto gradient = [](const Values& x) {
    const Tensor leaf =
        from_vector(x, {static_cast<int64_t>(x.size())}, kFloat64).set_requires_grad(true);
    return grad(prod(leaf), {leaf})[0].to_vector();
  };
  CHECK(gradient({2, 3, 4}) == Values{12, 8, 6});
  CHECK(gradient({2, 0, 4}) == Values{0, 8, 0});
  CHECK(gradient({2, 0, 0, 5}) == Values{0, 0, 0, 0});

  const Tensor x = from_vector({2, 3, 0, 0}, {4}, kFloat64).set_requires_grad(true);
  const Tensor dx = grad(prod(x), {x}, {}, {.create_graph = true})[0];
  const std::vector<Values> wanted = {{0, 0, 0, 0}, {0, 0, 0, 0}, {0, 0, 0, 6}, {0, 0, 6, 0}};
  for (int64_t i = 0; i < 4; ++i)
    CHECK(grad(select(dx, 0, i), {x}, {}, {.retain_graph = true})[0].to_vector() ==
          wanted[static_cast<std::size_t>(i)]);
}

TEST_CASE("a product of nothing is 1") {
  CHECK(prod(full({0}, 5)).item() == 1);
  CHECK(prod(full({2, 0}, 5), 1).to_vector() == Values{1, 1});
  CHECK(prod(full({2, 0}, 5), 0).shape() == Shape{0});
}

// ---- Deviations.

TEST_CASE("the variance of a constant row is exactly 0, and so are its gradients (R17)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const double value : {1234.0, 0.1, -1e30, 1e-30, 16777217.0})
      for (const int64_t n : {2, 3, 7, 33, 256, 1001}) {
        const Tensor x = full({2, n}, value, dtype).set_requires_grad(true);
        CHECK(var(x, 1).to_vector() == Values{0, 0});
        const Tensor s = stddev(x, 1);
        CHECK(s.to_vector() == Values{0, 0});
        CHECK(grad(sum(s), {x})[0].to_vector() == Values(static_cast<std::size_t>(2 * n), 0.0));
      }
}

TEST_CASE("the variance keeps its digits beside a large mean (R17)") {
  const Tensor four = from_vector({40000, 40001, 40002, 40003}, {4});
  const Tensor z = (four - mean(four)) / stddev(four, {}, false, 0);
  const Values wanted = {-1.3416408, -0.4472136, 0.4472136, 1.3416408};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(z.to_vector()[i] - wanted[i]) < 1e-6);

  Values steps;
  for (int i = 0; i < 16; ++i) steps.push_back(1000 + i * 1e-3);
  const Tensor x = from_vector(steps, {16});
  const double exact = var(astype(x, kFloat64)).item();  // of the same float32 numbers
  CHECK(exact == doctest::Approx(2.2668e-5).epsilon(0.01));
  CHECK(std::abs(var(x).item() - exact) < 16 * 0x1p-24 * exact);
}

TEST_CASE("the variance of too few elements is NaN") {
  CHECK(std::isnan(var(full({1}, 5)).item()));
  CHECK(var(full({1}, 5), {}, false, 0).item() == 0);
  CHECK(std::isnan(var(full({0}, 5)).item()));
  CHECK(std::isnan(stddev(full({2, 0}, 5), 1).to_vector()[1]));
  CHECK(var(full({0, 3}, 5), 1).shape() == Shape{0});
}

// ---- Choices.

TEST_CASE("ties: an even share for amax and max of all, the first for max of a dimension (R21)") {
  const Tensor x = from_vector({5, 1, 5, 5}, {2, 2}, kFloat64).set_requires_grad(true);
  const double third = 1.0 / 3;
  const auto gradient = [&](const Tensor& y) {
    return grad(sum(y), {x}, {}, {.retain_graph = true})[0].to_vector();  // low is used twice
  };
  CHECK(gradient(max(x)) == Values{third, 0, third, third});
  CHECK(gradient(amax(x)) == Values{third, 0, third, third});
  CHECK(gradient(amax(x, 1)) == Values{1, 0, 0.5, 0.5});
  CHECK(gradient(amax(x, 0, true)) == Values{0.5, 0, 0.5, 1});
  CHECK(gradient(max(x, 1)) == Values{1, 0, 1, 0});
  CHECK(gradient(max(x, 0)) == Values{1, 0, 0, 1});
  const Tensor low = neg(x);
  CHECK(gradient(min(low)) == Values{-third, 0, -third, -third});
  CHECK(gradient(amin(low, 1)) == Values{-1, 0, -0.5, -0.5});
  CHECK(gradient(min(low, -1)) == Values{-1, 0, -1, 0});
}

TEST_CASE("argmax and argmin: the first of equals, the first NaN, row-major in any layout") {
  const double nan = std::nan("");
  CHECK(argmax(from_vector({1, 7, 7, 2}, {4})).item() == 1);
  CHECK(argmin(from_vector({3, 1, 1, 2}, {4})).item() == 1);
  CHECK(argmax(from_vector({0, nan}, {2})).item() == 1);  // (R12)
  CHECK(argmax(from_vector({nan, nan}, {2})).item() == 0);
  CHECK(argmin(from_vector({0, nan, nan}, {3})).item() == 1);
  CHECK(argmax(from_vector({-HUGE_VAL, -HUGE_VAL}, {2})).item() == 0);
  CHECK(argmax(from_vector({-0.0, 0.0}, {2})).item() == 0);
  CHECK(argmax(from_vector({1, 2}, {1, 2}), 1).to_vector() == Values{1});  // (R10)
  const Tensor x = from_vector({1, 2, 3, 9, 5, 6}, {2, 3});
  CHECK(argmax(x).item() == 3);
  CHECK(argmax(transpose(x, 0, 1)).item() == 1);
  CHECK(argmax(x, 0).to_vector() == Values{1, 1, 1});
  CHECK(argmin(x, 1, true).shape() == Shape{2, 1});
  CHECK(argmax(full({0, 3}, 1), 1).shape() == Shape{0});
  CHECK(argmax(reshape(x, {1, 2, 3}), {0, 2}).to_vector() == Values{2, 0});  // among those reduced
}

TEST_CASE("argmax finds the largest, or NaN, at every place of every length") {
  for (int64_t n = 1; n <= 130; n += 1 + n / 20) {
    int wrong = 0;
    for (int64_t at = 0; at < n; ++at)
      for (const double value : {1000.0, HUGE_VAL, static_cast<double>(NAN)}) {
        Values x(static_cast<std::size_t>(n), -1);
        x[static_cast<std::size_t>(at)] = value;
        wrong += argmax(from_vector(x, {1, n}), 1).item() != static_cast<double>(at);
        wrong += argmax(from_vector(x, {n}, kFloat64)).item() != static_cast<double>(at);
        x[static_cast<std::size_t>(at)] = value == 1000 ? -1000 : value > 0 ? -value : value;
        wrong += argmin(from_vector(x, {n, 1}), 0).item() != static_cast<double>(at);
      }
    CHECK_MESSAGE(wrong == 0, "length ", n);
  }
}

TEST_CASE("a NaN is the largest and the smallest, and its row's gradient is NaN or its own") {
  const Tensor x = from_vector({1, NAN, 3, 4}, {2, 2}, kFloat64).set_requires_grad(true);
  for (const Tensor& y : {amax(x, 1), amin(x, 1), max(x, 1), min(x, 1)}) {
    CHECK(std::isnan(y.at({0})));
    CHECK(!std::isnan(y.at({1})));
  }
  CHECK(std::isnan(max(x).item()));
  CHECK(std::isnan(min(x).item()));
  CHECK(grad(sum(max(x, 1)), {x})[0].to_vector() == Values{0, 1, 0, 1});
  const Tensor shared = grad(sum(amax(x, 1)), {x})[0];
  CHECK(std::isnan(shared.at({0, 0})));
  CHECK(shared.at({1, 1}) == 1);
}

TEST_CASE("all and any: of nothing, of NaN, of -0, of every dtype") {
  CHECK(all(full({0}, 0)).item() == 1);
  CHECK(any(full({0}, 1)).item() == 0);
  CHECK(all(full({2, 0}, 0), 1).to_vector() == Values{1, 1});
  CHECK(any(full({2, 0}, 1), 0).shape() == Shape{0});
  CHECK(any(from_vector({0, NAN}, {2})).item() == 1);
  CHECK(all(from_vector({1, NAN}, {2})).item() == 1);
  CHECK(any(from_vector({0.0, -0.0}, {2})).item() == 0);
  for (const DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    const Tensor x = from_vector({1, 0, 1, 1}, {2, 2}, dtype);
    CHECK(all(x, 1).to_vector() == Values{0, 1});
    CHECK(any(x, 0).to_vector() == Values{1, 1});
    CHECK(all(x).dtype() == kBool);
  }
}

// ---- Lengths and logarithms.

TEST_CASE("a norm neither overflows nor vanishes, and its gradient at 0 is 0 (R19)") {
  const auto length = [](const Values& x) {
    return norm(from_vector(x, {static_cast<int64_t>(x.size())})).item();
  };
  CHECK(length({3e20, 4e20}) == doctest::Approx(5e20));
  CHECK(length({3e-30, 4e-30}) == doctest::Approx(5e-30));
  CHECK(length({HUGE_VAL, 1}) == HUGE_VAL);
  CHECK(std::isnan(length({NAN, 1})));
  CHECK(length({}) == 0);
  const Tensor big = from_vector({3e20, 4e20}, {2}).set_requires_grad(true);
  CHECK(grad(norm(big), {big})[0].at({0}) == doctest::Approx(0.6));
  const Tensor x = from_vector({0, 0, 3, 4}, {2, 2}, kFloat64).set_requires_grad(true);
  CHECK(grad(sum(norm(x, 1)), {x})[0].to_vector() == Values{0, 0, 3 / 5.0, 4 / 5.0});
  CHECK(grad(sum(norm(x, 1, false, 1)), {x})[0].to_vector() == Values{0, 0, 1, 1});
  CHECK(grad(sum(norm(x, 1, false, HUGE_VAL)), {x})[0].to_vector() == Values{0, 0, 0, 1});
  const Tensor dx = grad(sum(norm(x, 1)), {x}, {}, {.create_graph = true})[0];
  for (double v : grad(sum(dx * dx), {x})[0].to_vector()) CHECK(std::isfinite(v));
}

TEST_CASE("logsumexp of rows of -inf and +inf, and of large numbers") {
  const double inf = HUGE_VAL;
  const Tensor x =
      from_vector({-inf, -inf, 0, -inf, 1000, 1000, inf, 0}, {4, 2}).set_requires_grad(true);
  const Tensor y = logsumexp(x, 1);
  CHECK(y.at({0}) == -inf);
  CHECK(y.at({1}) == 0);
  CHECK(y.at({2}) == doctest::Approx(1000 + std::log(2.0)));
  CHECK(y.at({3}) == inf);
  const Values dx = grad(sum(y), {x})[0].to_vector();
  CHECK(Values(dx.begin(), dx.begin() + 4) == Values{0, 0, 1, 0});
  CHECK(dx[4] == doctest::Approx(0.5));
  CHECK(dx[7] == 0);
  CHECK(logsumexp(full({0}, 1)).item() == -inf);
  CHECK(logsumexp(full({2, 0}, 1), 0).shape() == Shape{0});
  CHECK(std::isnan(logsumexp(from_vector({1, NAN}, {2})).item()));
}

TEST_CASE("softmax and log_softmax of extreme rows; every dimension (R13)") {
  const double inf = HUGE_VAL;
  for (double p : softmax(full({3}, -inf)).to_vector()) CHECK(std::isnan(p));
  for (double p : log_softmax(full({3}, -inf)).to_vector()) CHECK(std::isnan(p));
  CHECK(log_softmax(from_vector({1000, 0}, {2})).to_vector() == Values{0, -1000});
  const Tensor x = from_vector({-inf, 0}, {2}).set_requires_grad(true);
  CHECK(log_softmax(x).to_vector() == Values{-inf, 0});
  CHECK(grad(log_softmax(x), {x}, from_vector({0, 1}, {2}))[0].to_vector() == Values{0, 0});
  const Tensor a = counted({2, 3, 4}) * 0.1;
  for (int d = 0; d < 3; ++d) {
    const Tensor total = sum(softmax(a, d), d), logs = sum(exp(log_softmax(a, d - 3)), d);
    for (double v : total.to_vector()) CHECK(v == doctest::Approx(1));
    for (double v : logs.to_vector()) CHECK(v == doctest::Approx(1));
    CHECK(softmax(a, d).shape() == a.shape());
  }
}

TEST_CASE("a running sum does not stick: it is added in double") {
  const int64_t n = (1 << 24) + 8;
  const Tensor y = cumsum(full({n}, 1), 0);
  CHECK(y.at({n - 1}) == static_cast<double>(n));
  CHECK(cumsum(from_vector({1, NAN, 2}, {3}), 0).at({0}) == 1);
  CHECK(std::isnan(cumsum(from_vector({1, NAN, 2}, {3}), 0).at({2})));
}

TEST_CASE("stddev of numbers whose squares overflow or vanish, with its gradient") {
  for (const double size : {1e30, 1.0, 1e-30}) {
    const Tensor x = (tensor({1, -1, 0}) * size).detach().set_requires_grad(true);  // float32
    const Tensor s = stddev(x);
    CHECK(s.item() / size == doctest::Approx(1).epsilon(1e-6));
    s.backward();
    CHECK(x.grad().at({0}) == doctest::Approx(0.5).epsilon(1e-6));
    CHECK(x.grad().at({1}) == doctest::Approx(-0.5).epsilon(1e-6));
    CHECK(std::abs(x.grad().at({2})) < 1e-6);
  }
}
