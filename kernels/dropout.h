// Dropout: y[i] = 0 if number first + i of the stream is below 2^32 p, else x[i] / (1 - p).
// x, y (N), 0 <= p <= 1. The gradient is the same function of dy.
// Srivastava, Hinton, Krizhevsky, Sutskever and Salakhutdinov, JMLR 2014.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(dropout, T* y, const T* x, int64_t N, double p, uint64_t seed, uint64_t stream,
       uint64_t first);

}  // namespace pellucid
