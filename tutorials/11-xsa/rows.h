// What both exercises' tests expect, worked out number by number in double, and cases as code.
#pragma once
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

#include "tutorials/course/check.h"

namespace pellucid::course {

using Numbers = std::vector<double>;

// One case: y and dz (N, H, D), v (N, Hkv, D), gate (H); the denominator is max(v.v, floor) + eps.
struct Rows {
  int64_t N = 1, H = 1, Hkv = 1, D = 2;
  double floor = 0, eps = 0;
  Numbers y = {}, v = {}, dz = {}, gate = {};

  std::size_t at(int64_t n, int64_t h, int64_t d) const { return std::size_t((n * H + h) * D + d); }
  std::size_t v_at(int64_t n, int64_t h, int64_t d) const {
    return std::size_t((n * Hkv + h / (H / Hkv)) * D + d);
  }
};

struct Expected {
  Numbers z, dy, dv, dgate;
};

// The formulas of the lesson, a head at a time.
inline Expected expected(const Rows& r) {
  Expected e{Numbers(r.y.size()), Numbers(r.y.size()), Numbers(r.v.size()),
             Numbers(std::size_t(r.H))};
  for (int64_t n = 0; n < r.N; ++n)
    for (int64_t h = 0; h < r.H; ++h) {
      double yv = 0, vv = 0, zv = 0;
      for (int64_t d = 0; d < r.D; ++d) {
        const double v = r.v[r.v_at(n, h, d)];
        yv += r.y[r.at(n, h, d)] * v, vv += v * v, zv += r.dz[r.at(n, h, d)] * v;
      }
      const double below = (vv > r.floor ? vv : r.floor) + r.eps;
      const double c = below == 0 ? 0 : yv / below, u = below == 0 ? 0 : zv / below;
      const double g = r.gate[std::size_t(h)], kappa = vv > r.floor ? 1 : 0;
      e.dgate[std::size_t(h)] -= c * zv;
      for (int64_t d = 0; d < r.D; ++d) {
        const double y = r.y[r.at(n, h, d)], v = r.v[r.v_at(n, h, d)], dz = r.dz[r.at(n, h, d)];
        e.z[r.at(n, h, d)] = y - g * c * v;
        e.dy[r.at(n, h, d)] = dz - g * u * v;
        e.dv[r.v_at(n, h, d)] -= g * (c * dz + u * y - 2 * kappa * c * u * v);
      }
    }
  return e;
}

// Tenths between -3 and 3, and no value without length.
inline Numbers tenths(Random& random, int64_t n) {
  Numbers x;
  for (int64_t i = 0; i < n; ++i) x.push_back(double(random.whole(-30, 30)) / 10);
  return x;
}
inline Rows random_rows(Random& random, int64_t N, int64_t H, int64_t Hkv, int64_t D) {
  Rows r{N, H, Hkv, D};
  r.y = tenths(random, N * H * D), r.v = tenths(random, N * Hkv * D);
  r.dz = tenths(random, N * H * D), r.gate.assign(std::size_t(H), 1);
  for (std::size_t i = 0; i < r.v.size(); i += std::size_t(D))
    if (std::abs(r.v[i]) < 0.5) r.v[i] = 1.5;
  return r;
}

inline std::string braces(const Numbers& x) {
  std::ostringstream text;
  text << "{";
  for (std::size_t i = 0; i < x.size(); ++i) text << (i ? ", " : "") << x[i];
  text << "}";
  return text.str();
}

// Sums of some products below 10, each rounded once or twice: far more than float64 errs by, far
// less than a mistake is.
inline bool same(const Numbers& got, const Numbers& wanted, double bound = 1e-10) {
  if (got.size() != wanted.size()) return false;
  for (std::size_t i = 0; i < wanted.size(); ++i)
    if (!(std::abs(got[i] - wanted[i]) <= bound * (1 + std::abs(wanted[i])))) return false;
  return true;
}

}  // namespace pellucid::course
