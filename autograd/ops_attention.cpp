// Attention, Exclusive Self Attention and rotary positions; above each fused op the same in plain
// ops.
#include <cmath>
#include <limits>

#include "autograd/ops.h"
#include "kernels/attention.h"
#include "kernels/rope.h"
#include "kernels/xsa.h"
#include "tensor/launch.h"

namespace pellucid {
namespace {

// The denominator max(v.v, floor) + eps as the kernels take it.
struct Divisor {
  double floor = 0, eps = 0;
};
Divisor divisor(const XsaOptions& options) {
  switch (options.denominator) {
    case XsaDenominator::kAddEps:
      return {0, options.eps};
    case XsaDenominator::kClampNorm:
      return {options.eps * options.eps, 0};
    default:
      return {};
  }
}

double scale_of(const AttentionOptions& options, int64_t D) {
  return options.scale == 0 ? 1 / std::sqrt(static_cast<double>(D)) : options.scale;
}

void check_xsa(const char* op, const Tensor& gate, int64_t H, const XsaOptions& options) {
  CHECK_ARG(!gate.defined() || gate.shape() == Shape{H}, op, ": gate must have shape (H) = (", H,
            "), one number a query head; got ", gate.shape());
  CHECK_ARG(options.eps >= 0 && std::isfinite(options.eps), op,
            ": eps must be finite and not negative; got ", options.eps);
}

void check_heads(const char* op, int64_t H, int64_t Hkv, int64_t D, const AttentionOptions& options,
                 const Tensor& gate) {
  CHECK_ARG(Hkv >= 1 && H >= 1 && H % Hkv == 0, op, ": H must be a multiple of Hkv; got H = ", H,
            ", Hkv = ", Hkv);
  CHECK_ARG(D >= 1 && D <= 256, op, ": supports head dimensions D from 1 to 256; got D = ", D);
  CHECK_ARG(std::isfinite(options.scale), op, ": scale must be finite; got ", options.scale);
  CHECK_ARG(options.kind == AttentionKind::kXSA || !gate.defined(), op,
            ": gate belongs to XSA; pass Tensor() for SA");
  check_xsa(op, gate, H, options.xsa);
}

// The kernels read heads by strides, but each head's numbers must be adjacent.
Tensor adjacent(const Tensor& x) {
  return x.size(-1) <= 1 || x.stride(x.dim() - 1) == 1 ? x : packed(x);
}

// Heads [first, first + count) of a packed row, as they lie.
Tensor heads(const Tensor& packed_heads, int64_t first, int64_t count, int64_t D) {
  const int64_t B = packed_heads.size(0), length = packed_heads.size(1);
  return alias(packed_heads, {B, length, count, D},
               {packed_heads.stride(0), packed_heads.stride(1), D, 1}, first * D);
}

}  // namespace

// Unlike the kernel, it needs v.v to be a number of the dtype: neither overflown nor vanished.
Tensor plain::xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options) {
  Tensor n = sum(v * v, -1, true);  // (..., H, 1)
  Tensor d = n;
  if (options.denominator == XsaDenominator::kAddEps) d = n + options.eps;
  if (options.denominator == XsaDenominator::kClampNorm) {
    Tensor floor = full_like(n, {}, options.eps * options.eps);
    d = where(greater(n, floor), n, floor);
  }
  d = where(equal(d, full_like(d, {}, 0)), full_like(d, {}, 1), d);  // v = 0: c = 0
  Tensor c = sum(y * v, -1, true) / d;                               // (..., H, 1)
  if (gate.defined()) c = c * reshape(gate, {gate.size(0), 1});      // (..., H, 1)
  return y - c * v;                                                  // (..., H, D)
}

Tensor xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options) {
  CHECK_ARG(y.dim() >= 2 && y.shape() == v.shape(),
            "xsa: y and v must have one shape (..., H, D); got y ", y.shape(), ", v ", v.shape());
  const int64_t H = y.size(-2), D = y.size(-1);
  check_xsa("xsa", gate, H, options);
  const int64_t N = y.numel() == 0 ? 0 : y.numel() / (H * D);
  const auto [floor, eps] = divisor(options);
  Tensor z = empty_like(y);  // (..., H, D)
  LAUNCH(y, xsa_forward, z, y, v, maybe(gate), N, H, D, floor, eps);

  // backward: u = dz.v / d, dy = dz - g u v, dv = -g (c dz + u y - 2 kappa c u v), dg = -c dz.v.
  return record("xsa", z, {y, v, gate},
                [y = SavedTensor(y), v = SavedTensor(v), gate = SavedTensor(gate), options, N, H, D,
                 floor = floor, eps = eps](const Tensor& dz) {
                  if (grad_enabled()) return vjp(plain::xsa, dz, y(), v(), gate(), options);
                  Tensor dy = needs_input_grad(0) ? empty_like(dz) : Tensor();
                  Tensor dv = needs_input_grad(1) ? empty_like(dz) : Tensor();
                  Tensor dgate = needs_input_grad(2) ? full_like(dz, {H}, 0) : Tensor();
                  LAUNCH(dz, xsa_backward, maybe(dy), maybe(dv), maybe(dgate), dz, y(), v(),
                         maybe(gate()), N, H, D, floor, eps);
                  return TensorList{dy, dv, dgate};
                });
}

Tensor plain::attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                        const AttentionOptions& options) {
  const int64_t B = qkv.size(0), length = qkv.size(1), D = qkv.size(2) / (H + 2 * Hkv);
  if (qkv.numel() == 0) {
    Tensor y = reshape(slice(qkv, 2, 0, H * D), {B, length, H, D});
    if (gate.defined()) y = y * reshape(gate, {H, 1});  // its gradient is 0, not undefined
    return reshape(y, {B, length, H * D});
  }
  // Take the heads apart; the query heads of a group share a key head by broadcasting.
  const auto part = [&](int64_t first, int64_t count) {
    Tensor x = slice(qkv, 2, first * D, (first + count) * D);  // (B, T, count D)
    x = reshape(x, {B, length, Hkv, count / Hkv, D});          // (B, T, Hkv, G, D)
    return permute(x, {0, 2, 3, 1, 4});                        // (B, Hkv, G, T, D)
  };
  Tensor q = part(0, H), k = part(H, Hkv), v = part(H + Hkv, Hkv);

  Tensor scores = matmul(q, transpose(k, -1, -2)) * scale_of(options, D);  // (B, Hkv, G, T, T)
  if (options.causal) {
    std::vector<double> lower(length * length);
    for (int64_t i = 0; i < length; ++i) std::fill_n(lower.begin() + i * length, i + 1, 1.0);
    Tensor visible = from_vector(lower, {length, length}, kBool);
    scores =
        where(visible, scores, full_like(scores, {}, -std::numeric_limits<double>::infinity()));
  }
  Tensor y = matmul(pellucid::softmax(scores), v);  // (B, Hkv, G, T, D)

  const auto by_token = [&](const Tensor& x) {
    return reshape(permute(x, {0, 3, 1, 2, 4}), {B, length, H, D});  // (B, T, H, D)
  };
  y = by_token(y);
  if (options.kind == AttentionKind::kXSA)
    y = plain::xsa(y, by_token(expand(v, {B, Hkv, H / Hkv, length, D})), gate, options.xsa);
  return reshape(y, {B, length, H * D});  // (B, T, H D)
}

Tensor attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                 const AttentionOptions& options) {
  CHECK_ARG(qkv.dim() == 3, "attention: qkv must have shape (B, T, (H + 2 Hkv) D); got ",
            qkv.shape());
  const int64_t B = qkv.size(0), length = qkv.size(1), W = qkv.size(2);
  CHECK_ARG(H >= 1 && Hkv >= 1 && H <= W && Hkv <= (W - H) / 2 && W % (H + 2 * Hkv) == 0,
            "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv ", qkv.shape(),
            ", H = ", H, ", Hkv = ", Hkv);
  const int64_t D = W / (H + 2 * Hkv);
  check_heads("attention", H, Hkv, D, options, gate);
  const bool is_xsa = options.kind == AttentionKind::kXSA;
  const auto [floor, eps] = divisor(options.xsa);
  const double scale = scale_of(options, D);

  Tensor z = empty_like(qkv, {B, length, H * D});
  Tensor lse = empty_like(qkv, {B, H, length}), c = is_xsa ? empty_like(lse) : Tensor();
  const Tensor x = adjacent(qkv);
  LAUNCH(x, attention_forward, z, lse, maybe(c), heads(x, 0, H, D), heads(x, H, Hkv, D),
         heads(x, H + Hkv, Hkv, D), maybe(gate), options.causal, scale, floor, eps);

  // backward: kernels/attention_backward.cpp has the formulas. It saves qkv, z, lse and c.
  return record("attention", z, {qkv, gate},
                [qkv = SavedTensor(qkv), gate = SavedTensor(gate), z = SavedTensor(z), lse, c, H,
                 Hkv, D, scale, floor = floor, eps = eps, options](const Tensor& dz) {
                  if (grad_enabled())
                    return vjp(plain::attention, dz, qkv(), gate(), H, Hkv, options);
                  const Tensor from = adjacent(qkv()), dqkv = empty_like(from);
                  Tensor dgate = needs_input_grad(1) ? full_like(dz, {H}, 0) : Tensor();
                  LAUNCH(dz, attention_backward, heads(dqkv, 0, H, D), heads(dqkv, H, Hkv, D),
                         heads(dqkv, H + Hkv, Hkv, D), maybe(dgate), dz, z(), lse, maybe(c),
                         heads(from, 0, H, D), heads(from, H, Hkv, D), heads(from, H + Hkv, Hkv, D),
                         maybe(gate()), options.causal, scale, floor, eps);
                  return TensorList{dqkv, dgate};
                });
}

Tensor attention_decode(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                        const AttentionOptions& options) {
  CHECK_ARG(q.dim() == 4 && k.dim() == 4 && k.shape() == v.shape() && q.size(0) == k.size(0) &&
                q.size(3) == k.size(3),
            "attention_decode: wanted q (B, Tq, H, D) and k, v (B, Tk, Hkv, D); got q ", q.shape(),
            ", k ", k.shape(), ", v ", v.shape());
  CHECK_ARG(q.size(1) <= k.size(1),
            "attention_decode: every query needs its own key and value, Tq <= Tk; got Tq = ",
            q.size(1), ", Tk = ", k.size(1));
  check_heads("attention_decode", q.size(2), k.size(2), q.size(3), options, gate);
  CHECK_ARG(!grad_enabled() || !any_requires_grad({q, k, v, gate}),
            "attention_decode: has no gradient; use NoGradGuard, or attention() for training");
  const auto [floor, eps] = divisor(options.xsa);
  Tensor z = empty_like(q);  // (B, Tq, H, D)
  Tensor c = options.kind == AttentionKind::kXSA ? empty_like(q, {q.size(0), q.size(2), q.size(1)})
                                                 : Tensor();
  LAUNCH(q, attention_forward, z, maybe(Tensor()), maybe(c), adjacent(q), adjacent(k), adjacent(v),
         maybe(gate), options.causal, scale_of(options, q.size(3)), floor, eps);
  return z;
}

Tensor rope(const Tensor& x, int64_t heads, int64_t D, const RopeOptions& options) {
  CHECK_ARG(x.dim() == 3 && D >= 2 && D % 2 == 0 && D <= x.size(2) && heads >= 0 &&
                heads <= x.size(2) / D,
            "rope: wanted x (B, T, W) with W >= heads D and D even, at least 2; got x ", x.shape(),
            ", heads = ", heads, ", D = ", D);
  CHECK_ARG(options.base > 0 && std::isfinite(options.base),
            "rope: base must be positive and finite; got ", options.base);
  CHECK_ARG(options.position >= 0 && options.position <= (int64_t{1} << 53) - x.size(1),
            "rope: position must be from 0 to 2^53 - T; got ", options.position,
            ", T = ", x.size(1));
  Tensor y = empty_like(x);
  LAUNCH(x, rope, y, x, x.size(0), x.size(1), x.size(2), heads, D,
         options.layout == RopeLayout::kAdjacent, options.base, options.position, options.inverse);

  // backward: a rotation's adjoint turns back. Linear, so one lambda serves every order.
  return record("rope", y, {x}, [heads, D, options](const Tensor& dy) {
    RopeOptions back = options;
    back.inverse = !back.inverse;
    return TensorList{pellucid::rope(dy, heads, D, back)};
  });
}

}  // namespace pellucid
