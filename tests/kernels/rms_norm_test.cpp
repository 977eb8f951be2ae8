// rms_norm against the formula in long double. rstd errs by e = (c_sum + 3) / 2 + 1 units (a root
// halves the error of the sum), y by e + 2, and the gradients follow term by term.
#include "kernels/rms_norm.h"

#include "kernels/rows.h"
#include "row_test.h"

using namespace pellucid;

namespace {

template <class T>
struct RmsNorm {
  int64_t N, C;
  double eps = 1e-5;
  Bordered<T> x, w, y, rstd, dy, dx, dw, partials;
  RmsNorm(int64_t rows, int64_t columns, double center = 0)
      : N(rows),
        C(columns),
        x(normal<T>(N * C, 1, center)),
        w(normal<T>(C, 2)),
        y(N * C),
        rstd(N),
        dy(normal<T>(N * C, 4)),
        dx(N * C),
        dw(C),
        partials(row_blocks(N) * C) {}
  void forward() { cpu::rms_norm_forward<T>(y.data(), rstd.data(), x.data(), w.data(), N, C, eps); }
  void backward(bool want_x = true, bool want_w = true) {
    cpu::rms_norm_backward<T>(want_x ? dx.data() : nullptr, want_w ? dw.data() : nullptr,
                              want_w ? partials.data() : nullptr, dy.data(), x.data(), w.data(),
                              rstd.data(), N, C);
  }
};

template <class T>
void check(RmsNorm<T> t) {
  t.forward();
  t.backward();
  CHECK((t.y.borders_intact() && t.dx.borders_intact() && t.dw.borders_intact()));
  const int64_t N = t.N, C = t.C;
  const double e = (sum_bound(C) + 3) / 2 + 1;
  std::vector<long double> dw(C);
  std::vector<double> dw_bound(C);
  Judge judge_y, judge_x, judge_w;
  for (int64_t n = 0; n < N; ++n) {
    long double squares = 0, gh_mean = 0;
    double gh_size = 0;
    for (int64_t c = 0; c < C; ++c) squares += (long double)t.x[n * C + c] * t.x[n * C + c];
    const long double rstd = 1 / std::sqrt(squares / C + t.eps);
    for (int64_t c = 0; c < C; ++c) {
      const long double gh = (long double)t.dy[n * C + c] * t.w[c] * t.x[n * C + c] * rstd / C;
      gh_mean += gh, gh_size += double(std::abs(gh));
    }
    for (int64_t c = 0; c < C; ++c) {
      const long double dy = t.dy[n * C + c], g = dy * t.w[c], h = t.x[n * C + c] * rstd;
      judge_y(t.y[n * C + c], h * t.w[c], kUnit<T> * (e + 2) * double(std::abs(h * t.w[c])));
      const double terms = double(std::abs(g)) + double(std::abs(h)) * gh_size;
      judge_x(t.dx[n * C + c], rstd * (g - h * gh_mean),
              kUnit<T> * double(rstd) * (3 * e + sum_bound(C) + 8) * terms);
      dw[c] += dy * h, dw_bound[c] += (33 + e + 2) * double(std::abs(dy * h));
    }
  }
  for (int64_t c = 0; c < C; ++c) judge_w(t.dw[c], dw[c], kUnit<T> * dw_bound[c]);
}

}  // namespace

TEST_CASE_TEMPLATE("rms_norm stays within the bound for every width", T, float, double) {
  for (int64_t C : kOddSizes)
    for (int64_t N : {1, 3, 33, 65})
      for (double mean : {0.0, 1000.0})
        if (N * C <= 20000) check(RmsNorm<T>(N, C, mean));
}

TEST_CASE("rms_norm computes what is asked for only, and zeros for no rows") {
  RmsNorm<float> all(33, 65), some(33, 65);
  all.forward(), some.forward(), all.backward();
  some.backward(true, false);
  CHECK(std::memcmp(all.dx.data(), some.dx.data(), sizeof(float) * 33 * 65) == 0);
  CHECK(std::isnan(some.dw[0]));
  some.backward(false, true);
  CHECK(std::memcmp(all.dw.data(), some.dw.data(), sizeof(float) * 65) == 0);
  RmsNorm<float> none(0, 5), zeros(2, 5);
  none.forward(), none.backward();
  for (int64_t c = 0; c < 5; ++c) CHECK(none.dw[c] == 0);
  std::fill_n(zeros.x.data(), 10, 0.0f);
  zeros.forward();
  for (int64_t i = 0; i < 10; ++i) CHECK(zeros.y[i] == 0);
}

TEST_CASE("rms_norm gives the same bytes on any number of threads") {
  RmsNorm<float> t(1027, 384);
  same_bytes_on_any_threads<float>({&t.y, &t.rstd, &t.dx, &t.dw}, [&] {
    t.forward();
    t.backward();
  });
}
