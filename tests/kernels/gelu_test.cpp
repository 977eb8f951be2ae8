// gelu and gelu_tanh against the formula in double (float) or long double (double). Pinned for
// float, over all 2^32 inputs ("long:", and a sample of them always): y within 4 ulp for x > -1,
// within 2^-22 below, the slope within 2^-21: it is at most 1.13, sums two terms
// of 3 roundings each, and its argument's rounding is multiplied by x^2 phi(x) < 0.6.
#include "kernels/gelu.h"

#include <mutex>
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

struct Worst {
  double ulp = 0, tail = 0, slope = 0;
};

// The floats with the bits begin, begin + step, ... below end, without infinities and NaN.
Worst sweep_part(bool by_tanh, uint64_t begin, uint64_t end, uint64_t step) {
  std::vector<float> x;
  for (uint64_t bits = begin; bits < end; bits += step) {
    const uint32_t word = uint32_t(bits);
    float value;
    std::memcpy(&value, &word, sizeof value);
    if (std::isfinite(value)) x.push_back(value);
  }
  std::vector<float> y(x.size()), dx(x.size()), one(x.size(), 1.0f);
  run(by_tanh, y.data(), dx.data(), one.data(), x.data(), int64_t(x.size()));
  Worst worst;
  const auto keep = [](double& most, double error) {
    most = error <= most ? most : error < HUGE_VAL ? error : HUGE_VAL;
  };
  for (size_t i = 0; i < x.size(); ++i) {
    const double t = std::max(-40.0, std::min(40.0, double(x[i])));
    const double want = x[i] > 40 ? double(x[i]) : t * cdf(t, by_tanh);
    const double ulp = std::ldexp(1.0, std::ilogb(std::max(std::abs(want), 0x1p-126)) - 23);
    keep(x[i] > -1 ? worst.ulp : worst.tail, std::abs(y[i] - want) / (x[i] > -1 ? ulp : 1));
    keep(worst.slope, std::abs(dx[i] - slope(t, by_tanh)));
  }
  return worst;
}

// Every step-th float, in parts that go to all threads.
void sweep(bool by_tanh, uint64_t step) {
  const uint64_t part = step << 16;
  std::mutex mutex;
  double worst_ulp = 0, worst_tail = 0, worst_slope = 0;
  parallel_for(int64_t(((1ull << 32) + part - 1) / part), 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const uint64_t first = uint64_t(i) * part;
      const Worst w = sweep_part(by_tanh, first, std::min(first + part, uint64_t(1) << 32), step);
      const std::lock_guard lock(mutex);
      worst_ulp = std::max(w.ulp, worst_ulp);
      worst_tail = std::max(w.tail, worst_tail);
      worst_slope = std::max(w.slope, worst_slope);
    }
  });
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
