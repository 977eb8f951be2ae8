// The rows of the attention ops (tests/op_table.h). The reference of a fused op is plain::NAME,
// that of plain::attention under a mask and of decoding the loops of
// tests/kernels/attention_reference.h, which gives the bounds too; XSA's own are below.
#include <array>
#include <cmath>
#include <sstream>

#include "kernels/attention_reference.h"
#include "op_table.h"

namespace pellucid {
namespace {

// Away from v = 0, where XSA has a pole.
double away_from_zero(double x) { return x < 0 ? x - 0.5 : x + 0.5; }
Input values(const Shape& shape) { return in(shape, -1, 1, away_from_zero); }
Tensor f32(const Shape& shape) { return full(shape, 1); }

// One way to call attention, and which optional tensors follow among the inputs, in this order.
struct Setting {
  int64_t H, Hkv;
  AttentionOptions options = {};
  bool gate = false, sink = false, mask = false;
};
struct Optional {
  Tensor gate, sink, mask;
};

// A mask (..., T, T), or less, of which some is -inf: every fifth element, and all of query 1.
Tensor with_holes(const Tensor& mask) {
  const int64_t T = mask.dim() ? mask.size(-1) : 1, queries = mask.dim() > 1 ? mask.size(-2) : 1;
  std::vector<double> hole;
  for (int64_t i = 0; i < mask.numel(); ++i)
    hole.push_back(i % 5 == 1 || (queries > 1 && i / T % queries == 1));
  return where(from_vector(hole, mask.shape(), kBool), full_like(mask, {}, -INFINITY), mask);
}

Optional optional(const Setting& s, L x, std::size_t next) {
  Optional given;
  if (s.gate) given.gate = x[next++];
  if (s.sink) given.sink = x[next++];
  if (s.mask) given.mask = with_holes(x[next++]);
  return given;
}

// Three loops in float64, with the bounds of their results.
reference::Attention loops(const Setting& s, const Optional& given, int64_t B, int64_t Tq,
                           int64_t Tk, int64_t D) {
  reference::Case c{B, Tq, Tk, s.H, s.Hkv, D, s.options.causal};
  c.xsa = s.options.kind == AttentionKind::kXSA, c.sink = s.sink, c.mask = s.mask;
  const double eps = s.options.xsa.eps;
  if (s.options.xsa.denominator == XsaDenominator::kAddEps) c.eps = eps;
  if (s.options.xsa.denominator == XsaDenominator::kClampNorm) c.floor = eps * eps;
  reference::Attention r(c, 0);
  r.gate = s.gate ? given.gate.to_vector() : reference::Numbers(s.H, 1.0);
  if (s.sink) r.sink = given.sink.to_vector();
  if (s.mask) r.mask = expand(given.mask, {B, s.H, Tq, Tk}).to_vector();
  return r;
}
double scale_of(const Setting& s, int64_t D) {
  return s.options.scale == 0 ? 1 / std::sqrt(double(D)) : s.options.scale;
}

// The same of packed heads; dy undefined means forward alone.
reference::Attention packed_loops(const Setting& s, L x, const Tensor& dy) {
  const int64_t B = x[0].size(0), T = x[0].size(1), W = x[0].size(2), D = W / (s.H + 2 * s.Hkv);
  reference::Attention r = loops(s, optional(s, x, 1), B, T, T, D);
  r.dz = dy.defined() ? dy.to_vector() : reference::Numbers(r.q.size());
  const std::vector<double> qkv = x[0].to_vector();
  const auto copy = [&](std::vector<double>& part, int64_t first, int64_t width) {
    for (int64_t i = 0; i < B * T * width; ++i) part[i] = qkv[i / width * W + first + i % width];
  };
  copy(r.q, 0, s.H * D), copy(r.k, s.H * D, s.Hkv * D), copy(r.v, (s.H + s.Hkv) * D, s.Hkv * D);
  r.run(scale_of(s, D));
  return r;
}

Gauge attention_gauge(const Setting& s) {
  return [s](const Call& call) {
    const Shape& shape = call.x[0].shape();  // (B, T, W)
    const int64_t B = shape[0], T = shape[1], W = shape[2], D = W / (s.H + 2 * s.Hkv);
    const reference::Attention r = packed_loops(s, call.x, call.dy);
    if (!call.dy.defined()) return TensorList{from_vector(r.z.bound, call.y.shape(), kFloat64)};

    std::vector<double> bound(shape.numel());
    const auto put = [&](const std::vector<double>& part, int64_t first, int64_t width) {
      for (int64_t i = 0; i < B * T * width; ++i)
        bound[i / width * W + first + i % width] = part[i];
    };
    put(r.dq.bound, 0, s.H * D), put(r.dk.bound, s.H * D, s.Hkv * D);
    put(r.dv.bound, (s.H + s.Hkv) * D, s.Hkv * D);
    TensorList G{from_vector(bound, shape, kFloat64)};
    if (s.gate) G.push_back(from_vector(r.dgate.bound, {s.H}, kFloat64));
    if (s.sink) G.push_back(from_vector(r.dsink.bound, {s.H}, kFloat64));
    if (s.mask) {  // and the sum over what was broadcast: in double, rounded once
      const Shape all{B, s.H, T, T};
      const Tensor ds = from_vector(r.dmask.value, all, kFloat64);
      G.push_back(sum_to(from_vector(r.dmask.bound, all, kFloat64) + 1.01 * magnitude(ds),
                         call.x.back().shape()));
    }
    return G;
  };
}

// What every form of attention refuses, with the form's own heads and options.
std::vector<ErrorSample> attention_errors(const Setting& s) {
  const int64_t H = s.H, W = H + 2 * s.Hkv;
  const auto call = [s](const Shape& qkv, const Tensor& gate, const Tensor& sink) {
    return [=] { attention(f32(qkv), gate, s.H, s.Hkv, s.options, sink); };
  };
  const std::string h = std::to_string(H), more = std::to_string(H + 1);
  const std::string heads = ", H = " + h + ", Hkv = " + std::to_string(s.Hkv);
  std::vector<ErrorSample> errors{
      {call({2, W}, {}, {}),
       "attention: qkv must have shape (B, T, (H + 2 Hkv) D); got (2, " + std::to_string(W) + ")"},
      {call({1, 2, W + 1}, {}, {}),
       "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv (1, 2, " +
           std::to_string(W + 1) + ")" + heads},
      {call({1, 2, W}, {}, f32({H + 1})), "attention: sink must have shape (H) = (" + h +
                                              "), one logit a query head; got (" + more + ")"}};
  if (s.options.kind == AttentionKind::kSA)
    errors.push_back(
        {call({1, 2, W}, f32({H}), {}), "attention: gate belongs to XSA; pass Tensor() for SA"});
  else
    errors.push_back(
        {call({1, 2, W}, f32({H + 1}), {}), "attention: gate must have shape (H) = (" + h +
                                                "), one number a query head; got (" + more + ")"});
  return errors;
}

std::vector<Input> optional_inputs(const Setting& s) {
  std::vector<Input> inputs;
  if (s.gate) inputs.push_back(in({s.H}, -2, 2));
  if (s.sink) inputs.push_back(in({s.H}, -2, 2));
  return inputs;
}

OpRow attention_row(const char* name, const Setting& s) {
  OpRow row{.name = name,
            .op =
                [s](L x) {
                  const Optional given = optional(s, x, 1);
                  return attention(x[0], given.gate, s.H, s.Hkv, s.options, given.sink);
                },
            .y = attention_gauge(s),
            .dx = attention_gauge(s),
            .reference =
                [s](L x) {
                  const Optional given = optional(s, x, 1);
                  return plain::attention(x[0], given.gate, s.H, s.Hkv, s.options, given.sink);
                },
            .errors = attention_errors(s)};
  using Size = std::array<int64_t, 3>;  // B, T, D
  for (const auto& [B, T, D] : {Size{1, 5, 2}, Size{2, 3, 3}, Size{1, 1, 1}, Size{2, 0, 2},
                                Size{0, 3, 2}, Size{1, 2, 1}, Size{1, 17, 1}, Size{2, 31, 3}}) {
    row.samples.push_back({values({B, T, (s.H + 2 * s.Hkv) * D})});
    for (const Input& input : optional_inputs(s)) row.samples.back().push_back(input);
  }
  return row;
}

// Attention in plain ops, which takes a mask. The reference is the three loops.
OpRow mask_row(const char* name, const Setting& s) {
  const auto op = [s](L x) {
    const Optional given = optional(s, x, 1);
    return plain::attention(x[0], given.gate, s.H, s.Hkv, s.options, given.sink, given.mask);
  };
  OpRow row{.name = name,
            .op = op,
            .y = attention_gauge(s),
            .dx = attention_gauge(s),
            .reference = [s](L x) {
              const Shape shape{x[0].size(0), x[0].size(1), x[0].size(2) / (s.H + 2 * s.Hkv) * s.H};
              return from_vector(packed_loops(s, x, {}).z.value, shape, kFloat64);
            }};
  const auto add = [&](int64_t B, int64_t T, int64_t D, const Shape& mask) {
    row.samples.push_back({values({B, T, (s.H + 2 * s.Hkv) * D})});
    for (const Input& input : optional_inputs(s)) row.samples.back().push_back(input);
    row.samples.back().push_back(in(mask, -2, 2));
  };
  const int64_t H = s.H;
  add(1, 5, 2, {5, 5}), add(2, 3, 1, {2, 1, 1, 3}), add(2, 3, 2, {2, H, 3, 3});
  add(1, 1, 1, {}), add(1, 4, 1, {H, 1, 1}), add(2, 0, 2, {1, 0}), add(0, 3, 2, {3, 3});
  add(1, 2, 3, {2, 1}), add(2, 17, 3, {17, 17});
  const auto refuse = [&](const Shape& mask) {
    std::ostringstream text;
    text << "attention: mask must broadcast to (B, H, T, T) = " << Shape{2, H, 3, 3} << "; got "
         << mask;
    const int64_t W = H + 2 * s.Hkv;
    row.errors.push_back(
        {[=] {
           plain::attention(f32({2, 3, W}), {}, s.H, s.Hkv, s.options, {}, f32(mask));
         },
         text.str()});
  };
  refuse({4, 3}), refuse({3, 1, 3, 3}), refuse({1, 2, H, 3, 3});
  row.no_dtypes = "plain attention is made of ops";
  return row;
}

// Decoding is forward alone: the table gives it the same heads as separate views.
OpRow decode_row(const char* name, const Setting& s) {
  const auto op = [s](L x) {
    NoGradGuard no_grad;
    const Optional given = optional(s, x, 3);
    return attention_decode(x[0], x[1], x[2], given.gate, s.options, given.sink);
  };
  const auto run = [s](L x) {
    const int64_t B = x[0].size(0), D = x[0].size(3);
    reference::Attention r = loops(s, optional(s, x, 3), B, x[0].size(1), x[1].size(1), D);
    r.q = x[0].to_vector(), r.k = x[1].to_vector(), r.v = x[2].to_vector();
    r.dz.assign(r.q.size(), 0);
    r.run(scale_of(s, D));
    return r;
  };
  OpRow row{.name = name,
            .op = op,
            .y =
                [run](const Call& call) {
                  return TensorList{from_vector(run(call.x).z.bound, call.y.shape(), kFloat64)};
                },
            .reference = [run](L x) { return from_vector(run(x).z.value, x[0].shape(), kFloat64); },
            .no_gradient = "it is for decoding"};
  using Size = std::array<int64_t, 4>;  // B, Tq, Tk, D
  for (const auto& [B, Tq, Tk, D] :
       {Size{1, 2, 5, 3}, Size{2, 1, 1, 2}, Size{1, 0, 3, 2}, Size{1, 1, 33, 2}, Size{2, 3, 17, 1},
        Size{0, 1, 2, 3}, Size{1, 31, 31, 7}, Size{1, 1, 130, 17}}) {
    row.samples.push_back({in({B, Tq, s.H, D}), in({B, Tk, s.Hkv, D}), values({B, Tk, s.Hkv, D})});
    for (const Input& input : optional_inputs(s)) row.samples.back().push_back(input);
  }
  const auto refuse = [&](const Shape& q, const Shape& k, const Shape& v, const Tensor& sink,
                          const std::string& message) {
    row.errors.push_back({[=] { attention_decode(f32(q), f32(k), f32(v), {}, s.options, sink); },
                          "attention_decode: " + message});
  };
  refuse({1, 3, 2, 4}, {1, 2, 2, 4}, {1, 2, 2, 4}, {},
         "every query needs its own key and value, Tq <= Tk; got Tq = 3, Tk = 2");
  refuse({1, 1, 2, 4}, {1, 2, 2, 4}, {1, 3, 2, 4}, {},
         "wanted q (B, Tq, H, D) and k, v (B, Tk, Hkv, D); got q (1, 1, 2, 4), k (1, 2, 2, 4), v "
         "(1, 3, 2, 4)");
  refuse({1, 1, 3, 4}, {1, 2, 2, 4}, {1, 2, 2, 4}, {},
         "H must be a multiple of Hkv; got H = 3, Hkv = 2");
  refuse({1, 1, 2, 4}, {1, 2, 1, 4}, {1, 2, 1, 4}, f32({1}),
         "sink must have shape (H) = (2), one logit a query head; got (1)");
  row.no_dtypes = "the kernel that refuses is attention's";
  return row;
}

// v of each head of y: (..., Hkv, D) -> (..., H, D).
Tensor by_head(const Tensor& v, const Tensor& y) {
  Shape shape = y.shape();
  shape[-2] = v.size(-2), shape.push_back(v.size(-1)), shape[-2] = y.size(-2) / v.size(-2);
  return reshape(expand(unsqueeze(v, -2), shape), y.shape());
}
// The sum over the heads of y that share one of v.
Tensor sum_groups(const Tensor& x, const Tensor& v) {
  Shape shape = v.shape();
  shape.push_back(v.size(-1)), shape[-2] = x.size(-2) / v.size(-2);
  return sum(reshape(x, shape), -2);
}

// c errs by that of two dot products of D terms and a division; z, dy and dv by their terms, and dv
// once more for each head of its group.
Gauge xsa_gauge(double eps) {
  return [eps](const Call& call) {
    const Tensor y = call.x[0].detach(), v = by_head(call.x[1].detach(), y);
    const Tensor g = call.x.size() > 2 ? reshape(call.x[2].detach(), {y.size(-2), 1})
                                       : full({1, 1}, 1, kFloat64);
    const Tensor a = magnitude(v), G = magnitude(g), d = sum(v * v, -1, true) + eps;
    const double k = double(y.size(-1)) + 6;
    const Tensor c = sum(magnitude(y) * a, -1, true) / d;
    if (!call.dy.defined()) return TensorList{2.0 * magnitude(call.y) + k * G * c * a};
    const Tensor dz = magnitude(call.dy), u = sum(dz * a, -1, true) / d;
    const double heads = double(y.size(-2)) / double(call.x[1].size(-2));
    TensorList bounds{
        2.0 * dz + k * G * u * a,
        sum_groups(2.0 * (k + heads) * G * (c * dz + u * magnitude(y) + 4.0 * c * u * a),
                   call.x[1].detach())};
    if (call.x.size() > 2)
      bounds.push_back(sum_to(reshape(c * u * d, {-1, y.size(-2)}), {y.size(-2)}) * (4 * k));
    return bounds;
  };
}

OpRow xsa_row(const char* name, const XsaOptions& options, bool gated, double eps = 0,
              bool grouped = false) {
  std::vector<Sample> samples = {
      {in({2, 3, 4}), values({2, 3, 4})}, {in({3, 1}), values({3, 1})},
      {in({0, 3, 2}), values({0, 3, 2})}, {in({1, 3, 17}), values({1, 3, 17})},
      {in({5, 3, 2}), values({5, 3, 2})}, {in({2, 1, 3, 1}), values({2, 1, 3, 1})},
      {in({3, 31}), values({3, 31})},     {in({7, 3, 33}), values({7, 3, 33})}};
  if (grouped)
    samples = {{in({2, 3, 4}), values({2, 1, 4})}, {in({3, 1}), values({1, 1})},
               {in({0, 3, 2}), values({0, 1, 2})}, {in({1, 3, 17}), values({1, 3, 17})},
               {in({5, 3, 2}), values({5, 1, 2})}, {in({2, 1, 3, 1}), values({2, 1, 1, 1})},
               {in({3, 31}), values({1, 31})},     {in({7, 3, 33}), values({7, 1, 33})}};
  OpRow row{
      .name = name,
      .op = [=](L x) { return xsa(x[0], x[1], gated ? x[2] : Tensor(), options); },
      .samples = samples,
      .y = xsa_gauge(eps),
      .dx = xsa_gauge(eps),
      .reference = [=](L x) { return plain::xsa(x[0], x[1], gated ? x[2] : Tensor(), options); },
  };
  for (Sample& s : row.samples)
    if (gated) s.push_back(in({3}, -2, 2));
  const auto refuse = [&](const Shape& y, const Shape& v, const Tensor& gate,
                          const std::string& message) {
    row.errors.push_back({[=] { xsa(f32(y), f32(v), gate, options); }, "xsa: " + message});
  };
  const std::string wanted = "wanted y (..., H, D) and v (..., Hkv, D), H a multiple of Hkv; got ";
  refuse({2, 3}, {2, 4}, {}, wanted + "y (2, 3), v (2, 4)");
  refuse({3}, {3}, {}, wanted + "y (3), v (3)");
  refuse({3, 2}, {2, 2}, {}, wanted + "y (3, 2), v (2, 2)");
  refuse({3, 2}, {0, 2}, {}, wanted + "y (3, 2), v (0, 2)");
  refuse({2, 3, 2}, {3, 2}, {}, wanted + "y (2, 3, 2), v (3, 2)");
  refuse({2, 3}, {2, 3}, f32({3}),
         "gate must have shape (H) = (2), one number a query head; got (3)");
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

std::vector<ErrorSample> rope_errors(const RopeOptions& row_options) {
  std::vector<ErrorSample> errors;
  const auto add = [&](const Shape& shape, int64_t heads, int64_t D, const std::string& got) {
    errors.push_back(
        {[=] { rope(f32(shape), heads, D, row_options); },
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

OpRow rope_row(const char* name, const RopeOptions& options) {
  return {.name = name,
          .op = [=](L x) { return rope(x[0], 2, 4, options); },
          .samples = {{in({2, 3, 11})},
                      {in({1, 1, 8})},
                      {in({2, 0, 9})},
                      {in({0, 2, 9})},
                      {in({1, 17, 8})},
                      {in({1, 2, 31})},
                      {in({2, 5, 8})},
                      {in({3, 33, 17})}},
          .y = rope_gauge(2, 4),
          .dx = rope_gauge(2, 4),
          .errors = rope_errors(options)};
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
      attention_row("attention", {2, 2, sa}),
      attention_row("attention group", {4, 2, sa}),
      attention_row("attention open", {2, 1, open}),
      attention_row("attention sink", {2, 2, sa, false, true}),
      attention_row("attention sink open", {3, 1, open, false, true}),
      attention_row("attention xsa", {2, 2, exact}),
      attention_row("attention xsa gate group", {4, 2, exact, true}),
      attention_row("attention xsa open", {3, 1, open_xsa, true}),
      attention_row("attention xsa eps", {2, 1, added, true}),
      attention_row("attention xsa clamp", {1, 1, clamped, true}),
      attention_row("attention xsa sink", {2, 1, exact, false, true}),
      attention_row("attention xsa sink gate", {4, 2, open_xsa, true, true}),
      mask_row("attention plain mask", {2, 1, sa, false, false, true}),
      mask_row("attention plain mask sink", {4, 2, open, false, true, true}),
      decode_row("attention_decode", {2, 1, sa}),
      decode_row("attention_decode xsa sink", {2, 1, exact, true, true}),
      xsa_row("xsa", {}, false),
      xsa_row("xsa gate", {}, true),
      xsa_row("xsa group", {}, true, 0, true),
      xsa_row("xsa eps", add, true, 0.5),
      xsa_row("xsa above the clamp", above, true),
      xsa_row("xsa below the clamp", below, true, 100),
      rope_row("rope", {}),
      rope_row("rope adjacent", {.layout = RopeLayout::kAdjacent, .base = 100, .position = 7}),
      rope_row("rope inverse", {.position = 2, .inverse = true}),
  };
  const auto refuse = [&](std::size_t row, std::function<void()> call, const char* message) {
    rows[row].errors.push_back({std::move(call), message});
  };
  const int64_t huge = 6148914691236517206;
  refuse(
      0,
      [=] {
        attention(f32({1, 2, 8}), {}, huge, huge, {});
      },
      "attention: the last dimension of qkv must be (H + 2 Hkv) D; got qkv (1, 2, 8), H = "
      "6148914691236517206, Hkv = 6148914691236517206");
  refuse(
      0,
      [] {
        attention(f32({1, 2, 6}), {}, 1, 1, {.scale = INFINITY});
      },
      "attention: scale must be finite; got inf");
  refuse(
      0,
      [] {
        attention(f32({1, 2, 7}), {}, 3, 2, {});
      },
      "attention: H must be a multiple of Hkv; got H = 3, Hkv = 2");
  refuse(
      0,
      [] {
        attention(f32({1, 2, 3 * 257}), {}, 1, 1, {});
      },
      "attention: supports head dimensions D from 1 to 256; got D = 257");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i].name != "xsa") continue;
    refuse(
        i,
        [] {
          xsa(f32({2, 3}), f32({2, 3}), {}, {XsaDenominator::kAddEps, -1});
        },
        "xsa: eps must be finite and not negative; got -1");
    refuse(
        i,
        [] {
          xsa(f32({2, 3}), f32({2, 3}), {}, {XsaDenominator::kClampNorm, INFINITY});
        },
        "xsa: eps must be finite and not negative; got inf");
  }
  return rows;
}

}  // namespace pellucid
