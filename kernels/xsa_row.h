// The scalars of one row of XSA (kernels/xsa.h), which attention fuses too.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/row_sums.h"
#include "kernels/simd.h"

namespace pellucid {

// kLanes<double> adjacent numbers, in double.
template <class T>
inline Vector<double> load_double(const T* from) {
  typedef T Narrow __attribute__((vector_size(kLanes<double> * sizeof(T))));
  Narrow x;
  std::memcpy(&x, from, sizeof(x));
  return __builtin_convertvector(x, Vector<double>);
}

// The two dot products of one row x with v, in double, over a power of two s near max |v|: then c
// is exactly 1 where x = v, and no square overflows or vanishes. Squares of floats never do: s = 1.
// By vectors, two sums each: loops that the compiler vectorises took half as long again.
struct RowDots {
  double xv, vv, s;
  double product() const { return xv * s; }
};
template <class T>
inline RowDots row_dots(const T* x, const T* v, int64_t D) {
  double s = 1;
  if constexpr (sizeof(T) == sizeof(double)) {
    const double most = fold_row(
        D, 0.0, [v](int64_t d) { return std::abs(v[d]); },
        [](double a, double b) { return b > a ? b : a; });
    if (most > 0 && std::isfinite(most)) s = std::ldexp(1.0, std::ilogb(most));
  }
  constexpr int W = kLanes<double>;
  Vector<double> x_sums[2] = {}, v_sums[2] = {};
  int64_t d = 0;
  for (; d + 2 * W <= D; d += 2 * W)
    for (int i = 0; i < 2; ++i) {
      const Vector<double> v_d = load_double(v + d + i * W), w = v_d / s;
      x_sums[i] += load_double(x + d + i * W) * w;
      v_sums[i] += v_d * w;
    }
  double xv = sum_lanes<double>(x_sums[0] + x_sums[1]),
         vv = sum_lanes<double>(v_sums[0] + v_sums[1]);
  for (; d < D; ++d) {
    const double w = double(v[d]) / s;
    xv += double(x[d]) * w;
    vv += double(v[d]) * w;
  }
  return {xv, vv, s};
}

struct XsaDivisor {
  double floor, eps;

  double quotient(RowDots dots) const {
    const double d = std::max(dots.vv, floor / dots.s) + eps / dots.s;
    return d == 0 ? 0 : dots.xv / d;  // a NaN stays
  }
  double kappa(RowDots dots) const { return dots.vv > floor / dots.s ? 1 : 0; }
};

}  // namespace pellucid
