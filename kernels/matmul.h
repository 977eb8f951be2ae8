// Matrix product of tensors: y[..., i, j] = sum_k a[..., i, k] b[..., k, j] + bias[j].
// y (..., M, N), a (..., M, K), b (..., K, N), bias (N) or null. a and b may have any layout and
// have the same leading dimensions: one that broadcasts has stride 0. K = 0 gives y = bias, or 0.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(matmul, T* y, Strided<const T> a, Strided<const T> b, const T* bias);

}  // namespace pellucid
