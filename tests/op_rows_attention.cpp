// The rows of the attention ops (tests/op_table.h). The reference of a fused op is plain::NAME; the
// bounds are those of tests/kernels/attention_reference.h, and XSA's own below.
#include "kernels/attention_reference.h"
#include "op_table.h"

namespace pellucid {
namespace {

// Away from v = 0, where XSA has a pole.
double away_from_zero(double x) { return x < 0 ? x - 0.5 : x + 0.5; }
Input values(const Shape& shape) { return in(shape, -1, 1, away_from_zero); }
Tensor f32(const Shape& shape) { return full(shape, 1); }

// Bounds of attention, from three loops in float64: the numbers of qkv taken apart and its
// gradient's bounds put together again.
struct Heads {
  int64_t H, Hkv;
};
Gauge attention_gauge(const Heads& heads, const AttentionOptions& options) {
  return [heads, options](const Call& call) {
    const auto [H, Hkv] = heads;
    const Tensor& qkv = call.x[0];
    const int64_t B = qkv.size(0), length = qkv.size(1), W = qkv.size(2), D = W / (H + 2 * Hkv);
    reference::Case s{B,   length, length,         H,
                      Hkv, D,      options.causal, options.kind == AttentionKind::kXSA};
    if (options.xsa.denominator == XsaDenominator::kAddEps) s.eps = options.xsa.eps;
    if (options.xsa.denominator == XsaDenominator::kClampNorm)
      s.floor = options.xsa.eps * options.xsa.eps;
    reference::Attention r(s, 0);
    if (call.dy.defined()) r.dz = call.dy.to_vector();
    r.gate = call.x.size() > 1 ? call.x[1].to_vector() : reference::Numbers(H, 1.0);
    const std::vector<double> x = qkv.to_vector();
    const auto copy = [&](std::vector<double>& part, int64_t first, int64_t width) {
      for (int64_t i = 0; i < B * length * width; ++i)
        part[i] = x[i / width * W + first + i % width];
    };
    copy(r.q, 0, H * D), copy(r.k, H * D, Hkv * D), copy(r.v, (H + Hkv) * D, Hkv * D);
    r.run(options.scale == 0 ? 1 / std::sqrt(double(D)) : options.scale);
    if (!call.dy.defined()) return TensorList{from_vector(r.z.bound, call.y.shape(), kFloat64)};

    std::vector<double> bound(x.size());
    const auto put = [&](const std::vector<double>& part, int64_t first, int64_t width) {
      for (int64_t i = 0; i < B * length * width; ++i)
        bound[i / width * W + first + i % width] = part[i];
    };
    put(r.dq.bound, 0, H * D), put(r.dk.bound, H * D, Hkv * D);
    put(r.dv.bound, (H + Hkv) * D, Hkv * D);
    TensorList G{from_vector(bound, qkv.shape(), kFloat64)};
    if (call.x.size() > 1) G.push_back(from_vector(r.dgate.bound, {H}, kFloat64));
    return G;
  };
}

OpRow attention_row(const char* name, const Heads& heads, const AttentionOptions& options,
                    bool gated = false) {
  const auto sample = [=, h = heads](int64_t B, int64_t length, int64_t D) {
    Sample s{values({B, length, (h.H + 2 * h.Hkv) * D})};
    if (gated) s.push_back(in({h.H}, -2, 2));
    return s;
  };
  return {
      .name = name,
      .op = [=, h = heads](
                L x) { return attention(x[0], gated ? x[1] : Tensor(), h.H, h.Hkv, options); },
      .samples = {sample(1, 5, 2), sample(2, 3, 3), sample(1, 1, 1), sample(2, 0, 2)},
      .y = attention_gauge(heads, options),
      .dx = attention_gauge(heads, options),
      .reference =
          [=, h = heads](L x) {
            return plain::attention(x[0], gated ? x[1] : Tensor(), h.H, h.Hkv, options);
          },
  };
}

// c errs by that of two dot products of D terms and a division; z, dy and dv by their terms.
Gauge xsa_gauge(double eps) {
  return [eps](const Call& call) {
    const Tensor y = call.x[0].detach(), v = call.x[1].detach();
    const Tensor g = call.x.size() > 2 ? reshape(call.x[2].detach(), {y.size(-2), 1})
                                       : full({1, 1}, 1, kFloat64);
    const Tensor a = magnitude(v), G = magnitude(g), d = sum(v * v, -1, true) + eps;
    const double k = double(y.size(-1)) + 6;
    const Tensor c = sum(magnitude(y) * a, -1, true) / d;
    if (!call.dy.defined()) return TensorList{2.0 * magnitude(call.y) + k * G * c * a};
    const Tensor dz = magnitude(call.dy), u = sum(dz * a, -1, true) / d;
    TensorList bounds{2.0 * dz + k * G * u * a,
                      2.0 * k * G * (c * dz + u * magnitude(y) + 4.0 * c * u * a)};
    if (call.x.size() > 2)
      bounds.push_back(sum_to(reshape(c * u * d, {-1, y.size(-2)}), {y.size(-2)}) * (4 * k));
    return bounds;
  };
}

OpRow xsa_row(const char* name, const XsaOptions& options, bool gated, double eps = 0) {
  OpRow row{
      .name = name,
      .op = [=](L x) { return xsa(x[0], x[1], gated ? x[2] : Tensor(), options); },
      .samples = {{in({2, 3, 4}), values({2, 3, 4})},
                  {in({3, 1}), values({3, 1})},
                  {in({0, 3, 2}), values({0, 3, 2})}},
      .y = xsa_gauge(eps),
      .dx = xsa_gauge(eps),
      .reference = [=](L x) { return plain::xsa(x[0], x[1], gated ? x[2] : Tensor(), options); },
  };
  for (Sample& s : row.samples)
    if (gated) s.push_back(in({3}, -2, 2));
  return row;
}

// Each element of a turned pair is a sum of two products with a rounded cosine and sine.
Gauge rope_gauge(int64_t heads, int64_t D) {
  return [heads, D](const Call& call) {
    const Tensor x = magnitude(call.dy.defined() ? call.dy : call.x[0]);  // (B, T, W)
    const Tensor turned = slice(x, 2, 0, heads * D);
    const Tensor pair = sum(reshape(turned, {x.size(0), x.size(1), heads, D}), -1, true);
    const Tensor each = expand(pair, {x.size(0), x.size(1), heads, D});
    return TensorList{
        unslice(3.0 * reshape(each, {x.size(0), x.size(1), heads * D}), 2, x.size(2), 0)};
  };
}

OpRow rope_row(const char* name, const RopeOptions& options) {
  return {.name = name,
          .op = [=](L x) { return rope(x[0], 2, 4, options); },
          .samples = {{in({2, 3, 11})}, {in({1, 1, 8})}, {in({2, 0, 9})}, {in({0, 2, 9})}},
          .y = rope_gauge(2, 4),
          .dx = rope_gauge(2, 4)};
}

std::vector<ErrorSample> rope_errors() {
  std::vector<ErrorSample> errors;
  const auto add = [&](const Shape& shape, int64_t heads, int64_t D, const std::string& got) {
    errors.push_back(
        {[=] { rope(f32(shape), heads, D); },
         "rope: wanted x (B, T, W) with W >= heads D and D even, at least 2; got x " + got});
  };
  add({2, 3}, 1, 2, "(2, 3), heads = 1, D = 2");
  add({1, 2, 6}, 2, 3, "(1, 2, 6), heads = 2, D = 3");
  add({1, 1, 4}, 1LL << 62, 4, "(1, 1, 4), heads = 4611686018427387904, D = 4");
  add({1, 1, 4}, INT64_MAX, 0, "(1, 1, 4), heads = 9223372036854775807, D = 0");
  add({1, 1, 4}, 0, 1LL << 62, "(1, 1, 4), heads = 0, D = 4611686018427387904");
  add({1, 1, 4}, 0, 1LL << 36, "(1, 1, 4), heads = 0, D = 68719476736");
  const auto refuse = [&](const RopeOptions& options, const std::string& message) {
    errors.push_back({[=] { rope(f32({1, 2, 6}), 1, 4, options); }, "rope: " + message});
  };
  refuse({.base = 0}, "base must be positive and finite; got 0");
  for (int64_t position : {int64_t{-1}, INT64_MAX})
    refuse({.position = position},
           "position must be from 0 to 2^53 - T; got " + std::to_string(position) + ", T = 2");
  return errors;
}

}  // namespace

std::vector<OpRow> rows_attention() {
  const AttentionOptions sa, open{.causal = false, .scale = 0.7};
  const AttentionOptions exact{.kind = AttentionKind::kXSA};
  const AttentionOptions open_xsa{.kind = AttentionKind::kXSA, .causal = false};
  const XsaOptions add{XsaDenominator::kAddEps, 0.5}, above{XsaDenominator::kClampNorm, 1e-3},
      below{XsaDenominator::kClampNorm, 10};
  AttentionOptions added = exact, clamped = exact;
  added.xsa = add, clamped.xsa = below;

  std::vector<OpRow> rows{
      attention_row("attention", {2, 2}, sa),
      attention_row("attention group", {4, 2}, sa),
      attention_row("attention open", {2, 1}, open),
      attention_row("attention xsa", {2, 2}, exact),
      attention_row("attention xsa gate group", {4, 2}, exact, true),
      attention_row("attention xsa open", {3, 1}, open_xsa, true),
      attention_row("attention xsa eps", {2, 1}, added, true),
      attention_row("attention xsa clamp", {1, 1}, clamped, true),
      xsa_row("xsa", {}, false),
      xsa_row("xsa gate", {}, true),
      xsa_row("xsa eps", add, true, 0.5),
      xsa_row("xsa above the clamp", above, true),
      xsa_row("xsa below the clamp", below, true, 100),
      rope_row("rope", {}),
      rope_row("rope adjacent", {.layout = RopeLayout::kAdjacent, .base = 100, .position = 7}),
      rope_row("rope inverse", {.position = 2, .inverse = true}),
  };
  // attention_decode is forward alone: the table gives it the same heads as separate views.
  rows.push_back({.name = "attention_decode",
                  .op =
                      [exact](L x) {
                        return attention_decode(x[0].detach(), x[1].detach(), x[2].detach(),
                                                Tensor(), exact);
                      },
                  .samples = {{in({1, 2, 2, 3}), in({1, 5, 1, 3}), values({1, 5, 1, 3})},
                              {in({2, 1, 2, 2}), in({2, 1, 2, 2}), values({2, 1, 2, 2})},
                              {in({1, 0, 2, 2}), in({1, 3, 2, 2}), values({1, 3, 2, 2})}},
                  .no_gradient = "it is for decoding",
                  .no_float32 = "tests/autograd/attention_test.cpp compares it with attention"});

  rows[0].errors = {{[] {
                       attention(f32({2, 8}), {}, 1, 1, {});
                     },
                     "attention: qkv must have shape (B, T, (H + 2 Hkv) D); got (2, 8)"},
                    {[] {
                       attention(f32({1, 2, 8}), {}, 1, 1, {});
                     },
                     "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv (1, 2, "
                     "8), H = 1, Hkv = "
                     "1"},
                    {[] {
                       attention(f32({1, 2, 8}), {}, 6148914691236517206, 6148914691236517206, {});
                     },
                     "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv (1, 2, "
                     "8), H = 6148914691236517206, Hkv = 6148914691236517206"},
                    {[] {
                       attention(f32({1, 2, 6}), {}, 1, 1, {.scale = INFINITY});
                     },
                     "attention: scale must be finite; got inf"},
                    {[] {
                       attention(f32({1, 2, 7}), {}, 3, 2, {});
                     },
                     "attention: H must be a multiple of Hkv; got H = 3, Hkv = 2"},
                    {[] {
                       attention(f32({1, 2, 3 * 257}), {}, 1, 1, {});
                     },
                     "attention: supports head dimensions D from 1 to 256; got D = 257"},
                    {[] {
                       attention(f32({1, 2, 6}), f32({2}), 1, 1, {.kind = AttentionKind::kXSA});
                     },
                     "attention: gate must have shape (H) = (1), one number a query head; got (2)"},
                    {[] {
                       attention(f32({1, 2, 6}), f32({1}), 1, 1, {});
                     },
                     "attention: gate belongs to XSA; pass Tensor() for SA"}};
  for (OpRow& row : rows) {
    if (row.name == "xsa")
      row.errors = {{[] {
                       xsa(f32({2, 3}), f32({2, 4}));
                     },
                     "xsa: y and v must have one shape (..., H, D); got y (2, 3), v (2, 4)"},
                    {[] { xsa(f32({3}), f32({3})); },
                     "xsa: y and v must have one shape (..., H, D); got y (3), v (3)"},
                    {[] {
                       xsa(f32({2, 3}), f32({2, 3}), f32({3}));
                     },
                     "xsa: gate must have shape (H) = (2), one number a query head; got (3)"},
                    {[] {
                       xsa(f32({2, 3}), f32({2, 3}), {}, {XsaDenominator::kAddEps, -1});
                     },
                     "xsa: eps must be finite and not negative; got -1"},
                    {[] {
                       xsa(f32({2, 3}), f32({2, 3}), {}, {XsaDenominator::kClampNorm, INFINITY});
                     },
                     "xsa: eps must be finite and not negative; got inf"}};
    if (row.name == "rope") row.errors = rope_errors();
    if (row.name == "attention_decode")
      row.errors = {
          {[] {
             attention_decode(f32({1, 3, 2, 4}), f32({1, 2, 2, 4}), f32({1, 2, 2, 4}), {}, {});
           },
           "attention_decode: every query needs its own key and value, Tq <= Tk; got Tq = 3, Tk = "
           "2"},
          {[] {
             attention_decode(f32({1, 1, 2, 4}), f32({1, 2, 2, 4}), f32({1, 3, 2, 4}), {}, {});
           },
           "attention_decode: wanted q (B, Tq, H, D) and k, v (B, Tk, Hkv, D); got q (1, 1, 2, 4), "
           "k (1, 2, 2, 4), v (1, 3, 2, 4)"},
          {[] {
             attention_decode(f32({1, 1, 3, 4}), f32({1, 2, 2, 4}), f32({1, 2, 2, 4}), {}, {});
           },
           "attention_decode: H must be a multiple of Hkv; got H = 3, Hkv = 2"}};
  }
  return rows;
}

}  // namespace pellucid
