// Cross-entropy of rows of logits, fused, over the rows whose target t_n is not ignore_index:
//   loss = mean_n (lse_n - x[n, t_n]),  lse_n = log sum_v e^(x[n, v])
//   dx = (softmax(x) - onehot(t)) dy / count, 0 in the other rows
// x, dx (N, V); targets (N), each in [0, V) or ignore_index: the caller has checked; loss, dy ();
// row_loss (N), scratch in double; lse (N, 2); count: the number of rows that are not ignored; with
// 0 of them loss and dx are 0.
// lse is the sum of two numbers, m = max_v x[n, v] and log sum_v e^(x[n, v] - m): x - lse would
// lose digits by their rounded sum where the logits are large.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(cross_entropy_forward, T* loss, double* row_loss, Acc<T>* lse, const T* x,
       const int64_t* targets, int64_t N, int64_t V, int64_t ignore_index, int64_t count);
KERNEL(cross_entropy_backward, T* dx, const T* dy, const T* x, const int64_t* targets,
       const Acc<T>* lse, int64_t N, int64_t V, int64_t ignore_index, int64_t count);

}  // namespace pellucid
