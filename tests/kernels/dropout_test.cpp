// dropout: element i goes by number first + i of the stream; a choice, so infinity and NaN drop to
// 0 as well; p = 0 changes no bit, p = 1 leaves zeros.
#include "kernels/dropout.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/philox.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

template <class T>
static void check_lengths() {
  for (int64_t n = 0; n <= 130; ++n) {
    for (double p : {0.0, 1e-12, 0.1, 0.5, 0.9, 1 - 0x1p-40, 1.0}) {
      std::vector<T> x(size_t(n), T(3)), y(size_t(n) + 2, T(77));
      for (size_t i = 0; i < x.size(); ++i) {
        if (i % 3 == 0) x[i] = std::numeric_limits<T>::infinity();
        if (i % 7 == 0) x[i] = std::numeric_limits<T>::quiet_NaN();
        if (i % 5 == 0) x[i] = T(-0.0);
      }
      cpu::dropout<T>(y.data() + 1, x.data(), n, p, 3, 4, 5);
      int64_t wrong = y.front() != 77 || y.back() != 77;
      for (size_t i = 0; i < x.size(); ++i) {
        const bool drop = unit_from_zero(philox_number(3, 4, 5 + i)) < p || p == 1;
        const T wanted = drop ? T(0) : x[i] * T(1 / (1 - p));
        wrong += std::memcmp(&y[i + 1], &wanted, sizeof(T)) != 0 &&
                 !(std::isnan(y[i + 1]) && std::isnan(wanted));
        if (p == 0) wrong += std::memcmp(&y[i + 1], &x[i], sizeof(T)) != 0;
      }
      INFO("length ", n, ", p ", p);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("every length, float") { check_lengths<float>(); }
TEST_CASE("every length, double") { check_lengths<double>(); }

TEST_CASE("a number equal to 2^32 p is kept: it is not below") {
  const double p = unit_from_zero(philox_number(3, 4, 5));
  const double x = 1;
  double y = 0;
  cpu::dropout<double>(&y, &x, 1, p, 3, 4, 5);
  CHECK(y == 1 / (1 - p));
  cpu::dropout<double>(&y, &x, 1, p + 0x1p-32, 3, 4, 5);
  CHECK(y == 0);
}

TEST_CASE("the share that is dropped, the mean, the same bytes on any threads") {
  const int64_t N = 1 << 20;
  const std::vector<float> x(N, 1.0f);
  const int before = num_threads();
  std::vector<float> first;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<float> y(N);
    cpu::dropout<float>(y.data(), x.data(), N, 0.1, 1, 2, 3);
    if (first.empty()) first = y;
    CHECK(std::memcmp(first.data(), y.data(), 4 * N) == 0);
  }
  set_num_threads(before);
  double dropped = 0;
  for (float y : first) dropped += y == 0;
  CHECK(std::abs(dropped / N - 0.1) < 5 * std::sqrt(0.09 / N));  // 5 standard errors
}
