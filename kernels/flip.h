// y is x with some dimensions in reverse order: those whose bit is set in `mask`.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(flip, Strided<T> y, Strided<const T> x, int64_t mask);

}  // namespace pellucid
