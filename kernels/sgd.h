// Stochastic gradient descent with momentum in one pass over memory.
//   g' = scale g + decay w;  m <- momentum m + g';  w <- w - lr m, or w - lr (g' + momentum m) with
//   Nesterov's look ahead
// w, m, g: n elements; m may be null: then momentum counts as 0.
// Sutskever et al., 2013, in the form of PyTorch: lr multiplies m and is no part of it.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(sgd, T* w, T* m, const T* g, int64_t n, double lr, double momentum, bool nesterov,
       double decay, double scale);

}  // namespace pellucid
