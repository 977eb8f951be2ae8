// Shapes, layouts, creation and reading of tensors.
#include "tensor/tensor.h"

#include <doctest/doctest.h>

#include <cmath>

using namespace pellucid;

using Values = std::vector<double>;
constexpr int64_t kBig = int64_t{1} << 61;

TEST_CASE("numel overflow and negative sizes are refused before any allocation (R44)") {
  const int64_t before = memory_stats().system_allocations;
  CHECK_THROWS_WITH(empty({2, 2, 1, kBig}), "numel overflow: shape (2, 2, 1, 2305843009213693952)");
  CHECK_THROWS_WITH(empty({kBig, 0, 4}), "numel overflow: shape (2305843009213693952, 0, 4)");
  CHECK_THROWS_WITH(empty({kBig}),
                    "numel overflow: shape (2305843009213693952) of float32 has "
                    "more bytes than int64 counts");
  CHECK_THROWS_WITH(empty({2, -3}), "empty: shape (2, -3) has a negative size");
  CHECK_THROWS_WITH(expanded(scalar(1), {4, kBig}),
                    "numel overflow: shape (4, 2305843009213693952)");
  CHECK(memory_stats().system_allocations <= before + 1);  // that of scalar(1)
  CHECK(Shape{kBig, 0}.numel() == 0);
  CHECK(Shape{kBig, 3}.numel() == 3 * kBig);
}

TEST_CASE("a shape has at most 8 dimensions, and its own bounds") {
  CHECK(Shape{1, 2, 3, 4, 5, 6, 7, 8}.numel() == 40320);
  CHECK_THROWS_WITH((Shape{1, 2, 3, 4, 5, 6, 7, 8, 9}), "a tensor has at most 8 dimensions");
  const Shape shape{4, 5};
  CHECK(shape[-2] == 4);
  CHECK_THROWS_WITH(Shape{7}[1], "dimension 1 of a shape with 1 dimension; wanted -1 to 0");
  CHECK_THROWS_WITH(shape[2], "dimension 2 of a shape with 2 dimensions; wanted -2 to 1");
  CHECK_THROWS_WITH(Shape()[0], "dimension 0 of a shape () that has no dimensions");
  CHECK_THROWS_AS(shape[-3], std::invalid_argument);
  CHECK_THROWS_AS(scalar(1).size(0), std::invalid_argument);
  CHECK(Shape{} == Shape{});
  CHECK(Shape{1} != Shape{});
  CHECK(Shape{2, 3} != Shape{3, 2});
}

TEST_CASE("contiguity: size-1 strides do not matter, repeats are never contiguous (R34)") {
  const Tensor x = arange(24);
  CHECK(alias(x, {2, 3, 4}, {12, 4, 1}).is_contiguous());
  CHECK(alias(x, {1, 8}, {17, 1}).is_contiguous());
  CHECK(alias(x, {8, 1}, {1, 99}, 3).is_contiguous());
  CHECK_FALSE(alias(x, {4, 2}, {1, 4}).is_contiguous());
  CHECK_FALSE(alias(x, {12}, {2}).is_contiguous());
  CHECK_FALSE(expanded(scalar(1), {2}).is_contiguous());
  CHECK(expanded(scalar(1), {1, 1}).is_contiguous());
  CHECK(alias(x, {0, 5}, {7, 7}).is_contiguous());
}

TEST_CASE("overlapping elements are recognised") {
  const Tensor x = arange(24);
  CHECK(overlaps(expanded(scalar(1), {2})));
  CHECK(overlaps(alias(x, {4, 3}, {2, 1})));  // windows of 3, moved by 2
  CHECK_FALSE(overlaps(alias(x, {4, 3}, {1, 4})));
  CHECK(overlaps(alias(x, {2, 3}, {3, 2})));  // it does not, but such a view may be refused
  CHECK_FALSE(overlaps(alias(x, {1, 3}, {0, 2})));
}

TEST_CASE("no view leaves its storage") {
  const Tensor x = arange(12);
  CHECK(alias(x, {3}, {4}, 3).to_vector() == Values{3, 7, 11});
  CHECK_THROWS_WITH(alias(x, {3}, {4}, 4),
                    "alias: shape (3) with strides (4) from element 4 leaves a storage of 12 "
                    "elements");
  CHECK_THROWS_AS(alias(x, {1}, {1}, -1), std::invalid_argument);
  CHECK_THROWS_AS(alias(x, {2}, {-1}, 5), std::invalid_argument);
  CHECK_THROWS_AS(alias(x, {kBig}, {kBig}), std::invalid_argument);
  CHECK_THROWS_AS(alias(x, {2}, {1, 1}), std::invalid_argument);
  CHECK(alias(x, {0}, {1}, 12).numel() == 0);
}

TEST_CASE("expanded and packed: every size, empty ones too (R01, R02)") {
  const Tensor row = tensor({1, 2, 3});
  CHECK(packed(expanded(row, {2, 3})).to_vector() == Values{1, 2, 3, 1, 2, 3});
  CHECK(packed(expanded(tensor({{1}, {2}}), {2, 2})).to_vector() == Values{1, 1, 2, 2});
  CHECK(expanded(ones({2, 1}), {2, 0}).numel() == 0);
  CHECK_THROWS_WITH(expanded(row, {3, 2}), "expand: shape (3) does not broadcast to (3, 2)");
  CHECK_THROWS_WITH(expanded(row, {}), "expand: shape (3) has more dimensions than ()");
  CHECK(broadcast_shape("add", {2, 0}, {2, 1}) == Shape{2, 0});
  CHECK(broadcast_shape("add", {1, 3}, {0, 3}) == Shape{0, 3});
  CHECK(broadcast_shape("add", {4, 1, 3}, {5, 1}) == Shape{4, 5, 3});
  CHECK_THROWS_WITH(broadcast_shape("add", {2, 3}, {2, 4}),
                    "add: shapes (2, 3) and (2, 4) do not broadcast: they differ in axis -1");
  for (DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    const Tensor x = from_vector(Values{0, 1, 1, 0, 0, 1}, {2, 3}, dtype);
    CHECK(alias(x, {3, 2}, {1, 3}).to_vector() == Values{0, 0, 1, 0, 1, 1});
    CHECK(packed(alias(x, {3, 2}, {1, 3})).dtype() == dtype);
  }
}

TEST_CASE("indices beyond 2^31 are counted in 64 bits (R45)") {
  const Tensor x = expanded(tensor({{7}, {8}}), {2, 3'000'000'000});
  CHECK(x.numel() == 6'000'000'000);
  CHECK(x.at({1, 2'999'999'999}) == 8);
  CHECK(row_major({80, 8192, 8192}) == Shape{8192 * 8192, 8192, 1});
  CHECK(Shape{80, 8192, 8192}.numel() == 5'368'709'120);
}

TEST_CASE("creation") {
  CHECK(zeros({2, 2}).to_vector() == Values(4, 0));
  CHECK(ones({3}, kBool).to_vector() == Values(3, 1));
  CHECK(full({2}, -7, kInt64).to_vector() == Values{-7, -7});
  CHECK(scalar(2.5).shape() == Shape{});
  CHECK(scalar(2.5).item() == 2.5);
  CHECK(arange(4).to_vector() == Values{0, 1, 2, 3});
  CHECK(arange(4).dtype() == kInt64);
  CHECK(arange(1, 8, 3).to_vector() == Values{1, 4, 7});
  CHECK(arange(1, 7, 3, kFloat32).to_vector() == Values{1, 4});
  CHECK(arange(5, 5, 1).numel() == 0);
  CHECK(arange(9, 5, 1).numel() == 0);
  CHECK_THROWS_WITH(arange(0, 5, 0), "arange: step 0 must be positive");
  CHECK_THROWS_AS(arange(INT64_MIN, INT64_MAX, 1), std::invalid_argument);
  CHECK(arange(INT64_MAX - 1, INT64_MAX, 5).to_vector<int64_t>() ==
        std::vector<int64_t>{INT64_MAX - 1});
  CHECK(linspace(0, 1, 5).to_vector() == Values{0, 0.25, 0.5, 0.75, 1});
  CHECK(linspace(0, 0.3, 4, kFloat64).at({3}) == 0.3);
  CHECK(linspace(3, 9, 1).to_vector() == Values{3});
  CHECK(linspace(3, -3, 3).to_vector() == Values{3, 0, -3});
  CHECK(linspace(0, 1, 0).shape() == Shape{0});
  CHECK_THROWS_WITH(linspace(0, 1, -1),
                    "linspace: wanted n >= 0 and a floating dtype; got n -1, float32");
  CHECK_THROWS_WITH(linspace(0, 1, 3, kInt64),
                    "linspace: wanted n >= 0 and a floating dtype; got n 3, int64");
  CHECK_THROWS_WITH(linspace(0, HUGE_VAL, 3), "linspace: from 0 to inf is no finite distance");
  CHECK_THROWS_AS(linspace(NAN, 1, 3), std::invalid_argument);
  CHECK_THROWS_AS(linspace(-1e308, 1e308, 3), std::invalid_argument);  // the distance overflows
  CHECK_THROWS_WITH(arange(5, 0, -1), "arange: step -1 must be positive");
  CHECK(arange(-3).shape() == Shape{0});
  CHECK_THROWS_WITH(eye(-1), "eye: n must not be negative; got -1");
  CHECK(eye(2, kInt64).to_vector() == Values{1, 0, 0, 1});
  CHECK(eye(0).shape() == Shape{0, 0});
  CHECK(zeros_like(ones({2}, kFloat64)).dtype() == kFloat64);
  CHECK(ones_like(zeros({2}, kInt64)).to_vector() == Values{1, 1});
  CHECK(empty({0, 3}).numel() == 0);
}

TEST_CASE("int64 never rounds through double") {
  const std::vector<int64_t> exact{INT64_MAX, INT64_MIN, (int64_t{1} << 53) + 1, -1};
  const Tensor x = from_vector(exact, {4});
  CHECK(x.dtype() == kInt64);
  CHECK(x.to_vector<int64_t>() == exact);
  CHECK(packed(alias(x, {2, 2}, {1, 2})).to_vector<int64_t>() ==
        std::vector<int64_t>{exact[0], exact[2], exact[1], exact[3]});
  CHECK_THROWS_WITH(from_vector(Values{0.5}, {1}, kInt64),
                    "from_vector: 0.5 is no whole number of at most 2^53, as int64 wants it");
  CHECK_THROWS_AS(from_vector(Values{1e300}, {1}, kInt64), std::invalid_argument);
  CHECK_THROWS_AS(full({1}, NAN, kInt64), std::invalid_argument);
  CHECK_THROWS_WITH(from_vector(Values{1, 2}, {3}), "from_vector: 2 values do not fill shape (3)");
}

TEST_CASE("literals of nested braces") {
  CHECK(tensor(3).shape() == Shape{});
  CHECK(tensor({3}).shape() == Shape{1});
  CHECK(tensor({{1, 2, 3}, {4, 5, 6}}).shape() == Shape{2, 3});
  CHECK(tensor({{1, 2, 3}, {4, 5, 6}}).to_vector() == Values{1, 2, 3, 4, 5, 6});
  CHECK(tensor({{1}, {2}}).shape() == Shape{2, 1});
  CHECK(tensor({{{1, 2}}, {{3, 4}}, {{5, 6}}}, kInt64).shape() == Shape{3, 1, 2});
  CHECK_THROWS_WITH(tensor({{1, 2}, {3}}), "tensor: rows of shapes (2) and (1) side by side");
}

TEST_CASE("reading: item, at, data, to_vector") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  CHECK(x.at({1, 2}) == 6);
  CHECK(x.at({-1, -3}) == 4);
  CHECK(alias(x, {3, 2}, {1, 3}).at({2, 0}) == 3);
  CHECK_THROWS_WITH(x.at({1, 3}), "at: index 3 of dimension 1 is outside shape (2, 3)");
  CHECK_THROWS_WITH(x.at({1}), "at: 1 indices for a tensor of shape (2, 3)");
  CHECK_THROWS_WITH(x.item(), "item: wanted one element; got shape (2, 3)");
  CHECK(ones({1, 1}).item() == 1);
  CHECK(x.data<float>()[4] == 5);
  CHECK_THROWS_WITH(x.data<double>(), "data: wanted float64; got a float32 tensor of shape (2, 3)");
  CHECK_THROWS_WITH(alias(x, {3, 2}, {1, 3}).data<float>(),
                    "data: a view of shape (3, 2) with strides (1, 3) is not contiguous; take "
                    "packed(x)");
  CHECK_THROWS_WITH(x.to_vector<int64_t>(),
                    "to_vector: wanted int64; got a float32 tensor of shape (2, 3)");
  CHECK_THROWS_WITH(Tensor().shape(),
                    "this tensor is undefined: a handle that was given no value, or a gradient "
                    "before backward");
}

TEST_CASE("astype: C++'s casts, without their undefined ones") {
  const Tensor x = tensor({-1.75, 0, 2.5}, kFloat64);
  CHECK(astype(x, kInt64).to_vector() == Values{-1, 0, 2});
  CHECK(astype(x, kBool).to_vector() == Values{1, 0, 1});
  CHECK(astype(tensor({0.1}, kFloat64), kFloat32).item() == double(0.1f));
  CHECK(astype(tensor({1, 0}, kBool), kFloat32).to_vector() == Values{1, 0});
  CHECK(astype(x, kFloat64).data() != x.data());
  CHECK(astype(alias(x, {3, 2}, {1, 0}), kInt64).to_vector() == Values{-1, -1, 0, 0, 2, 2});
  CHECK_THROWS_WITH(astype(tensor({NAN}), kInt64), "astype: int64 cannot hold nan");
  CHECK_THROWS_AS(astype(tensor({0x1p63}), kInt64), std::invalid_argument);
  CHECK(astype(tensor({-0x1p62}), kInt64).to_vector<int64_t>()[0] == -(int64_t{1} << 62));
  CHECK(astype(tensor({NAN}), kBool).item() == 1);
}
