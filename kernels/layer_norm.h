// Layer normalisation of rows: y = h w + b, h = (x - mean) rstd, rstd = 1 / sqrt(var + eps).
// backward: dx = rstd (g - mean(g) - h mean(g h)), g = dy w; dw = sum_n dy h, db = sum_n dy.
// x, y, dx, dy (N, C); w, b, dw, db (C); mean, rstd (N); partials (row_blocks(N), 2, C), scratch.
// b, dx, dw, db may be null: then there is none, or it is not wanted. Without dw and db, partials
// may be null too. mean is a double for every T: a float would lose x - mean where the mean is
// large. Ba, Kiros and Hinton, 2016 (arXiv:1607.06450).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(layer_norm_forward, T* y, double* mean, Acc<T>* rstd, const T* x, const T* w, const T* b,
       int64_t N, int64_t C, double eps);
KERNEL(layer_norm_backward, T* dx, T* dw, T* db, T* partials, const T* dy, const T* x, const T* w,
       const double* mean, const Acc<T>* rstd, int64_t N, int64_t C);

}  // namespace pellucid
