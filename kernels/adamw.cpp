// Speed beside a memcpy that moves the same bytes, in turns with it, medians of 25 pairs, one
// thread of an AVX-512 CPU whose L3 holds (2048, 384) floats. 10 million elements: adamw 1.4,
// sum_squares 0.9.
#include "kernels/adamw.h"

#include <cmath>

#include "kernels/row_sums.h"

namespace pellucid::cpu {

template <class T>
void adamw(T* w, T* m, T* v, const T* g, int64_t n, double lr, double beta1, double beta2,
           double eps, double decay, double scale, int64_t step) {
  // Work out every factor in double, and only then round it to T: 1 - 0.999 in float is 5e-5 off.
  const T keep = T(1 - lr * decay), gain = T(scale), small = T(eps);
  const T b1 = T(beta1), b2 = T(beta2), a1 = T(1 - beta1), a2 = T(1 - beta2);
  const T rate = T(lr / (1 - std::pow(beta1, double(step))));
  const T root = T(1 / std::sqrt(1 - std::pow(beta2, double(step))));
  parallel_for(n, 8192, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const T gi = g[i] * gain;
      m[i] = b1 * m[i] + a1 * gi;
      v[i] = b2 * v[i] + a2 * (gi * gi);
      w[i] = keep * w[i] - rate * m[i] / (std::sqrt(v[i]) * root + small);
    }
  });
}
INSTANTIATE(adamw);

template <class T>
void sum_squares(double* partials, const T* x, int64_t n, double scale) {
  parallel_for(n, kSquaresBlock, [=](int64_t begin, int64_t end) {
    for (int64_t start = begin; start < end; start += kSquaresBlock) {
      const T* block = x + start;
      partials[start / kSquaresBlock] =
          sum_row<double>(std::min(end - start, kSquaresBlock), [=](int64_t i) {
            const double value = scale * double(block[i]);
            return value * value;
          });
    }
  });
}
INSTANTIATE(sum_squares);

}  // namespace pellucid::cpu
