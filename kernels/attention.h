// Attention without the (T, T) matrix: z = softmax(scale q k^T + mask) v, head by head, then, where
// c is wanted, Exclusive Self Attention's projection of each row (kernels/xsa.h).
//
// q (B, Tq, H, D), k, v (B, Tk, Hkv, D), read where they lie: any strides of B, T and H, the last
// is
// 1. Query head h reads key head h / (H / Hkv). Query i is at position p = Tk - Tq + i; if causal
// it sees the keys j <= p, else all. A row that sees no key is 0, with zero gradients; a masked key
// or value has no influence, not even if it is NaN. z (B, Tq, H, D). lse, c (B, H, Tq): the
// logarithm of the softmax's sum, and XSA's quotient; null where not wanted. gate (H), null for 1.
// XSA's own value of a query is v at its position p.
//
// sink (H), or null: a learned logit that takes a share of every row's weights and gives nothing
// for it, p_j = exp(s_j) / (exp(sink) + sum_j exp(s_j)), as one more key whose value is 0. It is
// not multiplied by scale; lse counts it. -inf is no sink, to the last bit; +inf or NaN makes a row
// that sees a key NaN.
//
// Backward takes what forward gave, and dz; c null means no XSA. dq, dk, dv have the shapes of q,
// k, v and any strides, the last 1: parts of one packed gradient. dgate and dsink may be null.
//
// Speed of forward and backward together, float32, causal, as a share of the FMA peak that
// measure_fma_peak() gives, counting 7 products of T (T + 1) / 2 pairs and nothing beyond the
// diagonal, 16 lanes: T 128, D 32: 0.44; T 256, D 64: 0.50; T 1024: 0.65. XSA takes 1.07, 1.02 and
// 1.01 times as long (tests/bench/attention_bench.cpp; CPU time of one thread, 260 GFLOP/s).
//
// Dao et al., 2022 and 2023 (arXiv:2205.14135, 2307.08691); sinks: Xiao et al., 2023
// (arXiv:2309.17453); the part of XSA is derived here.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(attention_forward, T* z, Acc<T>* lse, Acc<T>* c, Strided<const T> q, Strided<const T> k,
       Strided<const T> v, const T* gate, const T* sink, bool causal, double scale, double floor,
       double eps);
KERNEL(attention_backward, Strided<T> dq, Strided<T> dk, Strided<T> dv, T* dgate, T* dsink,
       const T* dz, const T* z, const Acc<T>* lse, const Acc<T>* c, Strided<const T> q,
       Strided<const T> k, Strided<const T> v, const T* gate, const T* sink, bool causal,
       double scale, double floor, double eps);

}  // namespace pellucid
