// Tensors put together, cut, repeated, reversed and masked: what the table cannot say of them:
// other dtypes, views, special values, how many parts; faults known from other libraries.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"

using namespace pellucid;
using Values = std::vector<double>;

static Tensor counted(const Shape& shape, DType dtype = kFloat64) {
  return reshape(arange(shape.numel(), dtype), shape);
}

TEST_CASE("cat of empty tensors only, and beside others (R07)") {
  const Tensor none = full({0}, 1);
  CHECK(cat({none}).shape() == Shape{0});
  CHECK(cat({none, none}).shape() == Shape{0});
  CHECK(cat({none, full({2}, 3), none}).to_vector() == Values{3, 3});
  CHECK(cat({full({0, 3}, 1), full({2, 3}, 1)}).shape() == Shape{2, 3});
}

TEST_CASE("cat and stack of every dtype, of one tensor twice, and of one alone") {
  for (const DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    const Tensor x = from_vector({1, 0, 1, 1}, {2, 2}, dtype);
    CHECK(cat({x, x}, 1).to_vector() == Values{1, 0, 1, 0, 1, 1, 1, 1});
    CHECK(stack({x, x}).dtype() == dtype);
    CHECK(stack({x, x}, 1).to_vector() == Values{1, 0, 1, 0, 1, 1, 1, 1});
  }
  const Tensor x = counted({3}), y = cat({x});
  CHECK(&y.storage() != &x.storage());  // a copy, as for more
  CHECK(stack({scalar(1), scalar(2)}).to_vector() == Values{1, 2});
}

TEST_CASE("cat asks only for the gradients that are wanted") {
  const Tensor a = full({2}, 1).set_requires_grad(true), b = full({3}, 1);
  const TensorList dx = grad(sum(cat({b, a, b}) * arange(8, kFloat32)), {a});
  CHECK(dx[0].to_vector() == Values{3, 4});
}

TEST_CASE("split and chunk give views; chunk may give fewer") {
  const Tensor x = counted({7});
  const auto sizes = [](const TensorList& parts) {
    std::vector<int64_t> n;
    for (const Tensor& part : parts) n.push_back(part.numel());
    return n;
  };
  using Sizes = std::vector<int64_t>;
  CHECK(sizes(split(x, 3)) == Sizes{3, 3, 1});
  CHECK(sizes(split(x, 7)) == Sizes{7});
  CHECK(sizes(split(x, 100)) == Sizes{7});
  CHECK(sizes(split(x, INT64_MAX)) == Sizes{7});
  CHECK(sizes(split(full({0}, 1), 3)) == Sizes{0});
  CHECK(sizes(chunk(x, 4)) == Sizes{2, 2, 2, 1});
  CHECK(sizes(chunk(counted({6}), 4)) == Sizes{2, 2, 2});  // three of two, not four
  CHECK(sizes(chunk(x, 100)) == Sizes(7, 1));
  CHECK(sizes(chunk(full({0}, 1), 3)) == Sizes{0});
  mul_(split(x, 3)[1], 10);
  CHECK(x.to_vector() == Values{0, 1, 2, 30, 40, 50, 6});
  CHECK(split(counted({2, 6}), 4, -1)[1].to_vector() == Values{4, 5, 10, 11});
}

TEST_CASE("slice and select count from the end; a view of x") {
  const Tensor x = counted({5});
  CHECK(slice(x, 0, -2, kEnd).to_vector() == Values{3, 4});
  CHECK(slice(x, 0, 1, -1).to_vector() == Values{1, 2, 3});
  CHECK(slice(x, 0, 0, kEnd, 2).to_vector() == Values{0, 2, 4});
  CHECK(slice(x, 0, -5, -5).numel() == 0);
  CHECK(slice(x, 0, 5, kEnd).numel() == 0);
  const Tensor m = counted({2, 3}), row = select(m, 0, -1);
  CHECK(row.to_vector() == Values{3, 4, 5});
  CHECK(select(row, 0, 1).shape() == Shape{});
  copy_(select(m, 1, 0), full({}, -1, kFloat64));
  CHECK(m.to_vector() == Values{-1, 1, 2, -1, 4, 5});
}

TEST_CASE("flip of every dtype, of all dimensions, twice") {
  for (const DType dtype : {kFloat32, kFloat64, kInt64})
    CHECK(flip(counted({2, 3}, dtype), Dims()).to_vector() == Values{5, 4, 3, 2, 1, 0});
  CHECK(flip(from_vector({1, 0, 0}, {3}, kBool), 0).to_vector() == Values{0, 0, 1});
  const Tensor x = counted({3, 4});
  CHECK(flip(x, 1).to_vector() == Values{3, 2, 1, 0, 7, 6, 5, 4, 11, 10, 9, 8});
  CHECK(flip(flip(x, {0, 1}), {1, 0}).to_vector() == x.to_vector());
  CHECK(flip(transpose(x, 0, 1), 0).to_vector() == Values{3, 7, 11, 2, 6, 10, 1, 5, 9, 0, 4, 8});
  const Tensor repeated = expand(counted({1, 3}), {2, 3});
  CHECK(flip(repeated, {0, 1}).to_vector() == Values{2, 1, 0, 2, 1, 0});
  const Tensor large = counted({300, 257});
  CHECK(sum(flip(large, 0) - flip(flip(large, {0, 1}), 1)).item() == 0);
}

TEST_CASE("repeat is NumPy's tile") {
  CHECK(repeat(counted({2, 2}), {1, 2}).to_vector() == Values{0, 1, 0, 1, 2, 3, 2, 3});
  CHECK(repeat(counted({2}), {2, 2}).to_vector() == Values{0, 1, 0, 1, 0, 1, 0, 1});
  CHECK(repeat(counted({2}, kInt64), {3}).dtype() == kInt64);
  for (const Shape& counts :
       {Shape{1}, Shape{1, 1}, Shape{3, 1}}) {  // copies, also where a view would do
    const Tensor x = counted({2}), y = repeat(x, counts);
    mul_(y, 5);
    CHECK(x.to_vector() == Values{0, 1});
    CHECK(max(y).item() == 5);
  }
  const Tensor eight = full({1, 1, 1, 2, 1, 1, 1, 1}, 3);
  CHECK(repeat(eight, {2, 1, 1, 2, 1, 1, 1, 2}).shape() == Shape{2, 1, 1, 4, 1, 1, 1, 2});
}

TEST_CASE("pad with any value, also of whole numbers") {
  CHECK(pad(counted({2}, kInt64), {{1, 2}}, -7).to_vector() == Values{-7, 0, 1, -7, -7});
  CHECK(pad(counted({1}), {{1, 0}}, -HUGE_VAL).at({0}) == -HUGE_VAL);
  CHECK(pad(scalar(3), {}).item() == 3);
  CHECK(pad(full({0, 2}, 1), {{1, 0}, {0, 1}}).to_vector() == Values{0, 0, 0});
}

TEST_CASE("tril and triu at diagonals far outside, in batches, of bool") {
  const Tensor x = full({2, 3}, 1);
  for (const int64_t far : {int64_t{100}, INT64_MAX}) {
    CHECK(sum(tril(x, far)).item() == 6);
    CHECK(sum(triu(x, far)).item() == 0);
    CHECK(sum(tril(x, -far)).item() == 0);
    CHECK(sum(triu(x, -far)).item() == 6);
  }
  CHECK(sum(triu(x, INT64_MIN)).item() == 6);
  CHECK(tril(ones({2, 2}, kBool)).to_vector() == Values{1, 0, 1, 1});
  CHECK(triu(ones({2, 2, 2}), 1).to_vector() == Values{0, 1, 0, 0, 0, 1, 0, 0});
}

TEST_CASE("masked_fill selects: what is under the mask vanishes, NaN too") {
  const Tensor x = from_vector({NAN, 2, HUGE_VAL, 4}, {2, 2}).set_requires_grad(true);
  const Tensor mask = from_vector({1, 0, 1, 0}, {2, 2}, kBool);
  const Tensor y = masked_fill(x, mask, 7);
  CHECK(y.to_vector() == Values{7, 2, 7, 4});
  CHECK(grad(y, {x}, from_vector({NAN, 1, HUGE_VAL, 1}, {2, 2}))[0].to_vector() ==
        Values{0, 1, 0, 1});
  CHECK(masked_fill(x, from_vector({1, 0}, {2, 1}, kBool), -1).to_vector() ==
        Values{-1, -1, HUGE_VAL, 4});
  CHECK(masked_fill(arange(3), from_vector({0, 1, 0}, {3}, kBool), 9).to_vector() ==
        Values{0, 9, 2});
}

TEST_CASE("repeat copies, a tensor of no dimensions too") {
  const Tensor x = scalar(3), y = repeat(x, {});
  CHECK(y.shape() == Shape{});
  CHECK(&y.storage() != &x.storage());
}
