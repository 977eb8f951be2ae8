// Elementwise kernels against one element at a time, bit for bit (functions within their ulp, see
// math_test.cpp): every length 0..130 with NaN and infinity in every lane, every layout of up to
// four dimensions, in place, any number of threads, nothing written beyond the ends.
#include "kernels/elementwise.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <vector>

#include "kernels/math.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

template <class T>
Strided<T> view(T* data, const std::vector<int64_t>& sizes, const std::vector<int64_t>& strides) {
  Strided<T> v{};
  v.data = data, v.dim = int(sizes.size()), v.numel = 1, v.contiguous = true;
  for (int d = v.dim - 1; d >= 0; --d) {
    v.sizes[d] = sizes[size_t(d)], v.strides[d] = strides[size_t(d)];
    v.contiguous &= v.sizes[d] == 1 || v.strides[d] == v.numel;
    v.numel *= v.sizes[d];
  }
  return v;
}
template <class T>
Strided<const T> read(const Strided<T>& v) {
  return view<const T>(v.data, {v.sizes, v.sizes + v.dim}, {v.strides, v.strides + v.dim});
}

template <class T>
bool same(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0 || (a != a && b != b);
}

// Numbers that include every kind, in an order that moves them through all lanes.
template <class T>
std::vector<T> values(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<T> x(size_t(n) + 1);
  for (size_t i = 0; i < x.size(); ++i) {
    const auto kind = random() % 12;
    T v = T(double(random() % 2001) / 100 - 10);
    if constexpr (std::is_floating_point_v<T>) {
      if (kind == 0) v = std::numeric_limits<T>::quiet_NaN();
      if (kind == 1) v = std::numeric_limits<T>::infinity();
      if (kind == 2) v = -std::numeric_limits<T>::infinity();
      if (kind == 3) v = T(-0.0);
    }
    x[i] = v;
  }
  return x;
}

template <class T>
using Binary = void (*)(Strided<T>, Strided<const T>, Strided<const T>);
template <class T>
using Unary = void (*)(Strided<T>, Strided<const T>);

template <class T>
void check_lengths() {
  const struct {
    Binary<T> kernel;
    T (*f)(T, T);
  } binary[] = {
      {cpu::add<T>, [](T a, T b) { return T(a + b); }},
      {cpu::sub<T>, [](T a, T b) { return T(a - b); }},
      {cpu::mul<T>, [](T a, T b) { return T(a * b); }},
      {cpu::div<T>, [](T a, T b) { return T(a / b); }},
      {cpu::maximum<T>, [](T a, T b) { return a != a || b != b ? a + b
                                              : a > b          ? a
                                                               : b; }},
      {cpu::minimum<T>, [](T a, T b) { return a != a || b != b ? a + b
                                              : a < b          ? a
                                                               : b; }},
      {cpu::pow<T>, [](T a, T b) { return std::pow(a, b); }}};
  const struct {
    Unary<T> kernel;
    T (*f)(T);
  } unary[] = {{cpu::neg<T>, [](T x) { return -x; }},
               {cpu::sqrt<T>, [](T x) { return std::sqrt(x); }},
               {cpu::rsqrt<T>, [](T x) { return 1 / std::sqrt(x); }},
               {cpu::exp<T>, [](T x) { return math::exp(x); }},
               {cpu::log<T>, [](T x) { return math::log(x); }},
               {cpu::tanh<T>, [](T x) { return math::tanh(x); }},
               {cpu::erf<T>, [](T x) { return math::erf(x); }},
               {cpu::sigmoid<T>, [](T x) { return math::sigmoid(x); }},
               {cpu::softplus<T>, [](T x) { return math::softplus(x); }},
               {cpu::abs<T>, [](T x) { return std::fabs(x); }},
               {cpu::sign<T>, [](T x) { return x != x || x == 0 ? x : std::copysign(T(1), x); }},
               {cpu::relu<T>, [](T x) { return x > 0 || x != x ? x : T(0); }},
               {cpu::floor<T>, [](T x) { return std::floor(x); }},
               {cpu::ceil<T>, [](T x) { return std::ceil(x); }},
               {cpu::round<T>, [](T x) { return std::rint(x); }},
               {cpu::copy<T>, [](T x) { return x; }}};
  for (int64_t n = 0; n <= 130; ++n) {
    const std::vector<T> a = values<T>(n, unsigned(n)), b = values<T>(n, unsigned(n) + 1000);
    int64_t wrong = 0;
    const auto run = [&](const std::function<void(T*)>& kernel,
                         const std::function<T(int64_t)>& f) {
      std::vector<T> y(size_t(n) + 2, T(77));
      kernel(y.data() + 1);
      for (int64_t i = 0; i < n; ++i) wrong += !same(y[size_t(i) + 1], f(i));
      wrong += y.front() != 77 || y.back() != 77;
    };
    const auto row = [&](const std::vector<T>& x, int64_t step) {
      return view<const T>(x.data(), {n}, {step});
    };
    for (const auto& op : binary) {
      run([&](T* y) { op.kernel(view(y, {n}, {1}), row(a, 1), row(b, 1)); },
          [&](int64_t i) { return op.f(a[size_t(i)], b[size_t(i)]); });
      run([&](T* y) { op.kernel(view(y, {n}, {1}), row(a, 1), row(b, 0)); },
          [&](int64_t i) { return op.f(a[size_t(i)], b[0]); });
      run([&](T* y) { op.kernel(view(y, {n}, {1}), row(a, 0), row(b, 1)); },
          [&](int64_t i) { return op.f(a[0], b[size_t(i)]); });
      run(
          [&](T* y) {  // in place
            std::copy_n(a.begin(), n, y);
            op.kernel(view(y, {n}, {1}), read(view(y, {n}, {1})), row(b, 1));
          },
          [&](int64_t i) { return op.f(a[size_t(i)], b[size_t(i)]); });
    }
    for (const auto& op : unary)
      run([&](T* y) { op.kernel(view(y, {n}, {1}), row(a, 1)); },
          [&](int64_t i) { return op.f(a[size_t(i)]); });
    INFO("length ", n);
    CHECK(wrong == 0);
  }
}

// Every order of the dimensions of y and x, gaps and repeats included.
template <class T>
void check_layouts() {
  std::mt19937 random(5);
  int64_t cases = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const int dim = 1 + int(random() % 4);
    std::vector<int64_t> sizes;
    for (int d = 0; d < dim; ++d) sizes.push_back(int64_t{1} + random() % 7);
    if (trial % 40 == 0) sizes[0] = 0;
    const auto layout = [&](bool repeats) {
      std::vector<int64_t> strides(size_t(dim), 0), order;
      for (int d = 0; d < dim; ++d) order.insert(order.begin() + random() % (d + 1), d);
      int64_t step = 1 + random() % 2;
      for (int64_t d : order) {
        if (repeats && random() % 3 == 0) continue;  // stride 0
        strides[size_t(d)] = step;
        step *= sizes[size_t(d)] + random() % 2;
      }
      return strides;
    };
    std::vector<T> y(20000, T(77)), a = values<T>(20000, unsigned(trial)), b = values<T>(20000, 9);
    std::vector<T> wanted = y;
    const Strided<T> vy = view(y.data(), sizes, layout(false)), vw = [&] {
      Strided<T> v = vy;
      v.data = wanted.data();
      return v;
    }();
    const Strided<const T> va = view<const T>(a.data(), sizes, layout(true)),
                           vb = view<const T>(b.data(), sizes, layout(true));
    for (int64_t i = 0; i < vy.numel; ++i) vw[i] = va[i] - vb[i];
    cpu::sub<T>(vy, va, vb);
    int64_t wrong = 0;
    for (size_t i = 0; i < y.size(); ++i) wrong += !same(y[i], wanted[i]);
    CHECK(wrong == 0);
    ++cases;
  }
  CHECK(cases == 400);
}

template <class T>
void check_moves() {
  for (int64_t n : {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129}) {
    const std::vector<T> source = values<T>(n, 3), other = values<T>(n, 4);
    // std::vector<bool> has no array to point to.
    const std::unique_ptr<T[]> a(new T[size_t(n) + 1]), b(new T[size_t(n) + 1]),
        y(new T[size_t(n) + 1]);
    const std::unique_ptr<bool[]> c(new bool[size_t(n) + 1]), less(new bool[size_t(n) + 1]),
        equal(new bool[size_t(n) + 1]);
    for (int64_t i = 0; i < n; ++i)
      a[size_t(i)] = source[size_t(i)], b[size_t(i)] = i % 5 ? other[size_t(i)] : a[size_t(i)],
      c[size_t(i)] = i % 3 == 1;
    const auto va = view<const T>(a.get(), {n}, {1}), vb = view<const T>(b.get(), {n}, {1});
    cpu::where<T>(view(y.get(), {n}, {1}), view<const bool>(c.get(), {n}, {1}), va, vb);
    cpu::equal<T>(view(equal.get(), {n}, {1}), va, vb);
    cpu::greater<T>(view(less.get(), {n}, {1}), vb, va);
    int64_t wrong = 0;
    for (size_t i = 0; i < size_t(n); ++i)
      wrong +=
          !same(y[i], c[i] ? a[i] : b[i]) || equal[i] != (a[i] == b[i]) || less[i] != (b[i] > a[i]);
    cpu::fill<T>(view(y.get(), {n}, {1}), 1);
    for (size_t i = 0; i < size_t(n); ++i) wrong += y[i] != T(1);
    cpu::copy<T>(view(y.get(), {n}, {1}), view<const T>(a.get(), {n}, {1}));
    for (size_t i = 0; i < size_t(n); ++i) wrong += !same<T>(y[i], a[i]);
    INFO("length ", n);
    CHECK(wrong == 0);
  }
}

}  // namespace

TEST_CASE("every length, NaN and infinity in every lane, float") { check_lengths<float>(); }
TEST_CASE("every length, NaN and infinity in every lane, double") { check_lengths<double>(); }
TEST_CASE("random layouts") {
  check_layouts<float>();
  check_layouts<double>();
}
TEST_CASE("where, equal, greater, fill and copy of every type") {
  check_moves<float>();
  check_moves<double>();
  check_moves<int64_t>();
  check_moves<bool>();
}

TEST_CASE("a broadcast row, a column and a transposed operand, the same bytes on any threads") {
  const int64_t N = 700, C = 129;
  const std::vector<float> a = values<float>(N * C, 1), b = values<float>(N * C, 2);
  const int before = num_threads();
  for (const std::vector<int64_t>& strides :
       {std::vector<int64_t>{0, 1}, {1, 0}, {1, N}, {0, 0}, {C, 1}}) {
    std::vector<float> first;
    for (int threads : {1, 2, 3, 7}) {
      set_num_threads(threads);
      std::vector<float> y(size_t(N * C), 77);
      const auto vb = view<const float>(b.data(), {N, C}, strides);
      cpu::mul<float>(view(y.data(), {N, C}, {C, 1}), view<const float>(a.data(), {N, C}, {C, 1}),
                      vb);
      int64_t wrong = 0;
      for (int64_t i = 0; i < N * C; ++i) wrong += !same(y[size_t(i)], a[size_t(i)] * vb[i]);
      CHECK(wrong == 0);
      if (first.empty()) first = y;
      CHECK(std::memcmp(first.data(), y.data(), 4 * y.size()) == 0);
    }
  }
  set_num_threads(before);
}
