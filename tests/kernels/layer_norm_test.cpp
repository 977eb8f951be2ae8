// layer_norm against the formula in long double. With the mean kept in two parts h errs by at most
// 16 u (1 + |h|) at any mean; the gradients follow term by term.
#include "kernels/layer_norm.h"

#include "kernels/rows.h"
#include "row_test.h"

using namespace pellucid;

namespace {

// The row less its first element, which is exact for numbers near each other: mean and h from that.
template <class T>
struct Statistics {
  const T* x;
  long double mean = 0, rstd;
  Statistics(const T* row, int64_t C, double eps) : x(row) {
    long double var = 0;
    for (int64_t c = 0; c < C; ++c) mean += ((long double)x[c] - x[0]) / C;
    for (int64_t c = 0; c < C; ++c) var += d(c) * d(c) / C;
    rstd = 1 / std::sqrt(var + eps);
  }
  long double d(int64_t c) const { return ((long double)x[c] - x[0]) - mean; }
  long double h(int64_t c) const { return d(c) * rstd; }
};

template <class T>
struct LayerNorm {
  int64_t N, C;
  double eps = 1e-5;
  Bordered<T> x, w, b, y, mean, rstd, dy, dx, dw, db, partials;
  LayerNorm(int64_t rows, int64_t columns, double center, double deviation)
      : N(rows),
        C(columns),
        x(normal<T>(N * C, 1, center, deviation)),
        w(normal<T>(C, 2)),
        b(normal<T>(C, 3)),
        y(N * C),
        mean(2 * N),
        rstd(N),
        dy(normal<T>(N * C, 4)),
        dx(N * C),
        dw(C),
        db(C),
        partials(row_blocks(N) * 2 * C) {}
  void forward(bool bias = true) {
    cpu::layer_norm_forward<T>(y.data(), mean.data(), rstd.data(), x.data(), w.data(),
                               bias ? b.data() : nullptr, N, C, eps);
  }
  void backward(bool want_x = true, bool want_w = true, bool want_b = true) {
    cpu::layer_norm_backward<T>(want_x ? dx.data() : nullptr, want_w ? dw.data() : nullptr,
                                want_b ? db.data() : nullptr,
                                want_w || want_b ? partials.data() : nullptr, dy.data(), x.data(),
                                w.data(), mean.data(), rstd.data(), N, C);
  }
  // The bound of h's error, in u.
  static double error_of(double h) { return 16 * (1 + std::abs(h)); }
};

template <class T>
void check_forward(LayerNorm<T>& t, bool bias) {
  t.forward(bias);
  CHECK(t.y.borders_intact());
  Judge judge;
  for (int64_t n = 0; n < t.N; ++n) {
    const Statistics<T> s(t.x.data() + n * t.C, t.C, t.eps);
    for (int64_t c = 0; c < t.C; ++c) {
      const long double h = s.h(c);
      const long double want = h * t.w[c] + (bias ? t.b[c] : 0);
      const double bound =
          t.error_of(double(h)) * std::abs(double(t.w[c])) + 2 * std::abs(double(want));
      judge(t.y[n * t.C + c], want, kUnit<T> * bound);
    }
  }
}

template <class T>
void check_backward(LayerNorm<T>& t) {
  t.forward();
  t.backward();
  CHECK((t.dx.borders_intact() && t.dw.borders_intact() && t.db.borders_intact()));
  const int64_t N = t.N, C = t.C;
  std::vector<long double> dw(C), db(C);
  std::vector<double> dw_bound(C), db_bound(C);
  Judge judge_x, judge_w, judge_b;
  for (int64_t n = 0; n < N; ++n) {
    const Statistics<T> s(t.x.data() + n * C, C, t.eps);
    long double g_mean = 0, gh_mean = 0;
    double g_size = 0, gh_size = 0, gh_error = 0;
    for (int64_t c = 0; c < C; ++c) {
      const long double g = (long double)t.dy[n * C + c] * t.w[c];
      g_mean += g / C, gh_mean += g * s.h(c) / C;
      g_size += std::abs(double(g)) / double(C),
          gh_size += std::abs(double(g * s.h(c))) / double(C);
      gh_error += std::abs(double(g)) * t.error_of(double(s.h(c))) / double(C);
    }
    for (int64_t c = 0; c < C; ++c) {
      const long double dy = t.dy[n * C + c], g = dy * t.w[c];
      const double size = std::abs(double(s.h(c))), error = t.error_of(double(s.h(c)));
      const double terms = std::abs(double(g)) + g_size + size * gh_size;
      const double bound = (sum_bound(C) + 16) * terms + error * gh_size + size * gh_error;
      judge_x(t.dx[n * C + c], s.rstd * (g - g_mean - s.h(c) * gh_mean),
              kUnit<T> * double(s.rstd) * bound);
      dw[c] += dy * s.h(c), db[c] += dy;
      dw_bound[c] += std::abs(double(dy)) * (36 * size + error);
      db_bound[c] += std::abs(double(dy)) * 33;
    }
  }
  for (int64_t c = 0; c < C; ++c) {
    judge_w(t.dw[c], dw[c], kUnit<T> * dw_bound[c]);
    judge_b(t.db[c], db[c], kUnit<T> * db_bound[c]);
  }
}

}  // namespace

TEST_CASE_TEMPLATE("layer_norm stays within the bound for every width", T, float, double) {
  for (int64_t C : kOddSizes)
    for (int64_t N : {1, 3, 33, 65}) {
      if (N * C > 20000) continue;
      LayerNorm<T> t(N, C, 0.5, 1);
      check_forward(t, true);
      check_forward(t, false);
      check_backward(t);
    }
}

TEST_CASE_TEMPLATE("layer_norm stays within the bound at any mean", T, float, double) {
  for (double mean : {0.0, 1.0, -100.0, 1e4})
    for (double deviation : {1.0, 0.01}) {
      LayerNorm<T> t(8, 768, mean, deviation);
      t.eps = 1e-12;
      check_forward(t, true);
      check_backward(t);
    }
}

TEST_CASE("layer_norm of rows that one-pass variances get wrong") {
  const auto h = [](std::vector<float> x) {
    LayerNorm<float> t(1, int64_t(x.size()), 0, 1);
    std::copy(x.begin(), x.end(), t.x.data());
    std::fill_n(t.w.data(), t.C, 1.0f);
    t.forward(false);
    return std::vector<float>(t.y.data(), t.y.data() + t.C);
  };
  const double end = -1.5 / std::sqrt(1.25 + 1e-5);
  CHECK(std::abs(h({40000, 40001, 40002, 40003})[0] - end) <= 40 * kUnit<float>);
  std::vector<float> steps(16);
  for (int i = 0; i < 16; ++i) steps[size_t(i)] = 1000 + float(i) * 1e-3f;
  CHECK(std::abs(h(steps)[0] - -1.3415) < 0.03);  // 1e-3 is 16 steps of float at 1000
  for (float constant : {1234.0f, 0.1f, -3e30f})
    for (int64_t C : kOddSizes)
      for (float y : h(std::vector<float>(size_t(C), constant))) CHECK(y == 0);
}

TEST_CASE("layer_norm computes what is asked for only, and zeros for no rows") {
  LayerNorm<float> all(33, 65, 0, 1), some(33, 65, 0, 1);
  all.forward(), some.forward(), all.backward();
  some.backward(true, false, false);
  CHECK(std::memcmp(all.dx.data(), some.dx.data(), sizeof(float) * 33 * 65) == 0);
  some.backward(false, true, false);
  CHECK(std::memcmp(all.dw.data(), some.dw.data(), sizeof(float) * 65) == 0);
  CHECK(std::isnan(some.db[0]));
  some.backward(false, false, true);
  CHECK(std::memcmp(all.db.data(), some.db.data(), sizeof(float) * 65) == 0);
  LayerNorm<float> none(0, 5, 0, 1);
  none.forward(), none.backward();
  for (int64_t c = 0; c < 5; ++c) CHECK((none.dw[c] == 0 && none.db[c] == 0));
}

TEST_CASE("layer_norm gives the same bytes on any number of threads") {
  LayerNorm<float> t(1027, 384, 0, 1);
  same_bytes_on_any_threads<float>({&t.y, &t.rstd, &t.dx, &t.dw, &t.db}, [&] {
    t.forward();
    t.backward();
  });
}

TEST_CASE("layer_norm keeps a NaN in its own row") {
  for (int64_t place = 0; place < 130; ++place) {
    LayerNorm<float> t(3, 130, 0, 1);
    t.x[130 + place] = std::nanf("");
    t.forward();
    for (int64_t i = 0; i < 3 * 130; ++i) CHECK(std::isnan(t.y[i]) == (i / 130 == 1));
  }
}
