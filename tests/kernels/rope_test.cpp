// RoPE against complex multiplication in long double, its inverse, and what it leaves alone.
#include "kernels/rope.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

template <class T>
std::vector<T> random_numbers(int64_t n) {
  std::mt19937_64 random(7);
  std::normal_distribution<float> normal;
  std::vector<T> x(n);
  for (T& e : x) e = T(normal(random));
  return x;
}

// The largest error over u (|a| + |b|): products, sum, and the rounded cosine and sine are each
// within u of |a| + |b|, so 3 is allowed; the angle itself errs by position 2^-52.
template <class T>
double worst(int64_t B, int64_t length, int64_t W, int64_t heads, int64_t D, bool adjacent,
             int64_t position, bool inverse) {
  const std::vector<T> x = random_numbers<T>(B * length * W);
  std::vector<T> y(x.size() + 1, T(NAN));
  cpu::rope<T>(y.data(), x.data(), B, length, W, heads, D, adjacent, 10000, position, inverse);
  CHECK(std::isnan(y.back()));
  double most = 0;
  for (int64_t row = 0; row < B * length; ++row) {
    for (int64_t w = heads * D; w < W; ++w) CHECK(y[row * W + w] == x[row * W + w]);
    const int64_t t = position + row % length;
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t i = 0; i < D / 2; ++i) {
        const int64_t a = row * W + h * D + (adjacent ? 2 * i : i), b = a + (adjacent ? 1 : D / 2);
        const long double angle =
            (inverse ? -1 : 1) * (long double)t * powl(10000, -2 * (long double)i / (long double)D);
        const long double re = x[a] * cosl(angle) - x[b] * sinl(angle);
        const long double im = x[a] * sinl(angle) + x[b] * cosl(angle);
        const double size = std::abs(double(x[a])) + std::abs(double(x[b]));
        const double u = sizeof(T) == 4 ? 0x1p-24 : 0x1p-53;
        const double allowed = size * (u + double(t) * 0x1p-52);
        most = std::max({most, double(fabsl(re - (long double)y[a])) / allowed,
                         double(fabsl(im - (long double)y[b])) / allowed});
      }
  }
  return most;
}

}  // namespace

TEST_CASE("rope: both layouts turn each pair by its angle, up to position 1,000,000") {
  double most = 0;
  for (bool adjacent : {false, true})
    for (int64_t position : {0, 1, 1000, 1000000})
      for (int64_t D : {2, 4, 6, 32, 64, 66, 128}) {
        most = std::max(most, worst<float>(2, 5, 3 * D + 1, 2, D, adjacent, position, false));
        most = std::max(most, worst<double>(1, 3, 2 * D, 2, D, adjacent, position, true));
      }
  CHECK(most <= 3);
  std::printf("FIGURE | rope, worst error / u (abs a + abs b) | %.3f\n", most);
}

TEST_CASE("rope: no rows, no heads, no batch") {
  for (auto [B, length, heads] : {std::array<int64_t, 3>{0, 5, 2}, std::array<int64_t, 3>{2, 0, 2},
                                  std::array<int64_t, 3>{2, 3, 0}})
    CHECK(worst<float>(B, length, 9, heads, 4, true, 0, false) <= 3);
}

TEST_CASE("rope: position 0 changes nothing, and turning back restores") {
  const int64_t B = 2, length = 17, W = 40, D = 16;
  for (bool adjacent : {false, true}) {
    const std::vector<double> x = random_numbers<double>(B * length * W);
    std::vector<double> y(x.size()), back(x.size());
    cpu::rope<double>(y.data(), x.data(), B, length, W, 2, D, adjacent, 10000, 3, false);
    cpu::rope<double>(back.data(), y.data(), B, length, W, 2, D, adjacent, 10000, 3, true);
    for (size_t i = 0; i < x.size(); ++i) CHECK(std::abs(back[i] - x[i]) <= 64 * 0x1p-53);
    cpu::rope<double>(y.data(), x.data(), B, 1, W, 2, D, adjacent, 10000, 0, false);
    for (int64_t i = 0; i < W; ++i) CHECK(y[i] == x[i]);
  }
}

TEST_CASE("rope: a product of two turned rows depends on their distance only") {
  const int64_t D = 8;
  const std::vector<double> q = random_numbers<double>(D), k = random_numbers<double>(D + 3);
  const auto product = [&](int64_t i, int64_t j) {
    double a[8], b[8], sum = 0;
    cpu::rope<double>(a, q.data(), 1, 1, D, 1, D, false, 10000, i, false);
    cpu::rope<double>(b, k.data() + 3, 1, 1, D, 1, D, false, 10000, j, false);
    for (int64_t d = 0; d < D; ++d) sum += a[d] * b[d];
    return sum;
  };
  CHECK(product(9, 4) == doctest::Approx(product(105, 100)).epsilon(1e-12));
  CHECK(product(9, 4) != doctest::Approx(product(9, 5)).epsilon(1e-3));
}

TEST_CASE("rope: in place, and the same bytes for any number of threads") {
  const int before = num_threads();
  const int64_t length = 700, W = 200, D = 32;
  const std::vector<float> x = random_numbers<float>(2 * length * W);
  set_num_threads(1);
  std::vector<float> one(x.size());
  cpu::rope<float>(one.data(), x.data(), 2, length, W, 4, D, true, 10000, 0, false);
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    std::vector<float> y = x;
    cpu::rope<float>(y.data(), y.data(), 2, length, W, 4, D, true, 10000, 0, false);
    CHECK(std::memcmp(y.data(), one.data(), y.size() * sizeof(float)) == 0);
  }
  set_num_threads(before);
}
