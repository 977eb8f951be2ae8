// Cross-entropy of rows of logits, fused, over the rows whose target t_n is not ignore_index:
//   loss_n = lse_n - sum_v q[n, v] x[n, v],  lse_n = log sum_v e^(x[n, v])
//   q[n] = (1 - e) onehot(t_n) + e / V, e the smoothing in [0, 1]
//   loss = sum_n loss_n / divisor, dx = (softmax(x) - q) dy / divisor, both 0 for the other rows
// With divisor 0 loss_n and dx[n] are for each row by itself.
// x, dx (N, V); targets (N), each in [0, V) or ignore_index: the caller has checked; loss, dy (),
// or (N) with divisor 0; row_loss (N), scratch in double; lse (N, 2). lse is the sum of two
// numbers, m = max_v x[n, v] and log sum_v e^(x[n, v] - m): x - lse would lose digits by their
// rounded sum where the logits are large.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(cross_entropy_forward, T* loss, double* row_loss, Acc<T>* lse, const T* x,
       const int64_t* targets, int64_t N, int64_t V, int64_t ignore_index, double smoothing,
       double divisor);
KERNEL(cross_entropy_backward, T* dx, const T* dy, const T* x, const int64_t* targets,
       const Acc<T>* lse, int64_t N, int64_t V, int64_t ignore_index, double smoothing,
       double divisor);

}  // namespace pellucid
