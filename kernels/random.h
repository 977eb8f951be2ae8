// Random tensors from the numbers first, first + 1, ... of a Philox stream; y (N).
// uniform: [0, 1), one number an element for float, two for double.
// normal: mean 0, variance 1; pairs of elements from pairs of numbers by Box and Muller, 1958:
// r = sqrt(-2 log u), y = (r cos(2 pi v), r sin(2 pi v)), u in (0, 1], v in [0, 1).
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(uniform, T* y, int64_t N, uint64_t seed, uint64_t stream, uint64_t first);
KERNEL(normal, T* y, int64_t N, uint64_t seed, uint64_t stream, uint64_t first);

}  // namespace pellucid
