// One element for each index, line by line, and the adjoint. A line runs along the last dimension;
// its other coordinates are the same in every argument. The caller has checked the indices.
//   gather:       y[l, k] = x[l, index[l, k]]        y, index (..., K), x (..., V)
//   scatter_add:  y[l, index[l, k]] += src[l, k]     index, src (..., K), y (..., V)
// Equal indices add up in double, in the order of k, and are rounded once.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(gather, Strided<T> y, Strided<const T> x, Strided<const int64_t> index);  // int64, bool too
KERNEL(scatter_add, Strided<T> y, Strided<const int64_t> index, Strided<const T> src);

}  // namespace pellucid
