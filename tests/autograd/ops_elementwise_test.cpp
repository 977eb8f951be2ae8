// What the op table does not ask of the elementwise ops: limits, memory shared in place, what is
// saved, dropout's bookkeeping.
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
  for (auto* op : {&add_, &copy_}) {
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
