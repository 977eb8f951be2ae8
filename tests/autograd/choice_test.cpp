// What the op table does not ask of ops that choose: values and gradients at kinks and ties, NaN,
// infinities, what is recorded.
#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <vector>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

static const double kInf = HUGE_VAL;
static bool same(const Values& a, const Values& b) {
  bool equal = a.size() == b.size();
  for (std::size_t i = 0; equal && i < a.size(); ++i)
    equal = std::isnan(a[i]) ? std::isnan(b[i])
                             : a[i] == b[i] && std::signbit(a[i]) == std::signbit(b[i]);
  return equal;
}
// The gradient of f at x, in both dtypes; with dy for the upstream one.
static void check(const std::function<Tensor(const Tensor&)>& f, const Values& x, const Values& y,
                  const Values& dx, Values dy = {}) {
  if (dy.empty()) dy = Values(x.size(), 1);
  const Shape shape{static_cast<int64_t>(x.size())};
  for (const DType dtype : {kFloat32, kFloat64}) {
    const Tensor leaf = from_vector(x, shape, dtype).set_requires_grad(true);
    CHECK(same(f(leaf).to_vector(), y));
    const Tensor seed = from_vector(dy, shape, dtype);
    CHECK(same(grad(f(leaf), {leaf}, seed)[0].to_vector(), dx));
    CHECK(same(grad(f(leaf), {leaf}, seed, {.create_graph = true})[0].to_vector(), dx));
  }
}

TEST_CASE("relu: 0 at 0, NaN in x or in dy stays where it counts") {
  check(relu, {-kInf, -2, -0.0, 0, 2, kInf, NAN}, {0, 0, 0, 0, 2, kInf, NAN},
        {0, 0, 0, 0, 1, 1, NAN});
  check(relu, {1, 2, -1, 0, 3}, {1, 2, 0, 0, 3}, {NAN, kInf, 0, 0, -2}, {NAN, kInf, NAN, kInf, -2});
}

TEST_CASE("abs and clamp at their kinks") {
  check(pellucid::abs, {-kInf, -2, -0.0, 0, 2, kInf, NAN}, {kInf, 2, 0, 0, 2, kInf, NAN},
        {-1, -1, -0.0, 0, 1, 1, NAN});
  const auto between = [](const Tensor& x) { return clamp(x, -1, 2); };
  check(between, {-kInf, -1.5, -1, 0.5, 2, 3, kInf, NAN}, {-1, -1, -1, 0.5, 2, 2, 2, NAN},
        {0, 0, 1, 1, 1, 0, 0, NAN});
  check(between, {-3, 3, 1}, {-1, 2, 1}, {0, 0, NAN}, {NAN, kInf, NAN});
  const auto above = [](const Tensor& x) { return clamp(x, 1, kInf); };
  check(above, {-kInf, 0, 1, 2, kInf, NAN}, {1, 1, 1, 2, kInf, NAN}, {0, 0, 1, 1, 1, NAN});
  check([](const Tensor& x) { return clamp(x, 3, 3); }, {2, 3, 4}, {3, 3, 3}, {0, 1, 0});
}

TEST_CASE("leaky_relu and elu at 0 and at infinity") {
  check([](const Tensor& x) { return leaky_relu(x, 0.25); }, {-kInf, -4, -0.0, 0, 2, kInf},
        {-kInf, -1, -0.0, 0, 2, kInf}, {0.25, 0.25, 0.25, 0.25, 1, 1});
  check([](const Tensor& x) { return elu(x, 0.5); }, {-kInf, -0.0, 0, 200, 1e4, kInf, NAN},
        {-0.5, -0.0, 0, 200, 1e4, kInf, NAN}, {0, 0.5, 0.5, 1, 1, 1, NAN});
}

TEST_CASE("sigmoid, softplus and silu far from 0: their limits, no overflow") {
  const Values far = {-kInf, -1e4, 0, 1e4, kInf, NAN};
  check(sigmoid, far, {0, 0, 0.5, 1, 1, NAN}, {0, 0, 0.25, 0, 0, NAN});
  check([](const Tensor& x) { return softplus(x); }, {-kInf, -1e4, 1e4, kInf, NAN},
        {0, 0, 1e4, kInf, NAN}, {0, 0, 1, 1, NAN});
  CHECK(softplus(zeros({}, kFloat64)).item() == std::log(2.0));
  // Of -0 and 0 either is right below.
  const double big = 0x1p100;
  for (auto* op : {&silu, &plain::silu})
    for (const DType dtype : {kFloat32, kFloat64}) {
      const Tensor x = from_vector({-kInf, -big, -1e4, 1e4, big, kInf}, {6}, dtype);
      x.set_requires_grad(true);
      CHECK(op(x).to_vector() == Values{0, 0, 0, 1e4, big, kInf});
      const Tensor dx = grad(op(x), {x}, ones_like(x), {.create_graph = true})[0];
      CHECK(grad(op(x), {x}, ones_like(x))[0].to_vector() == Values{0, 0, 0, 1, 1, 1});
      CHECK(dx.to_vector() == Values{0, 0, 0, 1, 1, 1});
      CHECK(grad(dx, {x}, ones_like(x))[0].to_vector() == Values(6, 0.0));
    }
}

TEST_CASE("maximum and minimum: ties halve the gradient, broadcast or not; NaN of either stays") {
  const auto gradients = [](auto* op, const Values& a, const Values& b) {
    const Tensor x = from_vector(a, {int64_t(a.size())}).set_requires_grad(true);
    const Tensor y = from_vector(b, {int64_t(b.size())}).set_requires_grad(true);
    const TensorList dx = grad(sum(op(x, y)), {x, y});
    return std::pair{dx[0].to_vector(), dx[1].to_vector()};
  };
  CHECK(gradients(maximum, {2, 1, 5}, {2, 3, 4}) ==
        std::pair{Values{0.5, 0, 1}, Values{0.5, 1, 0}});
  CHECK(gradients(minimum, {2, 1, 5}, {2, 3, 4}) ==
        std::pair{Values{0.5, 1, 0}, Values{0.5, 0, 1}});
  CHECK(gradients(maximum, {1, 2, 3}, {2}) == std::pair{Values{0, 0.5, 1}, Values{1.5}});
  CHECK(gradients(maximum, {kInf, -0.0}, {kInf, 0}) ==
        std::pair{Values{0.5, 0.5}, Values{0.5, 0.5}});
  const Tensor x = full({1}, 2).set_requires_grad(true);
  CHECK(grad(maximum(x, x), {x})[0].item() == 1);
  for (auto* op : {&maximum, &minimum}) {
    const auto [da, db] = gradients(op, {NAN, 1, NAN, 1}, {1, NAN, NAN, 2});
    const Tensor y =
        op(from_vector({NAN, 1, NAN, kInf}, {4}), from_vector({1, NAN, NAN, NAN}, {4}));
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::isnan(y.to_vector()[i]));
    for (std::size_t i = 0; i < 3; ++i) CHECK((std::isnan(da[i]) && std::isnan(db[i])));
  }
}

TEST_CASE("what decides has no history and takes NaN and infinity for what they are") {
  const Tensor x = from_vector({-kInf, -1.5, -0.5, 0.5, 1.5, 2.5, kInf, NAN}, {8});
  x.set_requires_grad(true);
  Tensor (*const ops[])(const Tensor&) = {sign, floor, ceil, round, isnan, isinf, isfinite};
  for (auto* op : ops) CHECK_FALSE(op(x).requires_grad());
  CHECK(same(round(x).to_vector(), {-kInf, -2, -0.0, 0, 2, 2, kInf, NAN}));
  CHECK(same(floor(x).to_vector(), {-kInf, -2, -1, 0, 1, 2, kInf, NAN}));
  CHECK(same(ceil(x).to_vector(), {-kInf, -1, -0.0, 1, 2, 3, kInf, NAN}));
  CHECK(same(sign(x).to_vector(), {-1, -1, -1, 1, 1, 1, 1, NAN}));
  const Values number = {0, 0, 0, 1, 1, 1, 1, 0};
  CHECK(greater_equal(x, 0.5).to_vector() == number);
  CHECK(less(x, x).to_vector() == Values(8, 0));
  CHECK(less_equal(x, x).to_vector() == logical_not(isnan(x)).to_vector());
  CHECK(not_equal(x, x).to_vector() == Values{0, 0, 0, 0, 0, 0, 0, 1});
  CHECK(logical_not(isfinite(x)).to_vector() == logical_or(isinf(x), isnan(x)).to_vector());
}

TEST_CASE("comparisons of int64 beyond 2^53, and of bool") {
  const int64_t big = (int64_t{1} << 53) + 1;
  const Tensor a = from_vector(std::vector<int64_t>{big, big - 1, -big}, {3});
  const Tensor b = from_vector(std::vector<int64_t>{big - 1, big, -big}, {3});
  CHECK(greater(a, b).to_vector() == Values{1, 0, 0});
  CHECK(less_equal(a, b).to_vector() == Values{0, 1, 1});
  CHECK(not_equal(a, b).to_vector() == Values{1, 1, 0});
  const Tensor p = from_vector({0, 1, 1}, {3}, kBool), q = from_vector({1, 0, 1}, {3}, kBool);
  CHECK(less(p, q).to_vector() == Values{1, 0, 0});
  CHECK(greater_equal(p, 1).to_vector() == Values{0, 1, 1});
}
