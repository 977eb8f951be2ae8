// Your turn: Exclusive Self Attention in plain ops. You write the two functions below, which
// autograd/ops.h declares in namespace plain, and the library's xsa() stands on them.
//
//   ./pellucid grade 11-xsa            points for each check, and the first case that fails
//   ./pellucid grade 11-xsa --watch    the same again each time you save this file
//   ./pellucid grade 11-xsa --hint     a hint for the first check that fails
//
// Tensors come as y (..., H, D) and v (..., Hkv, D), H heads of D numbers. Begin with H = Hkv, an
// undefined gate and the exact denominator: that is most of the points. What you may call: sum,
// neg, reshape, expand, unsqueeze, where, equal, greater, maximum, full_like, zeros_like, astype,
// sum_to and the operators + - * /. What you may not: xsa, attention, vjp, grad, the tape. Helpers
// of your own go into an unnamed namespace:  namespace { ... }
#include "autograd/ops.h"

namespace pellucid {

// 1. z = y - g c v with c = (y.v) / d, the dot products over the last dimension.
//    d is v.v; where v = 0, c is 0 and z = y.
//    Then, for more points: heads [h G, (h + 1) G) of y share head h of v, G = H / Hkv;
//    g is the head's number in gate (H), or 1 where gate is undefined;
//    options.denominator: kAddEps makes d = v.v + eps, kClampNorm makes d = max(v.v, eps^2).
Tensor plain::xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options) {
  throw std::logic_error("plain::xsa is not written yet");
}

// 2. The gradients {dy, dv, dgate} for the gradient dz (..., H, D) of z, in closed form; dgate is
//    Tensor() where gate is undefined.
TensorList plain::xsa_backward(const Tensor& dz, const Tensor& y, const Tensor& v,
                               const Tensor& gate, const XsaOptions& options) {
  throw std::logic_error("plain::xsa_backward is not written yet");
}

}  // namespace pellucid
