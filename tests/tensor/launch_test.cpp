// LAUNCH: what it makes of each argument, and what it refuses.
#include "tensor/launch.h"

#include <doctest/doctest.h>

using namespace pellucid;

namespace pellucid {

// y = s x + w, or s x without w; counts how often it ran.
KERNEL(test_affine, T* y, Strided<const T> x, const T* w, int64_t N, double s);
KERNEL(test_mask, Strided<T> y, Strided<const bool> mask, const int64_t* ids, bool invert);
KERNEL(test_move, Strided<T> y, const T* x);

static int runs = 0;

namespace cpu {

template <class T>
void test_affine(T* y, Strided<const T> x, const T* w, int64_t N, double s) {
  ++runs;
  for (int64_t i = 0; i < N; ++i) y[i] = T(s) * x[i] + (w ? w[i] : T(0));
}
INSTANTIATE(test_affine);

template <class T>
void test_mask(Strided<T> y, Strided<const bool> mask, const int64_t* ids, bool invert) {
  for (int64_t i = 0; i < y.numel; ++i) y[i] = mask[i] != invert ? T(ids[i]) : T(-1);
}
INSTANTIATE(test_mask);

template <class T>
void test_move(Strided<T> y, const T* x) {
  ++runs;
  for (int64_t i = 0; i < y.numel; ++i) y[i] = x[i];
}
INSTANTIATE_ANY(test_move);

}  // namespace cpu

using Values = std::vector<double>;

static void affine(const Tensor& y, const Tensor& x, const Tensor& w, double s) {
  LAUNCH(y, test_affine, y, x, maybe(w), y.numel(), s);
}

TEST_CASE("numbers, strided and packed operands, optional ones") {
  const Tensor x = tensor({{1, 2, 3}, {4, 5, 6}}), t = alias(x, {3, 2}, {1, 3});
  for (DType dtype : {kFloat32, kFloat64}) {
    const Tensor from = astype(x, dtype), turned = alias(from, {3, 2}, {1, 3});
    const Tensor y = empty({3, 2}, dtype);
    affine(y, turned, turned, 10);
    CHECK(y.to_vector() == Values{11, 44, 22, 55, 33, 66});
    affine(y, turned, Tensor(), 10);
    CHECK(y.to_vector() == Values{10, 40, 20, 50, 30, 60});
    affine(y, expanded(full_like(from, {}, 7), {3, 2}), expanded(full_like(from, {2}, 1), {3, 2}),
           1);
    CHECK(y.to_vector() == Values(6, 8));
  }
  const Tensor none = empty({0, 3});
  affine(none, none, none, 1);
}

TEST_CASE("a kernel with nothing to write is not called, but its arguments are checked") {
  const Tensor none = empty({0, 3}), some = empty({2, 3});
  runs = 0;
  affine(none, none, some, 1);
  LAUNCH_ANY(none, test_move, none, none);
  CHECK(runs == 0);
  CHECK_THROWS_AS(affine(none, none, empty({3}, kFloat64), 1), std::invalid_argument);
  affine(some, some, Tensor(), 1);
  LAUNCH_ANY(some, test_move, some, some);
  CHECK(runs == 2);
}

TEST_CASE("what is written has its version raised and its writer named; what is read has not") {
  const Tensor x = ones({3}), w = ones({3}), y = empty({3});
  const uint32_t before = y.storage().version, read = x.storage().version;
  affine(y, x, w, 2);
  CHECK(y.storage().version == before + 1);
  CHECK(std::string(y.storage().writer) == "test_affine");
  CHECK(x.storage().version == read);
  CHECK(w.storage().version == read);
  const Tensor view = alias(y, {2}, {1}, 1);
  LAUNCH(view, test_move, view, alias(x, {2}, {2}));
  CHECK(y.storage().version == before + 2);  // views share it
  CHECK(std::string(y.storage().writer) == "test_move");
}

TEST_CASE("bool and int64: parameters of any kernel, elements of LAUNCH_ANY's") {
  const Tensor y = empty({2, 2}), mask = tensor({{1, 0}, {0, 1}}, kBool),
               ids = tensor({{5, 6}, {7, 8}}, kInt64);
  LAUNCH(y, test_mask, y, mask, ids, false);
  CHECK(y.to_vector() == Values{5, -1, -1, 8});
  LAUNCH(y, test_mask, alias(y, {2, 2}, {1, 2}), mask, alias(ids, {2, 2}, {1, 2}), true);
  CHECK(y.to_vector() == Values{-1, 6, 7, -1});
  for (DType dtype : {kFloat32, kFloat64, kInt64, kBool}) {
    const Tensor x = tensor({1, 0, 1}, dtype), z = empty({3}, dtype);
    LAUNCH_ANY(x, test_move, z, x);
    CHECK(z.to_vector() == Values{1, 0, 1});
  }
}

TEST_CASE("a kernel writes into a view, and only there") {
  const Tensor y = zeros({4, 3});
  LAUNCH(y, test_move, alias(y, {4}, {3}, 1), tensor({1, 2, 3, 4}));
  CHECK(y.to_vector() == Values{0, 1, 0, 0, 2, 0, 0, 3, 0, 0, 4, 0});
}

TEST_CASE("what does not fit the kernel's declaration is refused, and nothing was written") {
  const Tensor x = ones({4}), y = zeros({4}), square = zeros({2, 2});
  const auto wrong = [&](auto call) {
    std::string text = "no error";
    try {
      call();
    } catch (const std::invalid_argument& error) {
      text = error.what();
    }
    return text;
  };
  CHECK(wrong([&] { affine(y, ones({4}, kFloat64), x, 1); }) ==
        "test_affine: wanted float32; got a float64 tensor of shape (4)");
  CHECK(wrong([&] { affine(y, x, ones({4}, kInt64), 1); }) ==
        "test_affine: wanted float32; got a int64 tensor of shape (4)");
  CHECK(wrong([&] { affine(y, Tensor(), x, 1); }) == "test_affine: got an undefined tensor");
  CHECK(wrong([&] { LAUNCH(y, test_affine, y, x, Tensor(), int64_t{4}, 1.0); }) ==
        "test_affine: got an undefined tensor");
  CHECK(wrong([&] { affine(arange(4), x, x, 1); }) ==
        "test_affine: wanted float32 or float64; got int64; use astype()");
  CHECK(wrong([&] {
          affine(alias(square, {2, 2}, {1, 2}), square, square, 1);
        }) == "test_affine: writes a view of shape (2, 2), which is not contiguous");
  CHECK(wrong([&] { LAUNCH(y, test_move, expanded(scalar(1), {4}), x); }) ==
        "test_move: writes a view of shape (4) whose elements overlap (strides (0)); take "
        "contiguous(x) first");
  CHECK(wrong([&] { LAUNCH(y, test_mask, y, x, arange(4), true); }) ==
        "test_mask: wanted bool; got a float32 tensor of shape (4)");
  CHECK(wrong([&] { empty({2}, kFloat32, kCUDA); }) ==
        "empty: this build has no CUDA; configure with PELLUCID_CUDA=ON");
  CHECK(y.to_vector() == Values(4, 0));
  CHECK(x.to_vector() == Values(4, 1));
}

TEST_CASE("packing for a call leaves no memory behind") {
  const Tensor x = ones({64, 64}), y = empty({64, 64});
  const int64_t before = memory_stats().blocks_in_use;
  LAUNCH(y, test_move, y, alias(x, {64, 64}, {1, 64}));
  CHECK(memory_stats().blocks_in_use == before);
}

}  // namespace pellucid
