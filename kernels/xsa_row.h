// The scalars of one row of XSA (kernels/xsa.h), which attention fuses too.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace pellucid {

// The two dot products of one row x with v, in double, over a power of two s near max |v|: then c
// is exactly 1 where x = v, and no square overflows or vanishes. Squares of floats never do: s = 1.
struct RowDots {
  double xv, vv, s;
  double product() const { return xv * s; }
};
template <class T>
inline RowDots row_dots(const T* x, const T* v, int64_t D) {
  double xv = 0, vv = 0, s = 1;
  if constexpr (sizeof(T) == sizeof(double)) {
    double most = 0;
#pragma omp simd reduction(max : most)
    for (int64_t d = 0; d < D; ++d) most = std::max(most, std::abs(v[d]));
    if (most > 0 && std::isfinite(most)) s = std::ldexp(1.0, std::ilogb(most));
  }
#pragma omp simd reduction(+ : xv, vv)
  for (int64_t d = 0; d < D; ++d) {
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
