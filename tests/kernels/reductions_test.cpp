// sum, amax and argmax. A sum of floats is added in double and rounded once, so along every axis
// |error| <= u |sum| + n 2^-53 G, G = sum |x|; double is added in blocks whose sums are added
// pairwise: 4096 / 8 additions in a chain at most, 256 / 4 for columns, and a tree.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/amax.h"
#include "kernels/sum.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

template <class T>
Strided<const T> view(const T* data, const std::vector<int64_t>& sizes,
                      const std::vector<int64_t>& strides) {
  Strided<const T> v{};
  v.data = data, v.dim = int(sizes.size()), v.numel = 1, v.contiguous = true;
  for (int d = v.dim - 1; d >= 0; --d) {
    v.sizes[d] = sizes[size_t(d)], v.strides[d] = strides[size_t(d)];
    v.contiguous &= v.sizes[d] == 1 || v.strides[d] == v.numel;
    v.numel *= v.sizes[d];
  }
  return v;
}

template <class T>
double check_sum(const Strided<const T>& x, int64_t N, int64_t M) {
  const double u = std::numeric_limits<T>::epsilon() / 2;
  std::vector<T> y(size_t(N) + 2, T(77));
  cpu::sum<T>(y.data() + 1, x, N, M);
  double worst = 0;
  for (int64_t n = 0; n < N; ++n) {
    long double wanted = 0, G = 0;
    for (int64_t m = 0; m < M; ++m) {
      const long double term = x[n * M + m];
      wanted += term;
      G += std::abs(term);
    }
    const double depth = std::is_same_v<T, float> ? double(std::min<int64_t>(M, 4200)) * 0x1p-29
                                                  : double(std::min<int64_t>(M, 4200)) + 40;
    const long double bound = u * (std::abs(wanted) * 1.0001L + depth * G);
    const long double error = std::abs(y[size_t(n) + 1] - wanted);
    worst = std::max(worst, error <= bound ? (bound > 0 ? double(error / bound) : 0) : HUGE_VAL);
  }
  CHECK(worst <= 1);
  CHECK((y.front() == 77 && y.back() == 77));
  return worst;
}

template <class T>
std::vector<T> normal(int64_t n) {
  std::mt19937 random(3);
  std::normal_distribution<double> distribution(0.3, 1);
  std::vector<T> x(static_cast<size_t>(n));
  for (T& v : x) v = T(distribution(random));
  return x;
}

template <class T>
void check_shapes() {
  constexpr int64_t kLargest = 150000;
  const std::vector<T> x = normal<T>(3 * kLargest + 2000);
  for (int64_t N : {0, 1, 2, 3, 17, 33, 65, 129, 600}) {
    for (int64_t M : {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129, 257, 1025, 5000, 50000}) {
      if (N * M > kLargest) continue;
      INFO("N ", N, ", M ", M);
      check_sum(view(x.data(), {N, M}, {M, 1}), N, M);                // rows
      check_sum(view(x.data(), {N, M}, {1, N}), N, M);                // columns
      check_sum(view(x.data(), {N, M}, {2, 3}), N, M);                // neither
      check_sum(view(x.data(), {N, 1, M, 1}, {0, 9, 1, 7}), N, M);    // repeated, sizes of 1
      check_sum(view(x.data(), {3, N, M}, {N, 1, 3 * N}), 3 * N, M);  // columns in a block
      check_sum(view(x.data(), {N, 2, M}, {2, 1, 2 * N}), N, 2 * M);  // two summed dimensions
      check_sum(view(x.data(), {N, 2, M}, {2 * M, M, 1}), 2 * N, M);
    }
  }
}

}  // namespace

TEST_CASE("every layout, float") { check_shapes<float>(); }
TEST_CASE("every layout, double") { check_shapes<double>(); }

TEST_CASE("a sum in float would stick at 2^24: along either axis it does not") {
  const int64_t M = (1 << 24) + 1000;
  const std::vector<float> ones(size_t(2 * M), 1.0f);
  float y[2] = {};
  cpu::sum<float>(y, view(ones.data(), {2, M}, {1, 2}), 2, M);
  CHECK(y[0] == float(M));
  CHECK(y[1] == float(M));
  cpu::sum<float>(y, view(ones.data(), {2, M}, {M, 1}), 2, M);
  CHECK(y[0] == float(M));
  CHECK(y[1] == float(M));
  cpu::sum<float>(y, view(ones.data(), {2 * M}, {1}), 1, 2 * M);
  CHECK(y[0] == float(2 * M));
}

TEST_CASE("large sums: the share of the bound, and the same bytes on any threads") {
  const int64_t N = 2048, C = 1536;
  const std::vector<float> x = normal<float>(N * C);
  std::printf("FIGURE | sum of 3145728 floats, share of the error bound | %.3f\n",
              check_sum(view(x.data(), {N * C}, {1}), 1, N * C));
  std::printf("FIGURE | 1536 column sums of 2048 floats, share of the error bound | %.3f\n",
              check_sum(view(x.data(), {C, N}, {1, C}), C, N));
  const int before = num_threads();
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<float> y(size_t(1 + C + N + N));
    cpu::sum<float>(y.data(), view(x.data(), {N * C}, {1}), 1, N * C);
    cpu::sum<float>(y.data() + 1, view(x.data(), {C, N}, {1, C}), C, N);
    cpu::sum<float>(y.data() + 1 + C, view(x.data(), {N, C}, {C, 1}), N, C);
    cpu::amax<float>(y.data() + 1 + C + N, x.data(), N, C);
    if (first.empty()) first = y;
    CHECK(std::memcmp(first.data(), y.data(), 4 * y.size()) == 0);
  }
  set_num_threads(before);
}

TEST_CASE("NaN and infinity go through sums") {
  const float inf = HUGE_VALF;
  std::vector<float> x(200, 1.0f);
  float y = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    x[i] = inf;
    cpu::sum<float>(&y, view(x.data(), {200}, {1}), 1, 200);
    CHECK(y == inf);
    x[i] = NAN;
    cpu::sum<float>(&y, view(x.data(), {200}, {1}), 1, 200);
    CHECK(std::isnan(y));
    x[i] = 1;
  }
}

TEST_CASE("amax, with NaN in every place") {
  for (int64_t C : {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129}) {
    std::vector<float> x = normal<float>(3 * C);
    std::vector<double> d(x.begin(), x.end());
    float y[4] = {0, 0, 0, 77};
    double z[3];
    const auto check = [&] {
      cpu::amax<float>(y, x.data(), 3, C);
      cpu::amax<double>(z, d.data(), 3, C);
      for (int64_t n = 0; n < 3; ++n) {
        float top = -HUGE_VALF;
        bool nan = false;
        for (int64_t c = 0; c < C; ++c) {
          nan |= std::isnan(x[size_t(n * C + c)]);
          top = std::max(top, x[size_t(n * C + c)]);
        }
        if (nan) {
          CHECK((std::isnan(y[n]) && std::isnan(z[n])));
        } else {
          CHECK((y[n] == top && z[n] == double(top)));
        }
      }
      CHECK(y[3] == 77);
    };
    check();
    for (int64_t c = 0; c < C; ++c) {
      const size_t at = size_t(C + c);  // in the second row
      const float kept = x[at];
      x[at] = NAN, d[at] = NAN;
      check();
      x[at] = kept, d[at] = double(kept);
    }
  }
}

TEST_CASE_TEMPLATE("argmax: the first of the largest, or the first NaN, of every length", T, float,
                   double) {
  for (int64_t C = 1; C <= 130; ++C) {
    std::vector<T> x(size_t(3 * C));
    for (size_t i = 0; i < x.size(); ++i) x[i] = T(i * 37 % 11);  // many equals
    for (int64_t nan = -1; nan < C; nan += 1 + C / 9) {           // of the second row; -1: none
      std::vector<T> row = x;
      if (nan >= 0) row[size_t(C + nan)] = std::numeric_limits<T>::quiet_NaN(), row.back() = 50;
      int64_t y[5] = {77, 0, 0, 0, 77};
      cpu::argmax<T>(y + 1, row.data(), 3, C);
      for (int64_t n = 0; n < 3; ++n) {
        const auto begin = row.begin() + n * C;
        const bool has_nan = n == 1 && nan >= 0;
        CHECK(y[n + 1] == (has_nan ? nan : std::max_element(begin, begin + C) - begin));
      }
      CHECK((y[0] == 77 && y[4] == 77));
    }
  }
}
