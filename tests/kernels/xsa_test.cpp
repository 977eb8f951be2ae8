// XSA's rows: the projection's properties, its gradients against four-point differences, and that
// the very same checks reject the mistakes seen in public implementations.
#include "kernels/xsa.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

#include "kernels/thread_pool.h"

using namespace pellucid;

namespace {

using Numbers = std::vector<double>;

Numbers random_numbers(int64_t n, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  Numbers x(n);
  for (double& e : x) e = double(normal(random));
  return x;
}

// A problem and an answer: z from y, v and gate; the gradients from dz.
struct Problem {
  int64_t N = 3, H = 2, Hkv = 2, D = 5;
  double floor = 0, eps = 0;
  Numbers y = random_numbers(N * H * D, 1), v = random_numbers(N * Hkv * D, 2);
  Numbers dz = random_numbers(N * H * D, 3), gate = {0.6, -0.3};
  // v of row n H + h of y: head h / (H / Hkv) of token n.
  int64_t v_at(int64_t row) const { return (row / H * Hkv + row % H / (H / Hkv)) * D; }
};
struct Answer {
  Numbers z, dy, dv, dgate;
};

template <class T = double>
Answer ours(const Problem& p) {
  const std::vector<T> y(p.y.begin(), p.y.end()), v(p.v.begin(), p.v.end());
  const std::vector<T> dz(p.dz.begin(), p.dz.end()), gate(p.gate.begin(), p.gate.end());
  std::vector<T> z(y.size(), T(NAN)), dy(z), dv(v.size(), T(NAN)), dgate(p.H, T(NAN));
  cpu::xsa_forward<T>(z.data(), y.data(), v.data(), gate.data(), p.N, p.H, p.Hkv, p.D, p.floor,
                      p.eps);
  cpu::xsa_backward<T>(dy.data(), dv.data(), dgate.data(), dz.data(), y.data(), v.data(),
                       gate.data(), p.N, p.H, p.Hkv, p.D, p.floor, p.eps);
  const auto wide = [](const std::vector<T>& x) { return Numbers(x.begin(), x.end()); };
  return {wide(z), wide(dy), wide(dv), wide(dgate)};
}

// The definition, once more and plainly.
Numbers define(const Problem& p) {
  Numbers z = p.y;
  for (int64_t row = 0; row < p.N * p.H; ++row) {
    const double *y = &p.y[row * p.D], *v = &p.v[p.v_at(row)];
    double yv = 0, vv = 0;
    for (int64_t d = 0; d < p.D; ++d) yv += y[d] * v[d], vv += v[d] * v[d];
    const double d = std::max(vv, p.floor) + p.eps, c = d == 0 ? 0 : yv / d;
    for (int64_t i = 0; i < p.D; ++i) z[row * p.D + i] -= p.gate[row % p.H] * c * v[i];
  }
  return z;
}

// Four-point differences of f = dz.z, whose error is 1e-12: the bound of gradcheck.
Numbers numeric(Problem p, Numbers Problem::*which) {
  Numbers gradient;
  const auto f = [&] {
    const Numbers z = define(p);
    double sum = 0;
    for (size_t i = 0; i < z.size(); ++i) sum += p.dz[i] * z[i];
    return sum;
  };
  for (double& x : p.*which) {
    const double before = x, h = 1e-3 * std::max(1.0, std::abs(x));
    const auto at = [&](double step) { return x = before + step, f(); };
    const double near = (at(h) - at(-h)) / (2 * h), far = (at(2 * h) - at(-2 * h)) / (4 * h);
    x = before;
    gradient.push_back((4 * near - far) / 3);
  }
  return gradient;
}

// The largest error over what is allowed; more than 1 is a mistake.
double judge(const Numbers& got, const Numbers& wanted) {
  double worst = 0;
  for (size_t i = 0; i < wanted.size(); ++i) {
    const double ratio = std::abs(got[i] - wanted[i]) / (1e-9 * 10 + 1e-8 * std::abs(wanted[i]));
    worst = std::max(worst, std::isnan(ratio) ? INFINITY : ratio);
  }
  return worst;
}
double judge(const Problem& p, const Answer& a) {
  return std::max({judge(a.z, define(p)), judge(a.dy, numeric(p, &Problem::y)),
                   judge(a.dv, numeric(p, &Problem::v)),
                   judge(a.dgate, numeric(p, &Problem::gate))});
}

// Call fn(row, y, v, dz, c, u, n, g) for each row.
template <class F>
void for_rows(const Problem& p, const F& fn) {
  for (int64_t row = 0; row < p.N * p.H; ++row) {
    const double *y = &p.y[row * p.D], *v = &p.v[p.v_at(row)], *dz = &p.dz[row * p.D];
    double yv = 0, vv = 0, dzv = 0;
    for (int64_t d = 0; d < p.D; ++d) yv += y[d] * v[d], vv += v[d] * v[d], dzv += dz[d] * v[d];
    const double d = std::max(vv, p.floor) + p.eps;
    fn(row * p.D, y, v, dz, yv / d, dzv / d, vv, p.gate[row % p.H]);
  }
}

double norm(const double* x, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("xsa: gradients of every denominator, in float64") {
  for (auto [floor, eps] : {std::pair{0.0, 0.0}, {0.0, 0.5}, {4.0, 0.0}, {1e9, 0.0}}) {
    Problem p;
    p.floor = floor, p.eps = eps;
    CHECK(judge(p, ours(p)) <= 1);
    for (Numbers gate : {Numbers{1, 2}, Numbers{0, -0.3}}) {
      p.gate = gate;
      CHECK(judge(p, ours(p)) <= 1);
    }
  }
}

TEST_CASE("xsa: heads that share a value") {
  for (auto [H, Hkv] : {std::pair<int64_t, int64_t>{4, 2}, {3, 1}, {6, 2}, {1, 1}}) {
    CAPTURE(H);
    Problem p;
    p.H = H, p.Hkv = Hkv;
    p.y = random_numbers(p.N * H * p.D, 51), p.v = random_numbers(p.N * Hkv * p.D, 52);
    p.dz = random_numbers(p.N * H * p.D, 53), p.gate = random_numbers(H, 54);
    CHECK(judge(p, ours(p)) <= 1);
    // A value each for all heads: then dv is their sum.
    Problem repeated = p;
    repeated.Hkv = H, repeated.v.clear();
    for (int64_t row = 0; row < p.N * H; ++row)
      repeated.v.insert(repeated.v.end(), &p.v[p.v_at(row)], &p.v[p.v_at(row)] + p.D);
    const Answer shared = ours(p), apart = ours(repeated);
    CHECK(shared.z == apart.z);
    CHECK(shared.dy == apart.dy);
    CHECK(shared.dgate == apart.dgate);
    Numbers sums(p.v.size());
    for (int64_t row = 0; row < p.N * H; ++row)
      for (int64_t d = 0; d < p.D; ++d) sums[p.v_at(row) + d] += apart.dv[row * p.D + d];
    CHECK(judge(shared.dv, sums) < 1e-5);  // of 1e-8: rounding alone
  }
}

TEST_CASE("xsa: the checks reject mistakes 1, 3, 4 and 5 of public implementations") {
  Problem p;
  const auto rms = [&] {  // 1. v divided by its root mean square, not by its norm
    Answer a = ours(p);
    for_rows(p, [&](int64_t at, const double*, const double* v, const double*, double c, double,
                    double, double g) {
      for (int64_t d = 0; d < p.D; ++d) a.z[at + d] = p.y[at + d] - g * c * double(p.D) * v[d];
    });
    return a;
  };
  CHECK(judge(p, rms()) > 1);

  const auto swapped = [&] {  // 3. (dz.y)/n v in dv, where (dz.v)/n y is right
    Answer a = ours(p);
    for_rows(p, [&](int64_t at, const double* y, const double* v, const double* dz, double c,
                    double u, double n, double g) {
      double dzy = 0;
      for (int64_t d = 0; d < p.D; ++d) dzy += dz[d] * y[d];
      for (int64_t d = 0; d < p.D; ++d)
        a.dv[at + d] = -g * (c * dz[d] + dzy / n * v[d] - 2 * c * u * v[d]);
    });
    return a;
  };
  CHECK(judge(p, swapped()) > 1);

  p.floor = 1e9;
  const auto clamped = [&] {  // 4. below the clamp, d is a constant: no 2 c u v
    Answer a = ours(p);
    for_rows(p, [&](int64_t at, const double* y, const double* v, const double* dz, double c,
                    double u, double, double g) {
      for (int64_t d = 0; d < p.D; ++d)
        a.dv[at + d] = -g * (c * dz[d] + u * y[d] - 2 * c * u * v[d]);
    });
    return a;
  };
  for (double& e : p.v) e *= 3e3;  // near the clamp, where the term is not lost in the tolerance
  CHECK(judge(p, ours(p)) <= 1);
  CHECK(judge(p, clamped()) > 1);

  p = Problem();
  Answer twice = ours(p);  // 5. the gate's gradient added to a buffer that was not cleared
  for (double& e : twice.dgate) e *= 2;
  CHECK(judge(p, twice) > 1);
}

TEST_CASE("xsa: a projection") {
  Problem p;
  p.N = 5, p.H = p.Hkv = 1, p.D = 33, p.gate = {1};
  p.y = random_numbers(p.N * p.D, 11), p.v = random_numbers(p.N * p.D, 12);
  p.dz = random_numbers(p.N * p.D, 13);
  const Answer a = ours(p), f = ours<float>(p);
  const double u = 0x1p-53 * double(p.D + 4);  // the hard bound of a dot product
  const auto close = [&](const Numbers& x, const Numbers& wanted, double scale) {
    for (size_t i = 0; i < x.size(); ++i) CHECK(std::abs(x[i] - wanted[i]) <= u * scale);
  };

  for (int64_t n = 0; n < p.N; ++n) {
    const double *y = &p.y[n * p.D], *v = &p.v[n * p.D], *z = &a.z[n * p.D];
    const double size = norm(y, p.D) * norm(v, p.D);
    double zv = 0, zv_float = 0, dyv = 0, vdv = 0, yv = 0;
    for (int64_t d = 0; d < p.D; ++d) {
      zv += z[d] * v[d], zv_float += f.z[n * p.D + d] * v[d], yv += y[d] * v[d];
      dyv += a.dy[n * p.D + d] * v[d], vdv += a.dv[n * p.D + d] * v[d];
    }
    CHECK(std::abs(zv) <= u * size);                    // z.v = 0
    CHECK(std::abs(zv_float) <= (0x1p-24 + u) * size);  // z rounded once
    const double dz_size = norm(&p.dz[n * p.D], p.D);
    CHECK(std::abs(dyv) <= u * dz_size * norm(v, p.D));      // y + a v has the same z
    CHECK(std::abs(vdv) <= 4 * u * dz_size * norm(y, p.D));  // s v gives the same z
    const double yy = norm(y, p.D) * norm(y, p.D), zz = norm(z, p.D) * norm(z, p.D);
    CHECK(std::abs(yy - zz - yv * yv / std::pow(norm(v, p.D), 2)) <= 4 * u * yy);  // Pythagoras
  }

  Problem again = p;
  again.y = a.z;
  close(ours(again).z, a.z, 8);  // idempotent
  Problem moved = p;
  for (size_t i = 0; i < p.y.size(); ++i) moved.y[i] += 3 * p.v[i];
  close(ours(moved).z, a.z, 32);
  for (double s : {-2.0, 1e-8, 1e8, 1e-100, 1e100}) {
    Problem scaled = p;
    for (double& e : scaled.v) e *= s;
    close(ours(scaled).z, a.z, 8);
  }
  Problem linear = p;
  for (size_t i = 0; i < p.y.size(); ++i) linear.y[i] = 2 * p.y[i] - p.dz[i];
  Problem other = p;
  other.y = p.dz;
  Numbers sum = ours(other).z;
  for (size_t i = 0; i < sum.size(); ++i) sum[i] = 2 * a.z[i] - sum[i];
  close(ours(linear).z, sum, 32);

  // Turn y and v by the reflection I - 2 w w^T: z turns with them.
  Numbers w = random_numbers(p.D, 14);
  const double length = norm(w.data(), p.D);
  const auto reflect = [&](Numbers x) {
    for (int64_t n = 0; n < p.N; ++n) {
      double xw = 0;
      for (int64_t d = 0; d < p.D; ++d) xw += x[n * p.D + d] * w[d] / length;
      for (int64_t d = 0; d < p.D; ++d) x[n * p.D + d] -= 2 * xw * w[d] / length;
    }
    return x;
  };
  Problem turned = p;
  turned.y = reflect(p.y), turned.v = reflect(p.v);
  close(ours(turned).z, reflect(a.z), 32);

  Problem gated = p;
  gated.gate = {0};
  CHECK(ours(gated).z == p.y);  // g = 0 is the identity
  gated.gate = {2};             // g = 2 is a reflection: it keeps the length and undoes itself
  Problem back = gated;
  back.y = ours(gated).z;
  close(ours(back).z, p.y, 16);
}

TEST_CASE("xsa: head dimension 1, y = v, and v = 0") {
  Problem p;
  p.N = 7, p.H = p.Hkv = 1, p.D = 1, p.gate = {1};
  p.y = random_numbers(7, 21), p.v = random_numbers(7, 22), p.dz = random_numbers(7, 23);
  for (int64_t i = 0; i < 7; ++i) CHECK(std::abs(ours(p).z[i]) <= 0x1p-51 * std::abs(p.y[i]));

  for (int64_t D : {1, 2, 3, 17, 31, 33, 63, 65, 127, 129, 256}) {
    p.N = 3, p.D = D;
    p.y = p.v = random_numbers(3 * D, uint64_t(D));
    p.dz = random_numbers(3 * D, 24);
    for (const Answer& a : {ours(p), ours<float>(p)})
      for (double z : a.z) CHECK(z == 0);  // exactly

    std::fill(p.v.begin(), p.v.end(), 0.0);
    const Answer a = ours<float>(p);
    CHECK(a.z == p.y);
    CHECK(a.dy == p.dz);
    CHECK(a.dv == Numbers(3 * D));
    CHECK(a.dgate == Numbers(1));
  }
}

TEST_CASE("xsa: float values whose squares are no floats") {
  for (double s : {1e-30, 1e30}) {
    Problem p;
    for (double& e : p.v) e = double(float(e * s));
    CHECK(judge(ours<float>(p).z, define(p)) <= 100);  // 2^-24 is 60 times that tolerance
  }
}

TEST_CASE("xsa: doubles whose squares are no doubles, to the last bit") {
  // v times a power of two leaves z and dy and divides dv; y times it as well leaves dy and dv.
  const auto times = [](Numbers x, double factor) {
    for (double& e : x) e *= factor;
    return x;
  };
  for (double s : {0x1p-664, 0x1p664}) {
    const Problem p;
    Problem of_v = p;
    of_v.v = times(p.v, s);
    Problem of_both = of_v;
    of_both.y = times(p.y, s);
    const Answer a = ours(p), v = ours(of_v), both = ours(of_both);
    CHECK(v.z == a.z);
    CHECK(v.dy == a.dy);
    CHECK(v.dv == times(a.dv, 1 / s));
    CHECK(v.dgate == a.dgate);
    CHECK(both.z == times(a.z, s));
    CHECK(both.dy == a.dy);
    CHECK(both.dv == a.dv);
    CHECK(both.dgate == times(a.dgate, s));

    // Beside such a v, a floor and an eps are nothing, or all.
    of_both.floor = 1e-3, of_both.eps = 1e-3;
    const Answer added = ours(of_both);
    CHECK(added.z == (s > 1 ? both.z : of_both.y));
    CHECK(added.dy == (s > 1 ? both.dy : p.dz));
  }
}

TEST_CASE("xsa: float32 within its bound, every length") {
  // z: one rounding, and that of c, which is in double. dy, dv: the same.
  double worst = 0;
  for (int64_t D : {1, 2, 3, 7, 8, 17, 31, 32, 33, 63, 64, 65, 127, 129, 256}) {
    Problem p;
    p.N = 9, p.D = D;
    p.y = random_numbers(p.N * 2 * D, 31), p.v = random_numbers(p.N * 2 * D, 32);
    p.dz = random_numbers(p.N * 2 * D, 33);
    p.gate = {0.625, -0.25};  // floats
    const Answer a = ours<float>(p), wanted = ours(p);
    for (auto [x, y] : {std::pair{&a.z, &wanted.z}, {&a.dy, &wanted.dy}, {&a.dv, &wanted.dv}})
      for (size_t i = 0; i < x->size(); ++i)
        worst =
            std::max(worst, std::abs((*x)[i] - (*y)[i]) / (0x1p-24 * std::abs((*y)[i]) + 1e-40));
  }
  CHECK(worst <= 1 + 1e-6);
  std::printf("FIGURE | xsa, worst rounding error of z, dy, dv, float32 | %.3f ulp\n", worst / 2);
}

TEST_CASE("xsa: no rows, no gate, single gradients, and any number of threads") {
  cpu::xsa_forward<float>(nullptr, nullptr, nullptr, nullptr, 0, 4, 2, 8, 0, 0);
  float dgate[2] = {NAN, NAN};
  cpu::xsa_backward<float>(nullptr, nullptr, dgate, nullptr, nullptr, nullptr, nullptr, 0, 2, 1, 8,
                           0, 0);
  CHECK(dgate[0] == 0);

  Problem p;
  p.N = 5000;
  p.y = random_numbers(p.N * 10, 41), p.v = random_numbers(p.N * 10, 42);
  p.dz = random_numbers(p.N * 10, 43);
  const int before = num_threads();
  set_num_threads(1);
  const Answer one = ours<float>(p);
  for (int threads : {2, 3, 7}) {
    set_num_threads(threads);
    const Answer many = ours<float>(p);
    CHECK(one.z == many.z);
    CHECK(one.dy == many.dy);
    CHECK(one.dv == many.dv);
    CHECK(one.dgate == many.dgate);
  }
  set_num_threads(before);

  std::vector<double> dv(p.y.size());
  cpu::xsa_backward<double>(nullptr, dv.data(), nullptr, p.dz.data(), p.y.data(), p.v.data(),
                            p.gate.data(), p.N, p.H, p.Hkv, p.D, 0, 0);
  CHECK(dv == ours(p).dv);
  p.gate = {1, 1};
  std::vector<double> z(p.y.size());
  cpu::xsa_forward<double>(z.data(), p.y.data(), p.v.data(), nullptr, p.N, p.H, p.Hkv, p.D, 0, 0);
  CHECK(z == ours(p).z);
}
