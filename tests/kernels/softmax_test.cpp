// softmax against the formula in long double: the relative error of y_c is
// at most u (|x_c - m| + 2 B + c_sum + 3), where exp errs by B <= 1 ulp; results below 2^-126 may
// be 0.
#include "kernels/softmax.h"

#include "row_test.h"

using namespace pellucid;

namespace {

template <class T>
void check_forward(int64_t N, int64_t C, double deviation) {
  Bordered<T> x = normal<T>(N * C, uint32_t(N + C), 0, deviation), y(N * C);
  cpu::softmax_forward<T>(y.data(), x.data(), N, C);
  CHECK(y.borders_intact());
  Judge judge;
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x.data() + n * C;
    const long double top = *std::max_element(row, row + C);
    long double total = 0;
    for (int64_t c = 0; c < C; ++c) total += std::exp(row[c] - top);
    for (int64_t c = 0; c < C; ++c) {
      const long double want = std::exp(row[c] - top) / total;
      const double steps = double(top - row[c]) + 2 + sum_bound(C) + 3;
      judge(y[n * C + c], want, kUnit<T> * steps * double(want) + 0x1p-126);
    }
  }
}

template <class T>
void check_backward(int64_t N, int64_t C) {
  Bordered<T> y = normal<T>(N * C, 1, 0.5), dy = normal<T>(N * C, 2), dx(N * C);
  cpu::softmax_backward<T>(dx.data(), dy.data(), y.data(), N, C);
  CHECK(dx.borders_intact());
  Judge judge;
  for (int64_t n = 0; n < N; ++n) {
    long double dot = 0;
    double gauge = 0;
    for (int64_t i = n * C; i < (n + 1) * C; ++i) {
      dot += (long double)dy[i] * y[i];
      gauge += std::abs(double(dy[i]) * double(y[i]));
    }
    for (int64_t i = n * C; i < (n + 1) * C; ++i) {
      const double terms = (sum_bound(C) + 2) * gauge + 2 * (std::abs(double(dy[i])) + gauge);
      judge(dx[i], y[i] * (dy[i] - dot), kUnit<T> * std::abs(double(y[i])) * terms);
    }
  }
}

// |x_c - m|, |log S| and the result are rounded, S errs by sum_k p_k (|x_k - m| + 2 B) + c_sum, B
// <= 2.
template <class T>
void check_log_forward(int64_t N, int64_t C, double deviation) {
  Bordered<T> x = normal<T>(N * C, uint32_t(N + C), 0, deviation), y(N * C);
  cpu::log_softmax_forward<T>(y.data(), x.data(), N, C);
  CHECK(y.borders_intact());
  Judge judge;
  for (int64_t n = 0; n < N; ++n) {
    const T* row = x.data() + n * C;
    const long double top = *std::max_element(row, row + C);
    long double total = 0, gaps = 0;
    for (int64_t c = 0; c < C; ++c) total += std::exp(row[c] - top);
    for (int64_t c = 0; c < C; ++c) gaps += std::exp(row[c] - top) / total * (top - row[c]);
    for (int64_t c = 0; c < C; ++c) {
      const long double want = row[c] - top - std::log(total);
      const double steps = double(top - row[c] + std::log(total) + std::abs(want) + gaps);
      judge(y[n * C + c], want, kUnit<T> * (steps + 4 + sum_bound(C)));
    }
  }
}

// dx = dy - e^y total: e^y errs by 4, the sum by c_sum, the product and the difference are rounded.
template <class T>
void check_log_backward(int64_t N, int64_t C) {
  Bordered<T> y = normal<T>(N * C, 1, -3, 0.5), dy = normal<T>(N * C, 2), dx(N * C);
  cpu::log_softmax_backward<T>(dx.data(), dy.data(), y.data(), N, C);
  CHECK(dx.borders_intact());
  Judge judge;
  for (int64_t n = 0; n < N; ++n) {
    long double total = 0, gauge = 0;
    for (int64_t i = n * C; i < (n + 1) * C; ++i) {
      total += dy[i];
      gauge += std::abs((long double)dy[i]);
    }
    for (int64_t i = n * C; i < (n + 1) * C; ++i) {
      const long double p = std::exp((long double)y[i]), want = dy[i] - p * total;
      const double terms = (sum_bound(C) + 6) * double(p * gauge) + double(std::abs(want));
      judge(dx[i], want, kUnit<T> * terms);
    }
  }
}

}  // namespace

TEST_CASE_TEMPLATE("log_softmax forward and backward stay within the rounding bound", T, float,
                   double) {
  for (int64_t C : kOddSizes) {
    for (double deviation : {1.0, 30.0}) check_log_forward<T>(C > 1000 ? 2 : 5, C, deviation);
    check_log_backward<T>(C > 1000 ? 2 : 5, C);
  }
  cpu::log_softmax_forward<T>(nullptr, nullptr, 0, 7);
  cpu::log_softmax_backward<T>(nullptr, nullptr, nullptr, 0, 7);
}

TEST_CASE_TEMPLATE("softmax forward and backward stay within the rounding bound", T, float,
                   double) {
  for (int64_t C : kOddSizes) {
    for (double deviation : {1.0, 30.0}) check_forward<T>(C > 1000 ? 2 : 5, C, deviation);
    check_backward<T>(C > 1000 ? 2 : 5, C);
  }
  cpu::softmax_forward<T>(nullptr, nullptr, 0, 7);
  cpu::softmax_backward<T>(nullptr, nullptr, nullptr, 0, 7);
}

TEST_CASE_TEMPLATE("softmax's rows add up to 1, and a shift changes nothing", T, float, double) {
  const int64_t C = 1000;
  Bordered<T> x(C), shifted(C), y(C), z(C);
  for (int64_t c = 0; c < C; ++c) x[c] = T(c * 37 % 64) / 8, shifted[c] = x[c] + 1024;
  cpu::softmax_forward<T>(y.data(), x.data(), 1, C);
  cpu::softmax_forward<T>(z.data(), shifted.data(), 1, C);
  CHECK(std::memcmp(y.data(), z.data(), sizeof(T) * C) == 0);
  double total = 0;
  for (int64_t c = 0; c < C; ++c) total += double(y[c]);
  CHECK(std::abs(total - 1) <= (sum_bound(C) + std::sqrt(double(C)) + 3) * kUnit<T>);
}

TEST_CASE("softmax of infinities and NaN, at every place in a row") {
  const float inf = HUGE_VALF;
  for (int64_t C = 1; C <= 130; ++C)
    for (int64_t place = 0; place < C; place += 1 + C / 7) {
      Bordered<float> x(C, 1), y(C);
      x[place] = -inf;
      cpu::softmax_forward<float>(y.data(), x.data(), 1, C);
      for (int64_t c = 0; c < C && C > 1; ++c)
        CHECK(y[c] == (c == place ? 0 : doctest::Approx(1.0 / double(C - 1))));
      for (float special : {std::nanf(""), inf}) {
        x[place] = special;
        cpu::softmax_forward<float>(y.data(), x.data(), 1, C);
        CHECK(std::isnan(y[place]));
        if (std::isnan(special))
          for (int64_t c = 0; c < C; ++c) CHECK(std::isnan(y[c]));
      }
      Bordered<float> nothing(C, -inf);
      cpu::softmax_forward<float>(y.data(), nothing.data(), 1, C);
      for (int64_t c = 0; c < C; ++c) CHECK(std::isnan(y[c]));
    }
}

TEST_CASE("softmax and log_softmax give the same bytes on any number of threads") {
  const int64_t N = 301, C = 1000;
  Bordered<float> x = normal<float>(N * C, 3), dy = normal<float>(N * C, 4), y(N * C), dx(N * C);
  same_bytes_on_any_threads<float>({&y, &dx}, [&] {
    cpu::log_softmax_forward<float>(y.data(), x.data(), N, C);
    cpu::log_softmax_backward<float>(dx.data(), dy.data(), y.data(), N, C);
  });
  same_bytes_on_any_threads<float>({&y, &dx}, [&] {
    cpu::softmax_forward<float>(y.data(), x.data(), N, C);
    cpu::softmax_backward<float>(dx.data(), dy.data(), y.data(), N, C);
  });
}
