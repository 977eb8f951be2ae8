// exp, log, tanh, erf, sigmoid, softplus against the C library in double: worst error in ulp of the
// result over a sample of all floats, or all 2^32 of them ("long:"), specials exactly. One float at
// a time in a plain loop, and as a Vector<float>, must give the same bytes: then all loops agree.
#include "kernels/math.h"

#include <doctest/doctest.h>

#include <cstdio>
#include <cstring>
#include <functional>
#include <mutex>
#include <vector>

#include "kernels/simd.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

struct Worst {
  double ulp = 0;
  float at = 0;
  int64_t specials = 0, lanes = 0;  // mismatches
};

bool same(float a, float b) { return std::memcmp(&a, &b, 4) == 0 || (a != a && b != b); }

// wanted: the exact result in double. flush: results below the smallest normal float may be 0.
void judge(Worst& worst, float x, float got, double wanted, bool flush) {
  const float rounded = float(wanted);
  if (flush && wanted < 1.3e-38 && got == 0) return;
  if (!std::isfinite(rounded) || wanted == 0 || !std::isfinite(got)) {
    // NaN for NaN, infinity for overflow, and zeros with their sign.
    const bool right = std::isnan(wanted) ? std::isnan(got) : same(got, rounded);
    if (!right) ++worst.specials, worst.at = x;
    return;
  }
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(wanted) - 23, -149));
  const double error = std::abs(got - wanted) / ulp;
  if (error > worst.ulp) worst.ulp = error, worst.at = x;
}

template <class F>
Worst sweep(F f, double (*exact)(double), uint64_t step, bool flush) {
  constexpr int64_t kChunk = 4096;
  Worst all;
  std::mutex mutex;
  const int64_t count = int64_t(((uint64_t{1} << 32) + step - 1) / step);
  parallel_for(count, kChunk * 64, [&](int64_t begin, int64_t end) {
    Worst worst;
    std::vector<float> x(kChunk), y(kChunk), lanes(kChunk);
    for (int64_t i = begin; i < end; i += kChunk) {
      for (int64_t j = 0; j < kChunk; ++j) {
        const uint32_t bits = uint32_t(uint64_t(i + j) * step);
        std::memcpy(&x[size_t(j)], &bits, 4);
        if (flush && x[size_t(j)] > 88) x[size_t(j)] = 0;
      }
      for (size_t j = 0; j < kChunk; ++j) y[j] = f(x[j]);
      for (size_t j = 0; j < kChunk; j += kLanes<float>)
        store<float>(&lanes[j], f(load<float>(&x[j])));
      for (size_t j = 0; j < kChunk; ++j) {
        judge(worst, x[j], y[j], exact(double(x[j])), flush);
        worst.lanes += !same(y[j], lanes[j]);
      }
    }
    std::lock_guard lock(mutex);
    if (worst.ulp > all.ulp) all.ulp = worst.ulp, all.at = worst.at;
    all.specials += worst.specials, all.lanes += worst.lanes;
  });
  return all;
}

double exact_sigmoid(double x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}
double exact_softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

void sweep_all(uint64_t step, const char* title) {
  const auto check = [&](const char* name, Worst worst, double bound) {
    INFO(name, " at ", worst.at);
    CHECK(worst.ulp <= bound);
    CHECK(worst.ulp > 0.5);  // a sweep that judged nothing would find less
    CHECK(worst.specials == 0);
    CHECK(worst.lanes == 0);
    std::printf("FIGURE | %s, worst error over %s | %.3f ulp\n", name, title, worst.ulp);
  };
  check("exp", sweep([](auto x) { return math::exp(x); }, std::exp, step, false), 1);
  check("exp_fast", sweep([](auto x) { return math::exp_fast(x); }, std::exp, step, true), 2);
  check("log", sweep([](auto x) { return math::log(x); }, std::log, step, false), 1);
  check("tanh", sweep([](auto x) { return math::tanh(x); }, std::tanh, step, false), 2);
  check("sigmoid", sweep([](auto x) { return math::sigmoid(x); }, exact_sigmoid, step, false), 2.5);
  check("softplus", sweep([](auto x) { return math::softplus(x); }, exact_softplus, step, false),
        2.5);
  check("erf", sweep([](auto x) { return math::erf(x); }, std::erf, step, false), 2);
}

// -0 is neither equal to 0 by its bytes nor distant from it, so these list it.
const std::vector<float> kSpecial = {
    0.0f,      -0.0f,       HUGE_VALF,    -HUGE_VALF,    std::nanf(""), -std::nanf(""),
    1e-45f,    -1e-45f,     1.17549e-38f, -1.17549e-38f, 3.40282e38f,   -3.40282e38f,
    88.72284f, 88.72283f,   -103.97208f,  -103.97209f,   -87.33655f,    -87.33654f,
    1.0f,      -1.0f,       9.01f,        10.0f,         3.92f,         0.625f,
    0.93f,     0.70710677f, 1.4142135f,   0.99999994f};

}  // namespace

TEST_CASE("a sample of all floats") { sweep_all(1009, "every 1009th float"); }

TEST_CASE("long: all 2^32 floats") { sweep_all(1, "all 2^32 floats"); }

TEST_CASE("zeros, infinities, NaN, the ends of the ranges") {
  Worst worst;
  for (float x : kSpecial) {
    judge(worst, x, math::exp(x), std::exp(double(x)), false);
    judge(worst, x, math::log(x), std::log(double(x)), false);
    judge(worst, x, math::tanh(x), std::tanh(double(x)), false);
    judge(worst, x, math::erf(x), std::erf(double(x)), false);
    judge(worst, x, math::sigmoid(x), exact_sigmoid(x), false);
    judge(worst, x, math::softplus(x), exact_softplus(x), false);
    if (!(x > 88)) judge(worst, x, math::exp_fast(x), std::exp(double(x)), true);
  }
  INFO("at ", worst.at);
  CHECK(worst.specials == 0);
  CHECK(worst.ulp <= 2);
}

TEST_CASE("exp where the rounding of its reduced argument tells most") {
  Worst worst;
  const volatile float x = 0x1.ab786cp+4f;  // or the compiler would compute it, without FMA
  judge(worst, x, math::exp(float(x)), std::exp(double(x)), false);
  CHECK(worst.ulp <= 1);  // 1.003 without the term `lost`
}

TEST_CASE("double is the C library's, lane by lane too") {
  for (double x : {-2.5, -0.0, 0.3, 1.0, 700.0}) {
    CHECK(math::exp(x) == std::exp(x));
    CHECK(math::tanh(x) == std::tanh(x));
    CHECK(math::erf(x) == std::erf(x));
    CHECK(math::log(std::abs(x)) == std::log(std::abs(x)));
    CHECK(math::exp(Vector<double>() + x)[kLanes<double> - 1] == std::exp(x));
  }
}
