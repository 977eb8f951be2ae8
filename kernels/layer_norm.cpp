// Speed beside a memcpy that moves the same bytes, in turns with it, medians of 25 pairs, one
// thread of an AVX-512 CPU whose L3 holds (2048, 384) floats. (2048, 384): forward 0.23, backward
// 0.20.
#include "kernels/layer_norm.h"

#include <cmath>

#include "kernels/row_sums.h"

namespace pellucid::cpu {

namespace {

// A row less its mean: x - mean is exact where the two are near each other.
template <class T>
struct Centred {
  const T* x;
  T mean, rest;
  Centred(const T* row, const Acc<T>* two) : x(row), mean(two[0]), rest(two[1]) {}
  T operator()(int64_t c) const { return (x[c] - mean) - rest; }
};

}  // namespace

template <class T>
void layer_norm_forward(T* y, Acc<T>* mean, Acc<T>* rstd, const T* x, const T* w, const T* b,
                        int64_t N, int64_t C, double eps) {
  parallel_for(N, row_grain(C), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* xn = x + n * C;
      T* yn = y + n * C;

      // Correct the rounded mean by the mean of the deviations, then take the variance around both.
      const T rough = T(sum_row<T>(C, [=](int64_t c) { return xn[c]; }) / double(C));
      mean[2 * n] = rough;
      mean[2 * n + 1] = T(sum_row<T>(C, [=](int64_t c) { return xn[c] - rough; }) / double(C));
      const Centred<T> d(xn, mean + 2 * n);
      const double var = sum_row<T>(C, [=](int64_t c) { return d(c) * d(c); }) / double(C);
      rstd[n] = Acc<T>(1 / std::sqrt(var + eps));

      const T r = rstd[n];
      if (b) {
        for (int64_t c = 0; c < C; ++c) yn[c] = d(c) * r * w[c] + b[c];
      } else {
        for (int64_t c = 0; c < C; ++c) yn[c] = d(c) * r * w[c];
      }
    }
  });
}
INSTANTIATE(layer_norm_forward);

template <class T>
void layer_norm_backward(T* dx, T* dw, T* db, T* partials, const T* dy, const T* x, const T* w,
                         const Acc<T>* mean, const Acc<T>* rstd, int64_t N, int64_t C) {
  const auto row_backward = [=](T* dwn, T* dbn, int64_t n) {
    const T* dyn = dy + n * C;
    const Centred<T> d(x + n * C, mean + 2 * n);
    const T r = rstd[n];
    if (dx) {
      T* dxn = dx + n * C;
      const double g = sum_row<T>(C, [=](int64_t c) { return dyn[c] * w[c]; });
      const double gd = sum_row<T>(C, [=](int64_t c) { return dyn[c] * w[c] * d(c); });
      const T mean_g = T(g / double(C)), mean_gh_r = T(gd / double(C)) * r * r;
      for (int64_t c = 0; c < C; ++c) dxn[c] = r * (dyn[c] * w[c] - mean_g - d(c) * mean_gh_r);
    }
    if (dw)
      for (int64_t c = 0; c < C; ++c) dwn[c] += dyn[c] * (d(c) * r);
    if (db)
      for (int64_t c = 0; c < C; ++c) dbn[c] += dyn[c];
  };

  parallel_for(row_blocks(N), row_grain(kBlockRows * C), [=](int64_t begin, int64_t end) {
    for (int64_t block = begin; block < end; ++block) {
      T* sums = partials + block * 2 * C;
      if (dw || db) std::fill(sums, sums + 2 * C, T(0));
      for (int64_t n = block * kBlockRows; n < std::min(N, (block + 1) * kBlockRows); ++n)
        row_backward(sums, sums + C, n);
    }
  });
  if (dw) add_partials(dw, partials, row_blocks(N), C, 2 * C);
  if (db) add_partials(db, partials + C, row_blocks(N), C, 2 * C);
}
INSTANTIATE(layer_norm_backward);

}  // namespace pellucid::cpu
