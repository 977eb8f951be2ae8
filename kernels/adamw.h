// AdamW in one pass over memory, and the sum of squares for the norm of all gradients.
//   g' = scale g;  m <- beta1 m + (1 - beta1) g';  v <- beta2 v + (1 - beta2) g'^2
//   w <- w (1 - lr decay) - lr / (1 - beta1^t) m / (sqrt(v) / sqrt(1 - beta2^t) + eps),  t = step
// w, m, v, g: n elements; step counts from 1.
// sum_squares: partials[b] = sum of (scale x)^2 over the elements of block b of kSquaresBlock, in
// double; partials (ceil(n / kSquaresBlock)).
// Loshchilov and Hutter, 2019 (arXiv:1711.05101).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

constexpr int64_t kSquaresBlock = 16384;

KERNEL(adamw, T* w, T* m, T* v, const T* g, int64_t n, double lr, double beta1, double beta2,
       double eps, double decay, double scale, int64_t step);
KERNEL(sum_squares, double* partials, const T* x, int64_t n, double scale);

}  // namespace pellucid
