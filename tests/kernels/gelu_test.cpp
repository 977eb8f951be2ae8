// gelu and gelu_tanh against the formula in double (float) or long double (double). Pinned for
// float, over all 2^32 inputs ("long:", and a sample of them always): y within 4 ulp for x > -1,
// within 2^-22 below (reliability 3.1), the slope within 2^-21: it is at most 1.13, sums two terms
// of 3 roundings each, and its argument's rounding is multiplied by x^2 phi(x) < 0.6.
#include "kernels/gelu.h"

#include <string>

#include "row_test.h"

using namespace pellucid;

namespace {

template <class R>
R cdf(R x, bool by_tanh) {
  const R root = std::sqrt(R(2) / R(3.14159265358979323846L));
  if (!by_tanh) return std::erfc(-x * std::sqrt(R(0.5))) / 2;
  return 1 / (1 + std::exp(-2 * root * (x + R(0.044715L) * x * x * x)));
}
template <class R>
R slope(R x, bool by_tanh) {
  const R root = std::sqrt(R(2) / R(3.14159265358979323846L)), s = cdf(x, by_tanh);
  if (!by_tanh) return s + x * root / 2 * std::exp(-x * x / 2);
  return s + x * 2 * root * (1 + R(3 * 0.044715L) * x * x) * s * cdf(-x, true);
}

template <class T>
void run(bool by_tanh, T* y, T* dx, const T* dy, const T* x, int64_t n) {
  by_tanh ? cpu::gelu_tanh_forward<T>(y, x, n) : cpu::gelu_forward<T>(y, x, n);
  by_tanh ? cpu::gelu_tanh_backward<T>(dx, dy, x, n) : cpu::gelu_backward<T>(dx, dy, x, n);
}

// Every step-th finite float.
void sweep(bool by_tanh, uint64_t step) {
  constexpr int64_t kChunk = 1 << 16;
  std::vector<float> x(kChunk), y(kChunk), dx(kChunk), one(kChunk, 1.0f);
  double worst_ulp = 0, worst_tail = 0, worst_slope = 0;
  for (uint64_t bits = 0; bits < 1ull << 32;) {
    int64_t n = 0;
    for (; n < kChunk && bits < 1ull << 32; bits += step) {
      const uint32_t word = uint32_t(bits);
      std::memcpy(&x[size_t(n)], &word, 4);
      if (std::isfinite(x[size_t(n)])) ++n;
    }
    run(by_tanh, y.data(), dx.data(), one.data(), x.data(), n);
    for (int64_t i = 0; i < n; ++i) {
      const float a = x[size_t(i)];
      const double t = std::max(-40.0, std::min(40.0, double(a)));
      const double want = a > 40 ? double(a) : t * cdf(t, by_tanh);
      const double ulp =
          std::max(std::ldexp(1.0, std::ilogb(std::max(std::abs(want), 1e-45)) - 23), 0x1p-149);
      const double error = std::abs(double(y[size_t(i)]) - want);
      if (a > -1) worst_ulp = std::max(worst_ulp, error / ulp);
      if (!(error < HUGE_VAL)) worst_tail = HUGE_VAL;
      if (a <= -1) worst_tail = std::max(worst_tail, error);
      const double slope_error = std::abs(double(dx[size_t(i)]) - slope(t, by_tanh));
      worst_slope = slope_error <= worst_slope ? worst_slope : slope_error;
      if (!(slope_error < 1)) worst_slope = HUGE_VAL;
    }
  }
  const char* name = by_tanh ? "gelu_tanh" : "gelu";
  const std::string over = step == 1 ? "all floats" : "a sample of all floats";
  std::printf("FIGURE | %s, worst error above -1, over %s | %.2f ulp\n", name, over.c_str(),
              worst_ulp);
  std::printf("FIGURE | %s, worst error below -1, over %s | %.2f x 2^-23\n", name, over.c_str(),
              worst_tail * 0x1p23);
  std::printf("FIGURE | %s, worst error of the slope, over %s | %.2f x 2^-23\n", name, over.c_str(),
              worst_slope * 0x1p23);
  CHECK(worst_ulp <= 4);
  CHECK(worst_tail <= 0x1p-22);
  CHECK(worst_slope <= 0x1p-21);
}

}  // namespace

TEST_CASE("gelu over a sample of all floats") {
  sweep(false, 2039);
  sweep(true, 2039);
}

TEST_CASE("long: gelu over all floats") {
  sweep(false, 1);
  sweep(true, 1);
}

TEST_CASE("gelu in double is good to 16 units of its terms") {
  for (bool by_tanh : {false, true}) {
    Bordered<double> x = normal<double>(5000, 1, 0, 3), dy = normal<double>(5000, 2);
    Bordered<double> y(5000), dx(5000);
    run(by_tanh, y.data(), dx.data(), dy.data(), x.data(), x.size());
    Judge judge;
    for (int64_t i = 0; i < x.size(); ++i) {
      const long double t = x[i];
      const double size = std::abs(x[i]);
      judge(y[i], t * cdf(t, by_tanh), 16 * kUnit<double> * size);
      judge(dx[i], dy[i] * slope(t, by_tanh), 32 * kUnit<double> * std::abs(dy[i]));
    }
  }
}

TEST_CASE_TEMPLATE("gelu of large numbers, infinities and NaN, in every lane", T, float, double) {
  const T inf = std::numeric_limits<T>::infinity();
  for (bool by_tanh : {false, true})
    for (int64_t n = 1; n <= 130; n += 1 + n / 20)
      for (int64_t place = 0; place < n; ++place) {
        Bordered<T> x(n, 0), y(n), dx(n), one(n, 1);
        for (T big : {T(13.24), T(40), T(3e38), inf}) {
          x[place] = big;
          run(by_tanh, y.data(), dx.data(), one.data(), x.data(), n);
          CHECK((y[place] == big && dx[place] == 1));
          x[place] = -big;
          run(by_tanh, y.data(), dx.data(), one.data(), x.data(), n);
          CHECK((std::abs(y[place]) < 1e-30 && std::abs(dx[place]) < 1e-30));
        }
        x[place] = std::numeric_limits<T>::quiet_NaN();
        run(by_tanh, y.data(), dx.data(), one.data(), x.data(), n);
        CHECK((std::isnan(y[place]) && std::isnan(dx[place])));
        CHECK((y.borders_intact() && dx.borders_intact()));
        if (n > 1) CHECK((y[place ? 0 : 1] == 0 && dx[place ? 0 : 1] == T(0.5)));
      }
}

TEST_CASE("gelu gives the same bytes on any number of threads") {
  const int64_t n = 100003;
  Bordered<float> x = normal<float>(n, 1), dy = normal<float>(n, 2), y(n), dx(n);
  for (bool by_tanh : {false, true})
    same_bytes_on_any_threads<float>(
        {&y, &dx}, [&] { run(by_tanh, y.data(), dx.data(), dy.data(), x.data(), n); });
}
