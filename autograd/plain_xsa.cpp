// Exclusive Self Attention's projection in plain ops, and its gradients in closed form:
//   z = y - g c v,  c = y.v / d;   dy = dz - g u v,  dv = -g (c dz + u y - 2 kappa c u v),
//   dg = -c (dz.v),  u = dz.v / d
// d is the denominator, v.v in essence, and kappa = 1 where d depends on v, else 0. The dots are
// over D; dv is the sum over the heads that share v. All is differentiable again.
// Zhai, 2026 (arXiv:2603.09078); the backward is derived in tutorials/11-xsa.
#include "autograd/ops.h"

namespace pellucid {

// x (..., Hkv G, D) as (..., Hkv, G, D): the heads that share one of v are a dimension.
static Tensor in_groups(const Tensor& x, int64_t Hkv) {
  Shape shape = x.shape();
  const int64_t D = shape[-1], H = shape[-2];
  shape[-2] = Hkv, shape[-1] = H / Hkv;
  shape.push_back(D);
  return reshape(x, shape);
}

static Tensor dot(const Tensor& a, const Tensor& b) { return sum(a * b, -1, true); }

// d of v.v = n; where v = 0 it is 1, so that c = u = 0.
static Tensor denominator(const Tensor& n, const XsaOptions& options) {
  Tensor d = n;
  if (options.denominator == XsaDenominator::kAddEps) d = n + options.eps;
  if (options.denominator == XsaDenominator::kClampNorm) {
    const Tensor floor = full_like(n, {}, options.eps * options.eps);
    d = where(greater(n, floor), n, floor);
  }
  return where(equal(d, full_like(d, {}, 0)), full_like(d, {}, 1), d);
}

// Unlike the kernel, it needs v.v to be a number of the dtype: neither overflown nor vanished.
Tensor plain::xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options) {
  const int64_t Hkv = v.size(-2);
  const Tensor Y = in_groups(y, Hkv), V = in_groups(v, Hkv);  // (..., Hkv, G or 1, D)
  Tensor c = dot(Y, V) / denominator(dot(V, V), options);     // (..., Hkv, G, 1)
  if (gate.defined()) c = c * reshape(gate, {Hkv, gate.size(0) / Hkv, 1});
  return reshape(Y - c * V, y.shape());  // (..., H, D)
}

TensorList plain::xsa_backward(const Tensor& dz, const Tensor& y, const Tensor& v,
                               const Tensor& gate, const XsaOptions& options) {
  const int64_t H = y.size(-2), Hkv = v.size(-2);
  const Tensor Z = in_groups(dz, Hkv), Y = in_groups(y, Hkv), V = in_groups(v, Hkv);
  const Tensor n = dot(V, V), d = denominator(n, options);  // (..., Hkv, 1, 1)
  const Tensor c = dot(Y, V) / d, u = dot(Z, V) / d;        // (..., Hkv, G, 1)
  Tensor kappa = full_like(n, {}, 1);                       // () or (..., Hkv, 1, 1)
  if (options.denominator == XsaDenominator::kClampNorm)
    kappa = astype(greater(n, full_like(n, {}, options.eps * options.eps)), n.dtype());

  Tensor u_dy = u, dv = c * Z + u * Y - 2 * (kappa * c * u) * V;  // (..., Hkv, G, D)
  Tensor dgate;
  if (gate.defined()) {
    const Tensor g = reshape(gate, {Hkv, H / Hkv, 1});  // (Hkv, G, 1)
    u_dy = g * u, dv = g * dv;
    dgate = reshape(sum_to(neg(c * dot(Z, V)), g.shape()), {H});  // (H)
  }
  return {reshape(Z - u_dy * V, y.shape()), reshape(neg(sum(dv, -2)), v.shape()), dgate};
}

}  // namespace pellucid
