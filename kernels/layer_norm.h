// Layer normalisation of rows: y = h w + b, h = (x - mean) rstd, rstd = 1 / sqrt(var + eps).
// backward: dx = rstd (g - mean(g) - h mean(g h)), g = dy w; dw = sum_n dy h, db = sum_n dy.
// x, y, dx, dy (N, C); w, b, dw, db (C); mean (N, 2); rstd (N);
// partials (row_blocks(N), 2, C), scratch of kernels/rows.h.
// b, dx, dw, db may be null: then there is none, or it is not wanted. Without dw and db, partials
// may be null too. The mean is the sum of two numbers, the second what the first lost by rounding:
// x - mean would lose as much where the mean is large beside the deviations.
// Ba, Kiros and Hinton, 2016 (arXiv:1607.06450).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(layer_norm_forward, T* y, Acc<T>* mean, Acc<T>* rstd, const T* x, const T* w, const T* b,
       int64_t N, int64_t C, double eps);
KERNEL(layer_norm_backward, T* dx, T* dw, T* db, T* partials, const T* dy, const T* x, const T* w,
       const Acc<T>* mean, const Acc<T>* rstd, int64_t N, int64_t C);

}  // namespace pellucid
