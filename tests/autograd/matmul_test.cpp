// Products, beyond the table of ops: sizes of 0, layouts with arbitrary and zero strides.
#include <doctest/doctest.h>

#include "autograd/ops.h"

using namespace pellucid;

static Tensor numbers(const Shape& shape, uint64_t stream = 1) {
  Generator rng{.seed = 3, .stream = stream};
  return randn(shape, rng);
}

static void check_zeros(const Tensor& y, const Shape& shape) {
  CHECK(y.shape() == shape);
  for (double value : y.to_vector()) CHECK(value == 0);
}

TEST_CASE("a dimension of size 1 stretches to 0 (R01, R02)") {
  CHECK((zeros({2, 0}) + zeros({2, 1})).shape() == Shape{2, 0});
  CHECK((zeros({1, 3}) + zeros({0, 3})).shape() == Shape{0, 3});
  CHECK(matmul(zeros({0, 2, 3}), zeros({1, 3, 4})).shape() == Shape{0, 2, 4});
}

TEST_CASE("a product without terms is zeros, and so are its gradients (R02, R03)") {
  set_poison(true);  // fresh memory is NaN
  check_zeros(matmul(ones({2, 0}), ones({0, 3})), {2, 3});
  check_zeros(matmul(ones({3, 2, 0}), ones({3, 0, 3})), {3, 2, 3});
  check_zeros(matmul(ones({0}), ones({0})), {});
  check_zeros(matmul(ones({0}), ones({2, 0, 3})), {2, 3});
  check_zeros(linear(ones({2, 0}), ones({3, 0}), {}), {2, 3});
  CHECK(linear(ones({2, 0}), ones({1, 0}), ones({1})).to_vector() == std::vector<double>{1, 1});

  const Tensor a = ones({0, 2}).set_requires_grad(true), b = ones({2, 3}).set_requires_grad(true);
  const TensorList dx = grad(matmul(a, b), {a, b}, ones({0, 3}));
  CHECK(dx[0].shape() == Shape{0, 2});
  check_zeros(dx[1], {2, 3});
  set_poison(false);
}

TEST_CASE("a batch of stride 0 gives what its copy gives, forward and backward (R29)") {
  const Tensor a = numbers({1, 32, 32}).set_requires_grad(true);
  const Tensor b = numbers({32, 32, 32}, 2).set_requires_grad(true);
  const Tensor repeated = matmul(expand(a, {32, 32, 32}), b);
  const Tensor copied = matmul(contiguous(expand(a, {32, 32, 32})), b);
  CHECK(repeated.to_vector() == copied.to_vector());
  const Tensor dy = numbers({32, 32, 32}, 3);
  const TensorList p = grad(repeated, {a, b}, dy), q = grad(copied, {a, b}, dy);
  for (std::size_t i = 0; i < 2; ++i) CHECK(p[i].to_vector() == q[i].to_vector());
}

TEST_CASE("the stride of a dimension of size 1 does not matter (R34)") {
  const Tensor x = numbers({1, 8, 2048}), w = numbers({16, 2048}, 2);
  const Tensor row = squeeze(slice(x, 1, 7, 8), 1);  // (1, 2048)
  const Tensor odd = alias(row, {1, 2048}, {16384, 1});
  const std::vector<double> wanted = matmul(contiguous(alias(row)), transpose(w, 0, 1)).to_vector();
  CHECK(row.is_contiguous());
  CHECK(odd.is_contiguous());
  for (const Tensor& same : {row, odd}) {
    CHECK(matmul(same, transpose(w, 0, 1)).to_vector() == wanted);
    CHECK(linear(same, w, {}).to_vector() == wanted);
  }
  const Tensor column = alias(numbers({4}), {4, 1}, {1, 999}), one = numbers({1, 3}, 2);
  CHECK(matmul(column, alias(one, {1, 3}, {12345, 1})).to_vector() == (column * one).to_vector());
  CHECK(!expanded(numbers({13, 1}), {13, 13}).is_contiguous());
}

TEST_CASE("vectors: a row on the left, a column on the right, a number when both") {
  const Tensor a = tensor({1, 2, 3}), m = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(matmul(a, a).shape() == Shape{});
  CHECK(matmul(a, a).item() == 14);
  CHECK(matmul(m, a).to_vector() == std::vector<double>{14, 32});
  CHECK(matmul(a, transpose(m, 0, 1)).to_vector() == std::vector<double>{14, 32});
  CHECK(matmul(a, ones({2, 1, 3, 4})).shape() == Shape{2, 1, 4});
  CHECK(matmul(ones({2, 1, 3, 4}), ones({4})).shape() == Shape{2, 1, 3});
  CHECK(matmul(ones({2, 1, 3, 4}), ones({5, 4, 2})).shape() == Shape{2, 5, 3, 2});
}

TEST_CASE("outer is the table of all products") {
  CHECK(outer(tensor({1, 2}), tensor({3, 4, 5})).to_vector() ==
        std::vector<double>{3, 4, 5, 6, 8, 10});
}
