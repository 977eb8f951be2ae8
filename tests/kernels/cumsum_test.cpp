// cumsum against sums in long double. Floats are added in double and rounded once: |error| <= u
// |y_c| + c 2^-53 G, G = |x_0| + ... + |x_c|; doubles one after another: |error| <= c u G.
#include "kernels/cumsum.h"

#include "row_test.h"

using namespace pellucid;

TEST_CASE_TEMPLATE("cumsum stays within the rounding bound and its borders", T, float, double) {
  for (int64_t C : kOddSizes) {
    const int64_t N = C > 1000 ? 2 : 5;
    Bordered<T> x = normal<T>(N * C, uint32_t(C), 0.3), y(N * C);
    cpu::cumsum<T>(y.data(), x.data(), N, C);
    CHECK(y.borders_intact());
    Judge judge;
    for (int64_t n = 0; n < N; ++n) {
      long double total = 0, gauge = 0;
      for (int64_t c = 0; c < C; ++c) {
        total += x[n * C + c];
        gauge += std::abs((long double)x[n * C + c]);
        const double rounding = std::is_same_v<T, float> ? kUnit<T> * std::abs(double(total)) : 0;
        judge(y[n * C + c], total, rounding * 1.001 + double(c) * 0x1p-53 * double(gauge));
      }
    }
  }
  cpu::cumsum<T>(nullptr, nullptr, 0, 7);
  cpu::cumsum<T>(nullptr, nullptr, 7, 0);
}

TEST_CASE("cumsum gives the same bytes on any number of threads, and keeps NaN in its row") {
  const int64_t N = 301, C = 1000;
  Bordered<float> x = normal<float>(N * C, 3), y(N * C);
  x[5 * C + 7] = NAN;
  same_bytes_on_any_threads<float>({&y}, [&] { cpu::cumsum<float>(y.data(), x.data(), N, C); });
  for (int64_t i = 4 * C; i < 7 * C; ++i) CHECK(std::isnan(y[i]) == (i >= 5 * C + 7 && i < 6 * C));
}
