// The scalars of one row of XSA (kernels/xsa.h), which attention fuses too.
#pragma once
#include <algorithm>
#include <cstdint>

namespace pellucid {

// The two dot products of one row x with v, in double: then c is exactly 1 where x = v, and neither
// overflows nor vanishes where the squares of floats do.
struct RowDots {
  double xv, vv;
};
template <class T>
inline RowDots row_dots(const T* x, const T* v, int64_t D) {
  double xv = 0, vv = 0;
#pragma omp simd reduction(+ : xv, vv)
  for (int64_t d = 0; d < D; ++d) {
    xv += double(x[d]) * double(v[d]);
    vv += double(v[d]) * double(v[d]);
  }
  return {xv, vv};
}

struct XsaDivisor {
  double floor, eps;

  double quotient(RowDots dots) const {
    const double d = std::max(dots.vv, floor) + eps;
    return d == 0 ? 0 : dots.xv / d;  // a NaN stays
  }
  double kappa(double vv) const { return vv > floor ? 1 : 0; }
};

}  // namespace pellucid
