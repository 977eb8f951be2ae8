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
  Bordered<T> x, dx, loss, dy, lse;
  Bordered<double> row_loss;
  std::vector<int64_t> targets;
  CrossEntropy(int64_t rows, int64_t classes, double shift, double deviation, int64_t ignore_every)
      : N(rows),
        V(classes),
        x(normal<T>(N * V, 1, shift, deviation)),
        dx(N * V),
        loss(1),
        dy(1, 1.7),
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
                                  targets.data(), N, V, kIgnore, count);
    cpu::cross_entropy_backward<T>(dx.data(), dy.data(), x.data(), targets.data(), lse.data(), N, V,
                                   kIgnore, count);
  }
};

template <class T>
void check(CrossEntropy<T> t) {
  t.run();
  CHECK((t.dx.borders_intact() && t.loss.borders_intact()));
  const double count = double(std::max<int64_t>(t.count, 1));
  const long double scale = (long double)t.dy[0] / count;
  long double loss = 0;
  double loss_bound = 0;
  Judge judge_loss, judge_x;
  for (int64_t n = 0; n < t.N; ++n) {
    const T* row = t.x.data() + n * t.V;
    if (t.targets[size_t(n)] == kIgnore) {
      for (int64_t v = 0; v < t.V; ++v) CHECK(t.dx[n * t.V + v] == 0);
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
    loss += below(t.targets[size_t(n)]) / count;
    const double log_error = spread + 2 + sum_bound(t.V);
    loss_bound += (log_error + 1) / count;
    for (int64_t v = 0; v < t.V; ++v) {
      const bool hit = v == t.targets[size_t(n)];
      const double p = double(std::exp(-below(v)));
      const double steps = log_error + 2 * double(below(v)) + 8;
      judge_x(t.dx[n * t.V + v], scale * (std::exp(-below(v)) - hit),
              double(scale) * (kUnit<T> * (p * steps + 2 * (p + hit)) + 0x1p-126));
    }
  }
  judge_loss(t.loss[0], loss, kUnit<T> * (loss_bound + 2 * double(loss)));
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
