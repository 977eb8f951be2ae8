// Cross-entropy of rows of logits, fused: loss = mean_n (lse_n - x[n, t_n]) over the rows whose
// target t_n is not ignore_index, lse_n = log sum_v e^(x[n, v]); dx = (softmax(x) - onehot(t)) dy /
// count. x, dx (N, V); targets (N), each in [0, V) or ignore_index: the caller has checked; loss,
// dy (); row_loss, lse (N); count: how many rows are not ignored; with 0, loss and dx are 0. lse
// and row_loss are doubles for every T: a float would lose x - lse where the logits are large.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(cross_entropy_forward, T* loss, double* row_loss, double* lse, const T* x,
       const int64_t* targets, int64_t N, int64_t V, int64_t ignore_index, int64_t count);
KERNEL(cross_entropy_backward, T* dx, const T* dy, const T* x, const int64_t* targets,
       const double* lse, int64_t N, int64_t V, int64_t ignore_index, int64_t count);

}  // namespace pellucid
