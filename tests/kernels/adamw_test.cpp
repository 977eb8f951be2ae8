// adamw against a table of three steps (PyTorch's semantics in float64, from the
// formula), and sum_squares and grad_norm against a long double sum. The third parameter, with its
// tiny gradient, tells eps added to the corrected root from eps scaled with it.
#include "kernels/adamw.h"

#include "autograd/ops.h"
#include "row_test.h"

using namespace pellucid;

namespace {

struct Setting {
  double lr, beta2, decay;
  double w[3][3];  // after steps 1, 2, 3
};
const Setting kSettings[] = {{1e-2,
                              0.999,
                              0.1,
                              {{0.989000001000000, -1.988000000500000, 0.499500000000000},
                               {0.978833190219559, -1.976690204701037, 0.495917732836928},
                               {0.975275319097760, -1.976777084690346, 0.493316364286982}}},
                             {1e-2,
                              0.999,
                              0,
                              {{0.990000001000000, -1.990000000500000, 0.500000000000000},
                               {0.980822190220559, -1.980678204701537, 0.496917232836928},
                               {0.978243152288979, -1.982741774895547, 0.494811782019819}}},
                             {1e-4,
                              0.95,
                              0.1,
                              {{0.999890000010000, -1.999880000005000, 0.499995000000000},
                               {0.999789131900050, -1.999766071904158, 0.499959331019772},
                               {0.999753476235489, -1.999766416244832, 0.499933273541219}}}};
const std::vector<double> kGradients[] = {{.1, -.2, 0}, {.3, -.1, 1e-8}, {-.2, .4, 0}};

// float32: the weight rounds 3 times a step, the update (at most 4 lr here) some 25 times.
template <class T>
void check_setting(const Setting& s, double grad_scale) {
  Bordered<T> w(3), m(3, 0), v(3, 0), g(3);
  w[0] = 1, w[1] = -2, w[2] = T(0.5);
  Judge judge;
  for (int step = 1; step <= 3; ++step) {
    for (int i = 0; i < 3; ++i) g[i] = T(kGradients[step - 1][size_t(i)] / grad_scale);
    cpu::adamw<T>(w.data(), m.data(), v.data(), g.data(), 3, s.lr, 0.9, s.beta2, 1e-8, s.decay,
                  grad_scale, step);
    for (int i = 0; i < 3; ++i) {
      const double want = s.w[step - 1][i];
      const double printed = 1e-15;  // the table's own last digit, rounded
      judge(w[i], want, kUnit<T> * step * (4 * std::abs(want) + 25 * 4 * s.lr) + printed);
    }
  }
}

Tensor doubles(const std::vector<double>& x, DType dtype = kFloat32) {
  return from_vector(x, {int64_t(x.size())}, dtype);
}

}  // namespace

TEST_CASE_TEMPLATE("adamw gives the numbers of the table", T, float, double) {
  for (const Setting& s : kSettings)
    for (double grad_scale : {1.0, 0.25, 3.0}) check_setting<T>(s, grad_scale);
}

TEST_CASE("adamw with a zero gradient and no past moves nothing but the decay") {
  Bordered<float> w(130, 1), m(130, 0), v(130, 0), g(130, 0);
  cpu::adamw<float>(w.data(), m.data(), v.data(), g.data(), 130, 0.5, 0.9, 0.99, 1e-8, 0.5, 1, 1);
  for (int64_t i = 0; i < 130; ++i) CHECK((w[i] == 0.75f && m[i] == 0 && v[i] == 0));
}

TEST_CASE("adamw treats each element alike, keeps NaN in its place, and no others' memory") {
  for (int64_t n : {0, 1, 2, 3, 17, 31, 33, 63, 65, 127, 129}) {
    Bordered<float> w(n, 1), m(n, 0.1), v(n, 0.2), g(n, 0.3);
    if (n > 2) g[n / 2] = std::nanf("");
    cpu::adamw<float>(w.data(), m.data(), v.data(), g.data(), n, 1e-2, 0.9, 0.99, 1e-8, 0.1, 1, 7);
    for (int64_t i = 0; i < n; ++i)
      CHECK((n > 2 && i == n / 2 ? std::isnan(w[i]) : w[i] == w[0] && w[i] < 1));
    CHECK((w.borders_intact() && m.borders_intact() && v.borders_intact()));
  }
}

TEST_CASE("adamw and sum_squares give the same bytes on any number of threads") {
  const int64_t n = 100003;
  const Bordered<float> w0 = normal<float>(n, 1);
  Bordered<float> g = normal<float>(n, 2), w(n), m(n), v(n);
  same_bytes_on_any_threads<float>({&w, &m, &v}, [&] {
    w = w0, std::fill_n(m.data(), n, 0.1f), std::fill_n(v.data(), n, 0.2f);
    cpu::adamw<float>(w.data(), m.data(), v.data(), g.data(), n, 1e-2, 0.9, 0.99, 1e-8, 0.1, 1, 7);
  });
  Bordered<double> partials((n + kSquaresBlock - 1) / kSquaresBlock);
  same_bytes_on_any_threads<double>(
      {&partials}, [&] { cpu::sum_squares<float>(partials.data(), g.data(), n, 1); });
}

TEST_CASE("adamw_ raises the versions of what it writes, and of nothing else") {
  const Tensor w = doubles({1, 2}), g = doubles({3, 4}), m = doubles({0, 0}), v = doubles({0, 0});
  adamw_(w, g, m, v, {});
  CHECK((w.storage().version > g.storage().version && m.storage().version == w.storage().version));
  CHECK((v.storage().version == w.storage().version && g.to_vector()[1] == 4));
}

TEST_CASE("grad_norm neither overflows nor vanishes, and returns what is not finite") {
  const double inf = HUGE_VAL, root = std::sqrt(2.0);
  const auto close = [](double got, double want) { return std::abs(got / want - 1) < 1e-7; };
  CHECK(close(grad_norm({doubles({1e20, 1e20})}), root * 1e20));
  CHECK(close(grad_norm({doubles({3e38, 3e38})}), root * 3e38));
  CHECK(close(grad_norm({doubles({1e-40}), doubles({1e-40})}), root * 1e-40) == false);  // rounded
  CHECK(grad_norm({doubles({0x1p-149, 0})}) == 0x1p-149);
  CHECK(close(grad_norm({doubles({1e300, 1e300}, kFloat64)}), root * 1e300));
  CHECK(close(grad_norm({doubles({1e-300, 1e-300}, kFloat64)}), root * 1e-300));
  CHECK(grad_norm({doubles({inf, 1})}) == inf);
  CHECK(grad_norm({doubles({-inf, 1}, kFloat64)}) == inf);
  CHECK(std::isnan(grad_norm({doubles({1, 2}), doubles({std::nan(""), 1})})));
  CHECK(grad_norm({doubles({0, 0})}) == 0);
  CHECK(grad_norm({}) == 0);
  CHECK(grad_norm({doubles({3}), doubles({4}, kFloat64)}) == 5);
}
