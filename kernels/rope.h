// Rotary position embedding: pair i of each of the first `heads` heads of a row turns by the angle
// (position + t) base^(-2i/D); the rest of the row is copied. Linear: its adjoint turns back.
//
//   y_a = x_a cos - x_b sin,  y_b = x_a sin + x_b cos
//
// (a, b) = (2i, 2i + 1) if adjacent, else (i, i + D/2). x, y (B, T, W), W >= heads D, D even; y may
// be x. Su et al., 2021 (arXiv:2104.09864).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(rope, T* y, const T* x, int64_t B, int64_t length, int64_t W, int64_t heads, int64_t D,
       bool adjacent, double base, int64_t position, bool inverse);

}  // namespace pellucid
