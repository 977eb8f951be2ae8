// The Gaussian error linear unit, y = x Phi(x), and its approximation by tanh:
//   gelu       Phi(x) = (1 + erf(x / sqrt(2))) / 2,  dx = dy (Phi(x) + x phi(x))
//   gelu_tanh  Phi(x) = (1 + tanh(u)) / 2 = s = 1 / (1 + e^(-2u)), u = sqrt(2/pi) (x + 0.044715
//   x^3),
//              dx = dy (s + x s (1 - s) 2 u')
// x, y, dx, dy: n elements. Both are x for large x and -0 for large -x, infinities included.
// Hendrycks and Gimpel, 2016 (arXiv:1606.08415).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(gelu_forward, T* y, const T* x, int64_t n);
KERNEL(gelu_backward, T* dx, const T* dy, const T* x, int64_t n);
KERNEL(gelu_tanh_forward, T* y, const T* x, int64_t n);
KERNEL(gelu_tanh_backward, T* dx, const T* dy, const T* x, int64_t n);

}  // namespace pellucid
