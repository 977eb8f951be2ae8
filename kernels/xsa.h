// Exclusive Self Attention's projection of rows: z = y - g c v with c = y.v / d, d = v.v in
// essence.
//
//   d = max(v.v, floor) + eps, and c = 0 where d = 0
//   dy = dz - g u v,  dv = -g (c dy + u z - 2 (kappa - g) c u v),  dg = -c (dz.v),  u = dz.v / d
//
// kappa = 1 where d depends on v, that is where v.v > floor. floor and eps choose the denominator:
// 0, 0 is exact; 0, eps adds eps; eps^2, 0 is the norm clamp of the paper's code.
// z, y, dz, dy (N, H, D); v, dv (N, Hkv, D): heads [h G, (h + 1) G) of y, G = H / Hkv, share head h
// of v, and its dv is the sum over them. gate g, dgate (H), null for g = 1. dy, dv, dgate may be
// null.
// Zhai, 2026 (arXiv:2603.09078); the backward is derived here.
#pragma once
#include "kernels/kernel.h"

namespace pellucid {

KERNEL(xsa_forward, T* z, const T* y, const T* v, const T* gate, int64_t N, int64_t H, int64_t Hkv,
       int64_t D, double floor, double eps);
KERNEL(xsa_backward, T* dy, T* dv, T* dgate, const T* dz, const T* y, const T* v, const T* gate,
       int64_t N, int64_t H, int64_t Hkv, int64_t D, double floor, double eps);

}  // namespace pellucid
