// Ops with index tensors, beyond the table of ops: repeated indices, other dtypes, indices changed
// before backward, sizes at the edge.
#include <doctest/doctest.h>

#include <functional>

#include "autograd/ops.h"

using namespace pellucid;

static Tensor ints(const Literal& values) { return tensor(values, kInt64); }

static void check_values(const Tensor& x, const std::vector<double>& wanted) {
  CHECK(x.to_vector() == wanted);
}

TEST_CASE("equal indices add up in the gradient (R38)") {
  const Tensor dy = tensor({0.25, 0.5}, kFloat64);
  const auto gradient = [&](const std::function<Tensor(const Tensor&)>& f, const Shape& shape) {
    const Tensor x = full(shape, 0.1, kFloat64).set_requires_grad(true), y = f(x);
    return grad(y, {x}, reshape(dy, y.shape()))[0].item();
  };
  const Tensor twice = ints({0, 0});
  CHECK(gradient([&](const Tensor& x) { return gather(x, 0, twice); }, {1}) == 0.75);
  CHECK(gradient([&](const Tensor& x) { return take_along(x, twice, 0); }, {1}) == 0.75);
  CHECK(gradient([&](const Tensor& x) { return index_select(x, 0, twice); }, {1}) == 0.75);
  CHECK(gradient([&](const Tensor& x) { return embedding(x, twice); }, {1, 1}) == 0.75);
}

TEST_CASE("gather and scatter_add, by hand") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  check_values(gather(x, 1, ints({{2, 0}, {1, 1}})), {3, 1, 5, 5});
  check_values(gather(x, 0, ints({{1, 0, 1}})), {4, 2, 6});
  check_values(gather(x, -1, ints({{2}})), {3});  // the index is shorter: row 0 only
  check_values(scatter_add(x, 1, ints({{2, 2}, {0, 1}}), tensor({{10, 20}, {30, 40}})),
               {1, 2, 33, 34, 45, 6});
  check_values(scatter_add(x, 0, ints({{1, 1, 0}}), tensor({{10, 20, 30}})), {1, 2, 33, 14, 25, 6});
  check_values(x, {1, 2, 3, 4, 5, 6});
}

TEST_CASE("index_select and index_add, by hand") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  check_values(index_select(x, 1, ints({2, 0, 2})), {3, 1, 3, 6, 4, 6});
  check_values(index_select(x, 0, ints({1, 1})), {4, 5, 6, 4, 5, 6});
  check_values(index_add(x, 1, ints({2, 0, 2}), tensor({{10, 20, 30}, {40, 50, 60}})),
               {21, 2, 43, 54, 5, 106});
  CHECK(index_select(x, 0, ints(std::initializer_list<Literal>{})).shape() == Shape{0, 3});
}

TEST_CASE("take_along broadcasts like NumPy's take_along_axis") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}});
  check_values(take_along(x, ints({{2, 0}}), 1), {3, 1, 6, 4});
  check_values(take_along(x, ints({{1}}), 0), {4, 5, 6});
  check_values(take_along(tensor({{1, 2, 3}}), ints({{0}, {2}}), 1), {1, 3});
}

TEST_CASE("whole numbers and truths can be chosen too") {
  const Tensor whole = arange(6), index = ints({5, 0});
  CHECK(gather(whole, 0, index).to_vector<int64_t>() == std::vector<int64_t>{5, 0});
  CHECK(index_select(reshape(whole, {3, 2}), 0, ints({2})).to_vector<int64_t>() ==
        std::vector<int64_t>{4, 5});
  CHECK(gather(equal(whole, full({}, 0, kInt64)), 0, index).to_vector<bool>() ==
        std::vector<bool>{false, true});
}

TEST_CASE("one_hot in each dtype") {
  for (const DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    const Tensor y = one_hot(ints({2, 0}), 3, dtype);
    CHECK(y.dtype() == dtype);
    check_values(y, {0, 0, 1, 1, 0, 0});
  }
  CHECK(one_hot(ints({2}), 3).dtype() == kFloat32);
  CHECK(one_hot(zeros({0}, kInt64), 0).shape() == Shape{0, 0});
}

TEST_CASE("an element added 2^24 + 1000 times does not stick (R18)") {
  const int64_t N = (1 << 24) + 1000;
  const Tensor x = zeros({1, 2}), index = expand(ints({{1}}), {1, N});
  const Tensor y = scatter_add(x, 1, index, expand(ones({1, 1}), {1, N}));
  check_values(y, {0, static_cast<double>(N)});
}

TEST_CASE("indices changed before backward are noticed") {
  const auto changed = [](const std::function<Tensor(const Tensor&, const Tensor&)>& f) {
    const Tensor x = ones({4, 2}).set_requires_grad(true), index = zeros({2}, kInt64);
    const Tensor y = sum(f(x, index));
    copy_(index, full({2}, 1000, kInt64));
    y.backward();
  };
  CHECK_THROWS_WITH(changed([](const Tensor& x, const Tensor& i) { return embedding(x, i); }),
                    doctest::Contains("that copy_ has changed in place since"));
  CHECK_THROWS_WITH(changed([](const Tensor& x, const Tensor& i) {
                      return gather(x, 0, reshape(i, {2, 1}));
                    }),
                    doctest::Contains("that copy_ has changed in place since"));
}

TEST_CASE("indices changed behind the library's back are refused by backward, not followed") {
  const Tensor x = ones({4}).set_requires_grad(true), index = zeros({2}, kInt64);
  const Tensor y = sum(gather(x, 0, index));
  index.data<int64_t>()[1] = 1000;
  CHECK_THROWS_WITH(y.backward(), "scatter_add: index(1) is 1000, outside [0, 4)");
}

TEST_CASE("gather of a transposed, a sliced and a repeated tensor is gather of their copies") {
  const Tensor x = reshape(arange(24, kFloat32), {4, 6});
  const Tensor index = ints({{3, 0, 2}, {1, 1, 0}, {2, 3, 3}, {0, 1, 2}});
  for (const Tensor& view : {transpose(x, 0, 1), slice(x, 1, 1, 6, 2), slice(x, 0, 0, 4, 2),
                             expand(slice(x, 0, 2, 3), {4, 6})})
    for (int dim : {0, 1}) {
      const Tensor at = slice(index, 0, 0, std::min<int64_t>(2, view.size(0)));
      Tensor inside =
          where(greater(full({}, double(view.size(dim)), kInt64), at), at, zeros({}, kInt64));
      CHECK(gather(view, dim, inside).to_vector() ==
            gather(contiguous(view), dim, contiguous(inside)).to_vector());
    }
}

TEST_CASE("rows beyond what memory counts are refused by name, and 2^50 empty ones are not") {
  CHECK_THROWS_WITH(scatter_add_rows(ones({0, 4}), zeros({0}, kInt64), int64_t{1} << 60),
                    "scatter_add_rows: 1152921504606846976 rows of 4 elements are more than int64 "
                    "counts bytes");
  CHECK(scatter_add_rows(ones({0, 0}), zeros({0}, kInt64), int64_t{1} << 50).shape() ==
        Shape{int64_t{1} << 50, 0});
}
