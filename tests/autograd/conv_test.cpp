// Convolution and pooling, beyond the table of ops: numbers by hand, ties, NaN, the padding, sizes
// at the edge.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace pellucid;

static Tensor image(const Literal& rows) { return unsqueeze(unsqueeze(tensor(rows), 0), 0); }

static void check_values(const Tensor& x, const std::vector<double>& wanted) {
  CHECK(x.to_vector() == wanted);
}

TEST_CASE("conv2d does not turn the filter") {
  const Tensor x = image({{1, 2, 3}, {4, 5, 6}, {7, 8, 9}});
  const Tensor w = image({{1, 10}, {100, 1000}});
  check_values(conv2d(x, w, {}), {5421, 6532, 8754, 9865});
  check_values(conv2d(x, w, tensor({0.5})), {5421.5, 6532.5, 8754.5, 9865.5});
  check_values(conv2d(x, w, {}, {.stride = 2, .padding = 1}), {1000, 3200, 7040, 9865});
  check_values(conv2d(x, w, {}, {.dilation = 2}), {1 + 30 + 700 + 9000});
  check_values(conv2d(x, w, {}, {.stride = {1, 2}, .padding = {0, 1}}), {4010, 6532, 7040, 9865});
}

TEST_CASE("conv2d adds up channels and keeps filters and images apart") {
  const Tensor x = reshape(arange(16, kFloat32), {2, 2, 2, 2});
  const Tensor w = reshape(tensor({1, 10, 100, 1000}), {2, 2, 1, 1});
  check_values(conv2d(x, w, {}), {40, 51, 62, 73, 4000, 5100, 6200, 7300, 128, 139, 150, 161, 12800,
                                  13900, 15000, 16100});
}

TEST_CASE("conv2d of nothing: no images, no channels, no filters") {
  CHECK(conv2d(ones({0, 2, 5, 5}), ones({3, 2, 3, 3}), {}).shape() == Shape{0, 3, 3, 3});
  CHECK(conv2d(ones({1, 2, 5, 5}), ones({0, 2, 3, 3}), {}).shape() == Shape{1, 0, 3, 3});
  check_values(conv2d(ones({1, 0, 2, 1}), ones({1, 0, 1, 1}), tensor({7})), {7, 7});
}

TEST_CASE("windows beyond what memory counts are refused, not allocated") {
  CHECK_THROWS_WITH(unfold2d(ones({0, 1 << 20, 1, 1}), 1 << 29, {.padding = 1 << 29}),
                    "numel overflow: shape (0, 1048576, 536870912, 536870912, 536870914, "
                    "536870914)");
}

TEST_CASE("the gradient of a convolution with itself as the filter has both parts") {
  const Tensor x = full({1, 1, 3, 3}, 2, kFloat64).set_requires_grad(true);
  sum(conv2d(x, x, {})).backward();
  for (double dx : x.grad().to_vector()) CHECK(dx == 4);
}

TEST_CASE("max_pool2d gives the gradient of equals to the first") {
  const Tensor x = image({{5, 5, 1}, {5, 5, 5}}).set_requires_grad(true);
  const Tensor y = max_pool2d(x, 2, 1);
  check_values(y, {5, 5});
  check_values(grad(y, {x}, reshape(tensor({1, 10}), y.shape()))[0], {1, 10, 0, 0, 0, 0});
}

TEST_CASE("max_pool2d's padding never wins, also over -inf") {
  const Tensor x = image({{-3, -2}, {-1, -HUGE_VAL}}).set_requires_grad(true);
  const Tensor y = max_pool2d(x, 2, 2, 1);
  check_values(y, {-3, -2, -1, -HUGE_VAL});
  check_values(grad(y, {x}, ones({1, 1, 2, 2}))[0], {1, 1, 1, 1});
}

TEST_CASE("max_pool2d passes NaN on, wherever it is in the window") {
  for (int64_t at = 0; at < 9; ++at) {
    const Tensor x = full({1, 1, 3, 3}, 7);
    x.data<float>()[at] = NAN;
    x.set_requires_grad(true);
    const Tensor y = max_pool2d(x, 3, 1);
    CHECK(std::isnan(y.item()));
    CHECK(grad(y, {x}, ones({1, 1, 1, 1}))[0].to_vector()[std::size_t(at)] == 1);
  }
  Tensor two = image({{1, NAN}, {NAN, 3}}).set_requires_grad(true);  // the first one
  check_values(grad(max_pool2d(two, 2, 1), {two}, ones({1, 1, 1, 1}))[0], {0, 1, 0, 0});
}

TEST_CASE("a NaN does not leave its windows") {
  const Tensor x = image({{1, 2, NAN}, {4, 5, 6}});
  const auto y = max_pool2d(x, 2, 1).to_vector(), z = avg_pool2d(x, 2, 1).to_vector();
  CHECK(y[0] == 5);
  CHECK(z[0] == 3);
  CHECK((std::isnan(y[1]) && std::isnan(z[1])));
}

TEST_CASE("avg_pool2d counts the padding, or does not") {
  const Tensor x = image({{4, 8}, {12, 16}});
  check_values(avg_pool2d(x, 2, 2, 1), {1, 2, 3, 4});
  check_values(avg_pool2d(x, 2, 2, 1, false), {4, 8, 12, 16});
  check_values(avg_pool2d(x, {2, 1}, 1), {8, 12});
}

TEST_CASE("unfold2d's columns are windows, its rows channels and places; fold2d counts windows") {
  const Tensor x = image({{1, 2, 3}, {4, 5, 6}});
  const Tensor columns = unfold2d(x, {2, 2});
  CHECK(columns.shape() == Shape{1, 4, 2});
  check_values(columns, {1, 2, 2, 3, 4, 5, 5, 6});
  check_values(fold2d(columns, {2, 3}, 2), {1, 4, 3, 4, 10, 6});
}
