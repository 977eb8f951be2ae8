// The largest element of each row, and where it is: x (N, C), y (N). A NaN counts as the largest,
// the first of equals is found. Of no elements amax is -inf; argmax wants C >= 1.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(amax, T* y, const T* x, int64_t N, int64_t C);
KERNEL(argmax, int64_t* y, const T* x, int64_t N, int64_t C);

}  // namespace pellucid
