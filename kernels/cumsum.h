// Running sums of rows, y_c = x_0 + ... + x_c, added in double: x, y (N, C).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(cumsum, T* y, const T* x, int64_t N, int64_t C);

}  // namespace pellucid
