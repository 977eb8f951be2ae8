// Rows of a table, and their adjoint. w (V, C), ids (N) in [0, V): the caller has checked them.
//   embedding:         y[n] = w[ids[n]]            y (N, C)
//   scatter_add_rows:  y[v] = sum of x[n], ids[n] = v, over n in order      x (N, C), y (V, C)
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(embedding, T* y, const T* w, const int64_t* ids, int64_t N, int64_t C);  // any dtype
KERNEL(scatter_add_rows, T* y, const T* x, const int64_t* ids, int64_t N, int64_t C, int64_t V);

}  // namespace pellucid
