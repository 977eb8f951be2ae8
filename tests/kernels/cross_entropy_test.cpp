// cross_entropy against the formula in long double: log S errs by
// u (sum_v p_v |x_v - m| + 2 B + c_sum), and the loss is in double until its last rounding. The
// gradient's softmax errs by that and by 2 u |x - lse|: x - m, log S and their difference are
// rounded, and |x - m| + log S is |x - lse|. Logits may be shifted by any constant.
#include "kernels/cross_entropy.h"

#include "row_test.h"

using namespace pellucid;

namespace {

constexpr int64_t kIgnore = -100;

template <class T>
struct CrossEntropy {
  int64_t N, V, count = 0;
  double smoothing = 0;
  bool mean = true;  // or row by row
  Bordered<T> x, dx, loss, dy, lse;
  Bordered<double> row_loss;
  std::vector<int64_t> targets;
  CrossEntropy(int64_t rows, int64_t classes, double shift, double deviation, int64_t ignore_every)
      : N(rows),
        V(classes),
        x(normal<T>(N * V, 1, shift, deviation)),
        dx(N * V),
        loss(N + 1),
        dy(N + 1, 1.7),
        lse(2 * N),
        row_loss(N) {
    for (int64_t n = 0; n < N; ++n) {
      const bool ignored = ignore_every > 0 && n % ignore_every == 0;
      targets.push_back(ignored ? kIgnore : (n * 7 + 3) % V);
      count += !ignored;
    }
  }
  void run() {
    cpu::cross_entropy_forward<T>(loss.data(), row_loss.data(), lse.data(), x.data(),
                                  targets.data(), N, V, kIgnore, smoothing, divisor());
    cpu::cross_entropy_backward<T>(dx.data(), dy.data(), x.data(), targets.data(), lse.data(), N, V,
                                   kIgnore, smoothing, divisor());
  }
  double divisor() const { return mean ? double(std::max<int64_t>(count, 1)) : 0; }
};

template <class T>
void check(CrossEntropy<T> t) {
  t.run();
  CHECK((t.dx.borders_intact() && t.loss.borders_intact()));
  const double count = t.mean ? t.divisor() : 1, e = t.smoothing;
  const long double scale = (long double)t.dy[0] / count;
  const double last = e > 0 ? 4 : 2;  // roundings of the loss: smoothing takes two more
  long double loss = 0;
  double loss_bound = 0;
  Judge judge_loss, judge_x;
  for (int64_t n = 0; n < t.N; ++n) {
    const T* row = t.x.data() + n * t.V;
    if (t.targets[size_t(n)] == kIgnore) {
      for (int64_t v = 0; v < t.V; ++v) CHECK(t.dx[n * t.V + v] == 0);
      if (!t.mean) CHECK(t.loss[n] == 0);
      continue;
    }
    const long double top = *std::max_element(row, row + t.V);
    long double total = 0;
    double spread = 0;
    for (int64_t v = 0; v < t.V; ++v) total += std::exp(row[v] - top);
    for (int64_t v = 0; v < t.V; ++v)
      spread += double(std::exp(row[v] - top) / total * (top - row[v]));
    // lse - x, without the rounding of lse.
    const auto below = [&](int64_t v) { return std::log(total) + (top - row[v]); };
    long double gaps = 0;  // of the smoothing, whose terms are rounded and added
    for (int64_t v = 0; v < t.V; ++v) gaps += (top - row[v]) / t.V;
    const long double row_loss =
        (1 - e) * below(t.targets[size_t(n)]) + e * (std::log(total) + gaps);
    const double log_error = spread + 2 + sum_bound(t.V);
    const double row_bound = log_error + 1 + e * double(gaps) * (sum_bound(t.V) + 1);
    if (!t.mean) Judge()(t.loss[n], row_loss, kUnit<T> * (row_bound + last * double(row_loss)));
    loss += row_loss / count;
    loss_bound += row_bound / count;
    for (int64_t v = 0; v < t.V; ++v) {
      const bool hit = v == t.targets[size_t(n)];
      const double p = double(std::exp(-below(v)));
      const double steps = log_error + 2 * double(below(v)) + 8;
      const double even = e / double(t.V);
      judge_x(t.dx[n * t.V + v], scale * (std::exp(-below(v)) - even - (1 - e) * hit),
              double(scale) * (kUnit<T> * (p * steps + 3 * even + 2 * (p + hit)) + 0x1p-126));
    }
  }
  if (t.mean) judge_loss(t.loss[0], loss, kUnit<T> * (loss_bound + last * double(loss)));
}

}  // namespace

TEST_CASE_TEMPLATE("cross_entropy stays within the bound for every number of classes", T, float,
                   double) {
  for (int64_t V : kOddSizes)
    for (int64_t N : {1, 3, 33})
      for (double deviation : {1.0, 10.0})
        if (N * V <= 20000) check(CrossEntropy<T>(N, V, 0, deviation, N > 3 ? 4 : 0));
  check(CrossEntropy<T>(2, 50304, 0, 2, 0));
}

TEST_CASE_TEMPLATE("cross_entropy with smoothed labels, and row by row", T, float, double) {
  for (int64_t V : kOddSizes)
    for (double smoothing : {0.0, 0.1, 1.0})
      for (bool mean : {true, false}) {
        CrossEntropy<T> t(9, V, 3, 2, 4);
        t.smoothing = smoothing, t.mean = mean;
        check(t);
      }
}

TEST_CASE_TEMPLATE("cross_entropy of logits far from 0 is as good", T, float, double) {
  for (double shift : {-100.0, 1e4, -1e6}) check(CrossEntropy<T>(17, 96, shift, 3, 5));
}

TEST_CASE("cross_entropy without a row that counts is 0 with zero gradients") {
  for (int64_t N : {0, 5}) {
    CrossEntropy<float> t(N, 7, 0, 1, 1);
    std::fill_n(t.x.data(), N * 7, std::nanf(""));
    t.run();
    CHECK(t.loss[0] == 0);
    for (int64_t i = 0; i < N * 7; ++i) CHECK(t.dx[i] == 0);
  }
}

TEST_CASE("cross_entropy of a sure prediction, of a masked class, and of NaN") {
  CrossEntropy<float> t(3, 4, 0, 0, 0);
  t.targets = {1, 1, 1};
  t.x[1] = 200, t.x[4] = -HUGE_VALF, t.x[8] = std::nanf("");
  t.run();
  CHECK(t.row_loss[0] == 0);
  CHECK(std::abs(t.row_loss[1] - std::log(3.0)) < 1e-6);
  CHECK(t.dx[4] == 0);
  CHECK((std::isnan(t.row_loss[2]) && std::isnan(t.loss[0])));
}

TEST_CASE("cross_entropy gives the same bytes on any number of threads") {
  CrossEntropy<float> t(1027, 96, 0, 1, 7);
  same_bytes_on_any_threads<float>({&t.dx, &t.loss}, [&] { t.run(); });
}
