// Attention, Exclusive Self Attention and rotary positions; above each fused op the same in plain
// ops (xsa's is in plain_xsa.cpp).
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
                 const Tensor& gate, const Tensor& sink) {
  CHECK_ARG(Hkv >= 1 && H >= 1 && H % Hkv == 0, op, ": H must be a multiple of Hkv; got H = ", H,
            ", Hkv = ", Hkv);
  CHECK_ARG(D >= 1 && D <= 256, op, ": supports head dimensions D from 1 to 256; got D = ", D);
  CHECK_ARG(std::isfinite(options.scale), op, ": scale must be finite; got ", options.scale);
  CHECK_ARG(options.kind == AttentionKind::kXSA || !gate.defined(), op,
            ": gate belongs to XSA; pass Tensor() for SA");
  CHECK_ARG(!sink.defined() || sink.shape() == Shape{H}, op, ": sink must have shape (H) = (", H,
            "), one logit a query head; got ", sink.shape());
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

// What is added to the scores: the mask if there is one, and -inf in the future; (1), (T, T) or
// (B, Hkv, G, T, T).
Tensor score_bias(const Tensor& mask, bool causal, const Shape& scores, const Tensor& low) {
  const int64_t B = scores[0], H = scores[1] * scores[2], length = scores[3];
  Tensor bias = zeros_like(low);
  if (mask.defined()) bias = reshape(expand(mask, {B, H, length, length}), scores);
  if (!causal) return bias;
  const Tensor future = triu(expand(low, {length, length}), 1);  // 0, and -inf above the diagonal
  return where(equal(future, low), low, bias);
}

// The softmax of each row, in which a sink (..., 1) is one more score, whose weight is dropped.
Tensor weights(const Tensor& scores, const Tensor& sink) {
  if (!sink.defined()) return pellucid::softmax(scores);
  Shape column = scores.shape();
  column[-1] = 1;
  const Tensor all = cat({scores, expand(sink, column)}, -1);  // (..., T, T + 1)
  return slice(pellucid::softmax(all), -1, 0, scores.size(-1));
}

}  // namespace

Tensor xsa(const Tensor& y, const Tensor& v, const Tensor& gate, const XsaOptions& options) {
  Shape rows = y.shape();
  if (y.dim() >= 2 && v.dim() == y.dim()) rows[-2] = v.size(-2);
  CHECK_ARG(y.dim() >= 2 && v.shape() == rows && v.size(-2) >= 1 && y.size(-2) % v.size(-2) == 0,
            "xsa: wanted y (..., H, D) and v (..., Hkv, D), H a multiple of Hkv; got y ", y.shape(),
            ", v ", v.shape());
  const int64_t H = y.size(-2), Hkv = v.size(-2), D = y.size(-1);
  check_xsa("xsa", gate, H, options);
  const int64_t N = y.numel() == 0 ? 0 : y.numel() / (H * D);
  const auto [floor, eps] = divisor(options);
  Tensor z = empty_like(y);  // (..., H, D)
  LAUNCH(y, xsa_forward, z, y, v, maybe(gate), N, H, Hkv, D, floor, eps);

  // backward: u = dz.v / d, dy = dz - g u v, dv = -g (c dz + u y - 2 kappa c u v), dg = -c dz.v.
  return record("xsa", z, {y, v, gate},
                [y = SavedTensor(y), v = SavedTensor(v), gate = SavedTensor(gate), options, N, H,
                 Hkv, D, floor = floor, eps = eps](const Tensor& dz) {
                  if (grad_enabled()) return plain::xsa_backward(dz, y(), v(), gate(), options);
                  Tensor dy = needs_input_grad(0) ? empty_like(dz) : Tensor();
                  Tensor dv = needs_input_grad(1) ? empty_like(v()) : Tensor();
                  Tensor dgate = needs_input_grad(2) ? full_like(dz, {H}, 0) : Tensor();
                  LAUNCH(dz, xsa_backward, maybe(dy), maybe(dv), maybe(dgate), dz, y(), v(),
                         maybe(gate()), N, H, Hkv, D, floor, eps);
                  return TensorList{dy, dv, dgate};
                });
}

Tensor plain::attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                        const AttentionOptions& options, const Tensor& sink, const Tensor& mask) {
  const int64_t B = qkv.size(0), length = qkv.size(1), G = H / Hkv, D = qkv.size(2) / (H + 2 * Hkv);
  CHECK_ARG(!mask.defined() || reduces_to({B, H, length, length}, mask.shape()),
            "attention: mask must broadcast to (B, H, T, T) = ", Shape{B, H, length, length},
            "; got ", mask.shape());
  if (qkv.numel() == 0) {
    Tensor y = slice(qkv, 2, 0, H * D);  // (B, T, H D)
    for (const Tensor& x : {gate, sink, mask})
      if (x.defined()) y = y * sum(x);  // its gradient is 0, not undefined
    return y;
  }

  // Take the heads apart; the query heads of a group share a key head by broadcasting.
  const auto part = [&](int64_t first, int64_t count) {
    Tensor x = slice(qkv, 2, first * D, (first + count) * D);  // (B, T, count D)
    x = reshape(x, {B, length, Hkv, count / Hkv, D});          // (B, T, Hkv, G, D)
    return permute(x, {0, 2, 3, 1, 4});                        // (B, Hkv, G, T, D)
  };
  Tensor q = part(0, H), k = part(H, Hkv), v = part(H + Hkv, Hkv);

  const Tensor zero = full_like(qkv, {}, 0);
  const Tensor low = full_like(qkv, {}, -std::numeric_limits<double>::infinity());
  const Shape shape{B, Hkv, G, length, length};
  const Tensor bias = expand(score_bias(mask, options.causal, shape, low), shape);
  const Tensor hidden = equal(bias, low),
               blind = equal(amax(bias.detach(), -1, true), low);  // (..., T, 1)
  Tensor own = expand(v, {B, Hkv, G, length, D});                  // XSA's v_i

  // Under a mask each query has its own keys and values, 0 where they are hidden: 0 * NaN is NaN.
  if (mask.defined()) {
    q = unsqueeze(q, 4);                                     // (B, Hkv, G, T, 1, D)
    k = where(unsqueeze(hidden, 5), zero, unsqueeze(k, 3));  // (B, Hkv, G, T, T, D)
    v = where(unsqueeze(hidden, 5), zero, unsqueeze(v, 3));
    own = slice(reshape(v, {B, Hkv, G, length * length, D}), 3, 0, length * length, length + 1);
  }
  const Tensor product = matmul(q, transpose(k, -1, -2));  // (B, Hkv, G, T, T) or (..., T, 1, T)
  Tensor scores = reshape(product, shape) * scale_of(options, D) + bias;
  scores = where(hidden, where(blind, zero, low), scores);
  Tensor p = weights(scores, sink.defined() ? reshape(sink, {Hkv, G, 1, 1}) : sink);
  p = where(hidden, zero, p);
  Tensor y = reshape(matmul(reshape(p, product.shape()), v), own.shape());  // (B, Hkv, G, T, D)

  const auto by_token = [&](const Tensor& x) {
    return reshape(permute(x, {0, 3, 1, 2, 4}), {B, length, H, D});  // (B, T, H, D)
  };
  y = by_token(y);
  if (options.kind == AttentionKind::kXSA) y = plain::xsa(y, by_token(own), gate, options.xsa);
  return reshape(y, {B, length, H * D});  // (B, T, H D)
}

Tensor attention(const Tensor& qkv, const Tensor& gate, int64_t H, int64_t Hkv,
                 const AttentionOptions& options, const Tensor& sink) {
  CHECK_ARG(qkv.dim() == 3, "attention: qkv must have shape (B, T, (H + 2 Hkv) D); got ",
            qkv.shape());
  const int64_t B = qkv.size(0), length = qkv.size(1), W = qkv.size(2);
  CHECK_ARG(H >= 1 && Hkv >= 1 && H <= W && Hkv <= (W - H) / 2 && W % (H + 2 * Hkv) == 0,
            "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv ", qkv.shape(),
            ", H = ", H, ", Hkv = ", Hkv);
  const int64_t D = W / (H + 2 * Hkv);
  check_heads("attention", H, Hkv, D, options, gate, sink);
  const bool is_xsa = options.kind == AttentionKind::kXSA;
  const auto [floor, eps] = divisor(options.xsa);
  const double scale = scale_of(options, D);

  Tensor z = empty_like(qkv, {B, length, H * D});
  Tensor lse = empty_like(qkv, {B, H, length}), c = is_xsa ? empty_like(lse) : Tensor();
  const Tensor x = adjacent(qkv);
  LAUNCH(x, attention_forward, z, lse, maybe(c), heads(x, 0, H, D), heads(x, H, Hkv, D),
         heads(x, H + Hkv, Hkv, D), maybe(gate), maybe(sink), options.causal, scale, floor, eps);

  // backward: kernels/attention_backward.cpp has the formulas. It saves qkv, z, lse and c.
  return record(
      "attention", z, {qkv, gate, sink},
      [qkv = SavedTensor(qkv), gate = SavedTensor(gate), sink = SavedTensor(sink),
       z = SavedTensor(z), lse, c, H, Hkv, D, scale, floor = floor, eps = eps,
       options](const Tensor& dz) {
        if (grad_enabled()) {
          const auto unmasked = [](const auto&... args) { return plain::attention(args...); };
          return vjp(unmasked, dz, qkv(), gate(), H, Hkv, options, sink());
        }
        const Tensor from = adjacent(qkv()), dqkv = empty_like(from);
        Tensor dgate = needs_input_grad(1) ? full_like(dz, {H}, 0) : Tensor();
        Tensor dsink = needs_input_grad(2) ? full_like(dz, {H}, 0) : Tensor();
        LAUNCH(dz, attention_backward, heads(dqkv, 0, H, D), heads(dqkv, H, Hkv, D),
               heads(dqkv, H + Hkv, Hkv, D), maybe(dgate), maybe(dsink), dz, z(), lse, maybe(c),
               heads(from, 0, H, D), heads(from, H, Hkv, D), heads(from, H + Hkv, Hkv, D),
               maybe(gate()), maybe(sink()), options.causal, scale, floor, eps);
        return TensorList{dqkv, dgate, dsink};
      });
}

Tensor attention_decode(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& gate,
                        const AttentionOptions& options, const Tensor& sink) {
  CHECK_ARG(q.dim() == 4 && k.dim() == 4 && k.shape() == v.shape() && q.size(0) == k.size(0) &&
                q.size(3) == k.size(3),
            "attention_decode: wanted q (B, Tq, H, D) and k, v (B, Tk, Hkv, D); got q ", q.shape(),
            ", k ", k.shape(), ", v ", v.shape());
  CHECK_ARG(q.size(1) <= k.size(1),
            "attention_decode: every query needs its own key and value, Tq <= Tk; got Tq = ",
            q.size(1), ", Tk = ", k.size(1));
  check_heads("attention_decode", q.size(2), k.size(2), q.size(3), options, gate, sink);
  CHECK_ARG(!grad_enabled() || !any_requires_grad({q, k, v, gate, sink}),
            "attention_decode: has no gradient; use NoGradGuard, or attention() for training");
  const auto [floor, eps] = divisor(options.xsa);
  Tensor z = empty_like(q);  // (B, Tq, H, D)
  Tensor c = options.kind == AttentionKind::kXSA ? empty_like(q, {q.size(0), q.size(2), q.size(1)})
                                                 : Tensor();
  LAUNCH(q, attention_forward, z, maybe(Tensor()), maybe(c), adjacent(q), adjacent(k), adjacent(v),
         maybe(gate), maybe(sink), options.causal, scale_of(options, q.size(3)), floor, eps);
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
