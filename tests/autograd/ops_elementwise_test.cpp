// What the op table does not ask of the elementwise ops: limits, numbers beside tensors, memory
// shared in place, what is saved, dropout's bookkeeping.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

TEST_CASE("sqrt at 0: no gradient where none arrives, infinity where one does") {
  const Tensor x = from_vector(Values{0, 0, 4, 4}, {4}).set_requires_grad(true);
  const Tensor dy = from_vector(Values{0, 1, 0, 1}, {4});
  CHECK(grad(sqrt(x), {x}, dy)[0].to_vector() == Values{0, HUGE_VAL, 0, 0.25});
  // The norm of a zero vector. Where only dy is 0 the second derivative is that of the formula:
  // d/dy of dy / (2 y) is 1 / (2 y) = 1/4.
  const Tensor seed = from_vector(Values{0}, {1}).set_requires_grad(true);
  const Tensor four = from_vector(Values{4}, {1}).set_requires_grad(true);
  const Tensor dx = grad(sqrt(four), {four}, seed, {.create_graph = true})[0];
  CHECK(grad(sum(dx), {seed})[0].to_vector() == Values{0.25});
}

TEST_CASE("pow: 0^0 is 1, and no NaN where the base is 0") {
  const auto at = [](double a, double b) {
    const Tensor x = full({1}, a, kFloat64).set_requires_grad(true);
    const Tensor y = full({1}, b, kFloat64).set_requires_grad(true);
    const TensorList d = grad(pow(x, y), {x, y});
    return Values{pow(x, y).item(), d[0].item(), d[1].item()};
  };
  CHECK(at(0, 0) == Values{1, 0, 0});
  CHECK(at(0, 1) == Values{0, 1, 0});
  CHECK(at(0, 2) == Values{0, 0, 0});
  CHECK(at(0, 0.5) == Values{0, HUGE_VAL, 0});
  CHECK(at(0, -1) == Values{HUGE_VAL, -HUGE_VAL, -HUGE_VAL});
  CHECK(at(5, 0) == Values{1, 0, std::log(5.0)});
  CHECK(at(1e-310, 0)[1] == 0);  // 1 / a is infinite
  // A negative base is right for whole exponents; there is no derivative by the exponent.
  CHECK(at(-2, 3)[0] == -8);
  CHECK(at(-2, 3)[1] == 12);
  CHECK(std::isnan(at(-2, 3)[2]));
  CHECK(std::isnan(at(-2, 0.5)[0]));
}

TEST_CASE("pow: second derivatives at 0") {
  const auto second = [](double a, double p) {
    const Tensor x = full({1}, a, kFloat64).set_requires_grad(true);
    return grad(grad(pow(x, p), {x}, {}, {.create_graph = true})[0], {x})[0].item();
  };
  CHECK(second(0, 0) == 0);
  CHECK(second(0, 1) == 0);
  CHECK(second(0, 2) == 2);
  CHECK(second(0, 3) == 0);
  CHECK(second(-2, 3) == -12);
  // d/da of a^b log(a), at b = 0, is 1 / a.
  const Tensor a = full({1}, 4, kFloat64).set_requires_grad(true);
  const Tensor b = full({1}, 0, kFloat64).set_requires_grad(true);
  const Tensor da = grad(pow(a, b), {a}, {}, {.create_graph = true})[0];
  CHECK(grad(da, {b})[0].item() == 0.25);
}

TEST_CASE("expm1 and log1p keep the digits of small numbers, sin and cos those of large ones") {
  for (const double x : {1e-20, -3e-8, 2e-3}) {
    CHECK(expm1(scalar(x, kFloat64)).item() == std::expm1(x));
    CHECK(log1p(scalar(x, kFloat64)).item() == std::log1p(x));
    const double f = static_cast<float>(x);
    CHECK(std::abs(expm1(scalar(x)).item() / std::expm1(f) - 1) <= 0x1p-23);
    CHECK(std::abs(log1p(scalar(x)).item() / std::log1p(f) - 1) <= 3 * 0x1p-24);
  }
  for (const double x : {1e5, -123456.75, 1e22, 3e38}) {
    const double f = static_cast<float>(x);
    const Tensor leaf = scalar(x).set_requires_grad(true);
    CHECK(std::abs(sin(leaf).item() - std::sin(f)) <= 0x1p-24);
    CHECK(std::abs(cos(leaf).item() - std::cos(f)) <= 0x1p-24);
    CHECK(std::abs(grad(sin(leaf), {leaf})[0].item() - std::cos(f)) <= 0x1p-24);
    CHECK(std::abs(grad(cos(leaf), {leaf})[0].item() + std::sin(f)) <= 0x1p-24);
  }
  Tensor (*const ops[])(const Tensor&) = {sin, cos};
  for (auto* op : ops) CHECK(std::isnan(op(scalar(HUGE_VAL)).item()));
}

TEST_CASE("a number on either side adds one node: that of the op") {
  const Tensor x = from_vector(Values{1, 2}, {2}).set_requires_grad(true);
  Tensor (*const ops[])(const Tensor&) = {
      [](const Tensor& t) { return 2 * t; },     [](const Tensor& t) { return t * 2; },
      [](const Tensor& t) { return 2 + t; },     [](const Tensor& t) { return t + 2; },
      [](const Tensor& t) { return 2 - t; },     [](const Tensor& t) { return t - 2; },
      [](const Tensor& t) { return 2 / t; },     [](const Tensor& t) { return t / 2; },
      [](const Tensor& t) { return pow(t, 2); }, [](const Tensor& t) { return pow(2, t); },
      [](const Tensor& t) { return -t; },        [](const Tensor& t) { return clamp(t, 0, 1); }};
  const Tensor first = -x;  // makes the leaf's own
  for (auto* op : ops) {
    const int64_t before = Node::alive;
    const Tensor y = op(x);
    CHECK(Node::alive == before + 1);
  }
}

TEST_CASE("in place with memory that is shared in another layout") {
  const Values v = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  const Tensor x = from_vector(v, {3, 3});
  add_(x, transpose(x, 0, 1));
  CHECK(x.to_vector() == Values{2, 6, 10, 6, 10, 14, 10, 14, 18});
  const Tensor row = from_vector(v, {9});
  copy_(slice(row, 0, 1, 9), slice(row, 0, 0, 8));
  CHECK(row.to_vector() == Values{1, 1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor twice = from_vector(v, {9});
  add_(twice, twice);
  CHECK(twice.to_vector() == Values{2, 4, 6, 8, 10, 12, 14, 16, 18});
  const Tensor counts = from_vector(std::vector<int64_t>{1, 2}, {2});
  copy_(counts, from_vector(std::vector<int64_t>{INT64_MAX}, {1}));
  CHECK(counts.to_vector<int64_t>() == std::vector<int64_t>{INT64_MAX, INT64_MAX});
}

TEST_CASE("in place from a view of what is written, with history") {
  const Tensor w = from_vector(Values{1, 2, 3, 4}, {2, 2}).set_requires_grad(true);
  const auto gradient = [&](auto op) {
    const Tensor x = w * 2.0;
    op(x);
    return grad(sum(x * from_vector(Values{1, 10, 100, 1000}, {2, 2})), {w})[0].to_vector();
  };
  CHECK(gradient([](const Tensor& x) { add_(x, transpose(x, 0, 1)); }) ==
        Values{4, 220, 220, 4000});
  CHECK(gradient([](const Tensor& x) { copy_(x, transpose(x, 0, 1)); }) ==
        Values{2, 200, 20, 2000});
  CHECK(gradient([](const Tensor& x) { add_(x, slice(x, 0, 0, 1)); }) ==
        Values{204, 2040, 200, 2000});
  CHECK(gradient([](const Tensor& x) { copy_(x, view(x, {2, 2})); }) == Values{2, 20, 200, 2000});
}

TEST_CASE("an in-place op that is refused has written nothing") {
  const Tensor w = from_vector(Values{1, 2}, {2}).set_requires_grad(true);
  const Tensor h = w * 1.0, stale = view(h, {2}), x = w * 3.0;
  mul_(h, 2);
  Tensor (*const by_tensor)(const Tensor&, const Tensor&) = mul_;
  for (auto* op : {&add_, by_tensor, &copy_}) {
    CHECK_THROWS((*op)(x, stale));
    CHECK_THROWS((*op)(x, Tensor()));
    CHECK(x.to_vector() == Values{3, 6});
  }
}

TEST_CASE("add_ of a tensor to itself has twice the gradient") {
  const Tensor x = from_vector(Values{1, 2}, {2}).set_requires_grad(true);
  const Tensor y = x * 1.0;
  add_(y, y);
  CHECK(grad(sum(y), {x})[0].to_vector() == Values{2, 2});
}

TEST_CASE("mul_ by a tensor: both gradients, of what was there before") {
  const Tensor a = from_vector(Values{1, 2, 3, 4}, {2, 2}).set_requires_grad(true);
  const Tensor b = from_vector(Values{5, 7}, {2}).set_requires_grad(true);
  const Tensor y = a * 1.0, back = mul_(y, b);
  CHECK(back.impl() == y.impl());
  CHECK(y.to_vector() == Values{5, 14, 15, 28});
  const TensorList d = grad(sum(y * y), {a, b});
  CHECK(d[0].to_vector() == Values{50, 196, 150, 392});
  CHECK(d[1].to_vector() == Values{2 * (5 * 1 + 15 * 3), 2 * (14 * 2 + 28 * 4)});
  // A view of what is written is copied first.
  const Tensor z = a * 1.0;
  mul_(z, transpose(z, 0, 1));
  CHECK(z.to_vector() == Values{1, 6, 6, 16});
  CHECK(grad(sum(z), {a})[0].to_vector() == Values{2, 6, 4, 8});
  // x without a gradient, y with one; and neither.
  const Tensor c = full({2}, 3);
  mul_(c, b);
  CHECK(grad(sum(c), {b})[0].to_vector() == Values{3, 3});
  const Tensor plain = full({2}, 3);
  mul_(plain, plain);
  CHECK((plain.to_vector() == Values{9, 9} && !plain.requires_grad()));
}

TEST_CASE("fill_ and zero_: every dtype and layout; the gradient is 0 from there, even of inf") {
  const Tensor w = from_vector(Values{1, 2}, {2}).set_requires_grad(true);
  const Tensor h = w * 2.0, kept = h * 1.0;
  const uint32_t version = h.storage().version;
  zero_(h);
  CHECK((h.to_vector() == Values{0, 0} && h.storage().version == version + 1));
  CHECK(grad(sum(h + kept), {w})[0].to_vector() == Values{2, 2});
  const Tensor g = fill_(w * 2.0, 3);
  CHECK(grad(g, {w}, full({2}, HUGE_VAL))[0].to_vector() == Values{0, 0});
  // Who saved it before is told.
  const Tensor a = w * 1.0, square = a * a;
  fill_(a, 5);
  const doctest::Contains told(
      "mul: needs for its backward a tensor of shape (2) that fill_ has changed in place since");
  CHECK_THROWS_WITH_AS(sum(square).backward(), told, std::invalid_argument);
  const Tensor base = zeros({2, 3}, kInt64), flags = zeros({3}, kBool);
  fill_(slice(base, 1, 0, 3, 2), 7);
  CHECK(base.to_vector() == Values{7, 0, 7, 7, 0, 7});
  CHECK(fill_(flags, 1).to_vector() == Values{1, 1, 1});
  CHECK(zero_(zeros({0, 2})).numel() == 0);
  const NoGradGuard no_grad;
  CHECK(zero_(w).to_vector() == Values{0, 0});
}

TEST_CASE("an operand whose gradient nobody wants is not kept: its partner may change") {
  const Tensor x = from_vector(Values{1, 2}, {2}).set_requires_grad(true);
  const Tensor constant = from_vector(Values{3, 4}, {2});
  const Tensor z = x * 1.0, y = z * constant, w = z / constant;
  mul_(z, 10);  // z is saved only for constant's gradient
  CHECK(grad(sum(y) + sum(w), {x})[0].to_vector()[1] == 4.25);
}

TEST_CASE("dropout: its mask again in backward, bits kept for p = 0, zeros for p = 1") {
  const double inf = HUGE_VAL;
  const Tensor x = from_vector(Values(1001, inf), {1001}).set_requires_grad(true);
  Generator rng{1, 2, 3};
  const Tensor y = dropout(x, 0.25, rng);
  CHECK(rng.offset == 3 + 1004);
  const Values values = y.to_vector(), dx = grad(y, {x}, full({1001}, 3))[0].to_vector();
  int64_t wrong = 0, dropped = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    wrong += values[i] == 0 ? dx[i] != 0 : values[i] != inf || dx[i] != 4;
    dropped += values[i] == 0;
  }
  CHECK(wrong == 0);
  CHECK(std::abs(double(dropped) / 1001 - 0.25) < 5 * std::sqrt(0.1875 / 1001));
  CHECK(sum(dropout(x, 1, rng)).item() == 0);
  CHECK(dropout(x, 0, rng).to_vector() == x.to_vector());
  // A transposed input is dropped by its own order of elements, not that of memory.
  const Tensor t = full({3, 5}, 1), again = full({5, 3}, 1);
  Generator a{7}, b{7};
  CHECK(dropout(transpose(t, 0, 1), 0.5, a).to_vector() == dropout(again, 0.5, b).to_vector());
}

TEST_CASE("pow: a^0 is 1 for every a, so its gradient for a is 0, at NaN too") {
  const Tensor a = from_vector({NAN, HUGE_VAL, 0, 2}, {4}).set_requires_grad(true);
  CHECK(pow(a, 0).to_vector() == std::vector<double>{1, 1, 1, 1});
  CHECK(grad(pow(a, 0), {a}, ones({4}))[0].to_vector() == std::vector<double>{0, 0, 0, 0});
}

TEST_CASE("div: where a is 0 the gradient for a tiny b is 0, not inf * 0") {
  for (const DType dtype : {kFloat32, kFloat64}) {
    const Tensor a = scalar(0, dtype), b = scalar(dtype == kFloat32 ? 1e-42 : 1e-310, dtype);
    b.set_requires_grad(true);
    CHECK(grad(a / b, {b})[0].item() == 0);
  }
}
