// Views share memory and copy only when they must; faults known from other libraries.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

static Tensor counted(const Shape& shape) {
  return reshape(arange(shape.numel(), kFloat64), shape);
}
static bool shares(const Tensor& a, const Tensor& b) { return &a.storage() == &b.storage(); }

TEST_CASE("reshape is a view wherever the strides allow it") {
  const Tensor x = counted({4, 6});
  CHECK(shares(reshape(x, {2, 2, 3, 2}), x));
  CHECK(shares(reshape(x, {1, 24, 1}), x));
  CHECK(shares(reshape(slice(x, 0, 1, 3), {12}), x));       // rows are whole
  CHECK(shares(reshape(slice(x, 1, 0, 4), {4, 2, 2}), x));  // a split needs no neighbours
  CHECK(shares(reshape(slice(x, 1, 0, 6, 2), {4, 3, 1}), x));
  CHECK(shares(reshape(transpose(x, 0, 1), {3, 2, 2, 2}), x));
  CHECK(!shares(reshape(slice(x, 1, 0, 4), {16}), x));
  CHECK(!shares(reshape(transpose(x, 0, 1), {24}), x));
  const Tensor repeated = expand(counted({1, 3}), {4, 3});
  CHECK(shares(reshape(repeated, {2, 2, 3}), repeated));
  CHECK(reshape(repeated, {2, 6}).to_vector() == Values{0, 1, 2, 0, 1, 2, 0, 1, 2, 0, 1, 2});
}

TEST_CASE("every reshape of every layout has the elements of a copy") {
  const std::vector<Shape> shapes = {{24},      {2, 12},    {12, 2},   {4, 6},       {2, 3, 4},
                                     {3, 8, 1}, {1, 4, 6},  {2, 2, 6}, {2, 3, 2, 2}, {1, 1, 24},
                                     {8, 3},    {24, 1, 1}, {6, 4},    {4, 1, 2, 3}, {2, 1, 12}};
  std::vector<Tensor> layouts;
  for (const Shape& shape : shapes) {
    Tensor x = counted(shape);
    layouts.push_back(x);
    if (x.dim() > 1) layouts.push_back(transpose(x, 0, -1)), layouts.push_back(transpose(x, 0, 1));
    Shape wide = shape;
    wide[-1] *= 2;
    layouts.push_back(slice(counted(wide), -1, 1, wide[-1], 2));
    wide = shape;
    wide[0] += 3;
    layouts.push_back(slice(counted(wide), 0, 2, shape[0] + 2));
  }
  for (const Tensor& x : layouts)
    for (const Shape& shape : shapes) {
      const Tensor y = reshape(x, shape);
      CHECK(y.shape() == shape);
      CHECK(y.to_vector() == x.to_vector());
      // view() gives the same or an error, never something else.
      bool refused = false;
      Tensor v;
      try {
        v = view(x, shape);
      } catch (const std::invalid_argument&) {
        refused = true;
      }
      CHECK(refused == !shares(y, x));
      if (!refused) CHECK(v.to_vector() == x.to_vector());
      if (!refused) CHECK(shares(v, x));
    }
}

TEST_CASE("a transposed view is reshaped by its own order (R31)") {
  CHECK(reshape(transpose(counted({3, 4}), 0, 1), {12}).to_vector() ==
        Values{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11});
}

TEST_CASE("a row transposed keeps its last value, also onto itself (R30)") {
  Tensor x = from_vector({0, 1, 1, 1}, {1, 4});
  x = transpose(x, 0, 1);
  CHECK(x.shape() == Shape{4, 1});
  CHECK(x.to_vector() == Values{0, 1, 1, 1});
}

TEST_CASE("views of views reach the right elements, and writing shows in the base") {
  const Tensor x = counted({4, 6});
  const Tensor v =
      slice(transpose(slice(x, 1, 1, 6, 2), 0, 1), 1, 1, 4, 2);  // columns 1 3 5, rows 1 3
  CHECK(v.shape() == Shape{3, 2});
  CHECK(v.to_vector() == Values{7, 19, 9, 21, 11, 23});
  copy_(v, full({}, -1, kFloat64));
  CHECK(x.at({3, 5}) == -1);
  CHECK(x.at({3, 4}) == 22);
  CHECK(sum(x).item() == 276 - 90 - 6);
}

TEST_CASE("slices of whole-number and bool tensors") {
  CHECK(slice(arange(10), 0, 1, 10, 4).to_vector() == Values{1, 5, 9});
  CHECK(unslice(arange(3), 0, 6, 1, 2).to_vector() == Values{0, 0, 0, 1, 0, 2});
  CHECK(reshape(transpose(reshape(arange(6), {2, 3}), 0, 1), {6}).to_vector() ==
        Values{0, 3, 1, 4, 2, 5});
}

TEST_CASE("adjoint pairs: <A x, y> = <x, A^T y>, exactly in whole numbers") {
  const Tensor x = counted({3, 8}), y = counted({3, 3}) * 2.0;
  const auto dot = [](const Tensor& a, const Tensor& b) { return sum(a * b).item(); };
  CHECK(dot(slice(x, 1, 1, 8, 3), y) == dot(x, unslice(y, 1, 8, 1, 3)));
  const Tensor small = counted({3, 1}), big = counted({2, 3, 5});
  CHECK(dot(expand(small, {2, 3, 5}), big) == dot(small, sum_to(big, {3, 1})));
  const Tensor w = counted({4, 2}), rows = counted({5, 2}),
               ids = from_vector(std::vector<int64_t>{3, 0, 3, 1, 3}, {5});
  CHECK(dot(embedding(w, ids), rows) == dot(w, scatter_add_rows(rows, ids, 4)));
}

TEST_CASE("the gradient of repeated rows adds up (R38)") {
  const Tensor x = full({1, 1}, 0.1, kFloat64).set_requires_grad(true);
  const Tensor ids = from_vector(std::vector<int64_t>{0, 0}, {2});
  sum(embedding(x, ids) * from_vector({0.2, 0.3}, {2, 1}, kFloat64)).backward();
  CHECK(x.grad().item() == 0.5);
}
