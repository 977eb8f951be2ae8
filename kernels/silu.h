// The sigmoid linear unit and the gated unit made of it, with s = sigmoid(x) = 1 / (1 + e^-x):
//   silu    y = x s,            dx = dy f,  f = s + x s (1 - s)
//   swiglu  y = gate s up,      dgate = dy up f, dup = dy gate s, s and f at x = gate
// swiglu itself is in elementwise.h. Each array: n elements. silu is x for large x and -0 for large
// -x, infinities included. Elfwing, Uchibe and Doya, 2017 (arXiv:1702.03118); Shazeer, 2020
// (arXiv:2002.05202).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(silu_forward, T* y, const T* x, int64_t n);
KERNEL(silu_backward, T* dx, const T* dy, const T* x, int64_t n);
KERNEL(swiglu_backward, T* dgate, T* dup, const T* dy, const T* gate, const T* up, int64_t n);

}  // namespace pellucid
