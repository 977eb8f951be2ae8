// The text of a tensor, character by character.
#include <doctest/doctest.h>

#include <cmath>
#include <sstream>

#include "tensor/tensor.h"

using namespace pellucid;

TEST_CASE("whole floats, fractions, small and large ones") {
  CHECK(to_string(tensor({{1, 2, 3}, {4, 5, -6}})) ==
        "tensor([[ 1.,  2.,  3.],\n"
        "        [ 4.,  5., -6.]], shape (2, 3), float32)");
  CHECK(to_string(tensor({0.5, -12.25, 1.0 / 3}, kFloat64)) ==
        "tensor([  0.5000, -12.2500,   0.3333], shape (3), float64)");
  CHECK(to_string(tensor({1, 1e-5}, kFloat64)) ==
        "tensor([1.0000e+00, 1.0000e-05], shape (2), float64)");
  CHECK(to_string(tensor({123456.5, -0.5})) ==
        "tensor([ 1.2346e+05, -5.0000e-01], shape (2), float32)");
  CHECK(to_string(tensor({99999.5, 0})) == "tensor([99999.5000,     0.0000], shape (2), float32)");
  CHECK(to_string(tensor({12345678})) == "tensor([12345678.], shape (1), float32)");
  CHECK(to_string(tensor({1e8})) == "tensor([1.0000e+08], shape (1), float32)");
}

TEST_CASE("nan and inf take part in the columns, not in the choice of the form") {
  CHECK(to_string(tensor({NAN, INFINITY, -1})) == "tensor([nan, inf, -1.], shape (3), float32)");
  CHECK(to_string(scalar(-NAN)) == "tensor(nan, shape (), float32)");
  CHECK(to_string(tensor({NAN, -INFINITY, 0.5})) ==
        "tensor([   nan,   -inf, 0.5000], shape (3), float32)");
}

TEST_CASE("no dimension, none at all, other dtypes") {
  CHECK(to_string(scalar(3.14159)) == "tensor(3.1416, shape (), float32)");
  CHECK(to_string(scalar(-3, kInt64)) == "tensor(-3, shape (), int64)");
  CHECK(to_string(empty({0})) == "tensor([], shape (0), float32)");
  CHECK(to_string(empty({2, 0, 3}, kBool)) == "tensor([], shape (2, 0, 3), bool)");
  CHECK(to_string(tensor({1, 0}, kBool)) == "tensor([ True, False], shape (2), bool)");
  CHECK(to_string(tensor({{-1}, {100}}, kInt64)) ==
        "tensor([[ -1],\n        [100]], shape (2, 1), int64)");
  CHECK(to_string(from_vector(std::vector<int64_t>{INT64_MIN}, {1})) ==
        "tensor([-9223372036854775808], shape (1), int64)");
  CHECK(to_string(Tensor()) == "tensor(undefined)");
  std::ostringstream out;
  out << scalar(1);
  CHECK(out.str() == "tensor(1., shape (), float32)");
}

TEST_CASE("matrices stand apart; long lines are broken at 80 characters") {
  CHECK(to_string(tensor({{{1, 2}, {3, 4}}, {{5, 6}, {7, 8}}}, kInt64)) ==
        "tensor([[[1, 2],\n"
        "         [3, 4]],\n"
        "\n"
        "        [[5, 6],\n"
        "         [7, 8]]], shape (2, 2, 2), int64)");
  CHECK(to_string(arange(21)) ==
        "tensor([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17,\n"
        "        18, 19, 20], shape (21), int64)");
}

TEST_CASE("over 1000 elements only the edges are shown") {
  CHECK(to_string(alias(arange(1000), {1000}, {1})).find("...") == std::string::npos);
  CHECK(to_string(arange(1001)) ==
        "tensor([   0,    1,    2, ...,  998,  999, 1000], shape (1001), int64)");
  CHECK(to_string(alias(arange(1001), {143, 7}, {7, 1})) ==
        "tensor([[   0,    1,    2, ...,    4,    5,    6],\n"
        "        [   7,    8,    9, ...,   11,   12,   13],\n"
        "        [  14,   15,   16, ...,   18,   19,   20],\n"
        "        ...,\n"
        "        [ 980,  981,  982, ...,  984,  985,  986],\n"
        "        [ 987,  988,  989, ...,  991,  992,  993],\n"
        "        [ 994,  995,  996, ...,  998,  999, 1000]], shape (143, 7), int64)");
  // A dimension of 6 is shown whole; what is not shown has no say in the columns.
  CHECK(to_string(alias(arange(1002), {167, 6}, {6, 1}))
            .find("[   0,    1,    2,    3,    4,    5]") != std::string::npos);
}

TEST_CASE("views print their elements; a huge one is not copied for it") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(to_string(alias(x, {3, 2}, {1, 3})) ==
        "tensor([[1., 4.],\n        [2., 5.],\n        [3., 6.]], shape (3, 2), float32)");
  const int64_t before = memory_stats().system_allocations;
  CHECK(to_string(expanded(alias(x, {1}, {1}), {3'000'000'000})) ==
        "tensor([1., 1., 1., ..., 1., 1., 1.], shape (3000000000), float32)");
  CHECK(memory_stats().system_allocations == before);
}
