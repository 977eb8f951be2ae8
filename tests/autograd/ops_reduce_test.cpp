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

TEST_CASE("a sum over dimensions of size 1 is not x itself") {
  const Tensor x = full({1, 3}, 2);
  const Tensor y = sum(x, 0);
  mul_(y, 5);
  CHECK(y.to_vector() == Values{10, 10, 10});
  CHECK(x.to_vector() == Values{2, 2, 2});
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
