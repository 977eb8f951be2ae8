// The rows of the optimizer's ops: adamw_ and grad_norm (tests/op_table.h). adamw_ has three: one
// for each tensor that it writes. Its numbers are checked against a table in
// tests/kernels/adamw_test.cpp.
#include <cmath>

#include "op_table.h"

namespace pellucid {

namespace {

const AdamWOptions kOptions = {.lr = 0.02,
                               .beta1 = 0.9,
                               .beta2 = 0.99,
                               .eps = 1e-8,
                               .weight_decay = 0.1,
                               .grad_scale = 0.7,
                               .step = 3};
enum Written { kW, kM, kV };

// w, g, m, v, in that order, copied: the op is in place.
Tensor step(L x, Written result) {
  NoGradGuard no_grad;
  const Tensor w = x[0] * 1.0, m = x[2] * 1.0, v = x[3] * 1.0;
  adamw_(w, x[1], m, v, kOptions);
  return result == kW ? w : result == kM ? m : v;
}

// The same by a loop, element by element, and the bounds: m' and v' round each of their two terms
// at most 5 and 9 times, the update 20 times, the decayed weight 3 times.
struct Loop {
  std::vector<double> value, gauge;
};
Loop loop(L x, Written result) {
  const AdamWOptions& o = kOptions;
  const std::vector<double> w = x[0].to_vector(), g = x[1].to_vector(), m = x[2].to_vector(),
                            v = x[3].to_vector();
  Loop out;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double gi = g[i] * o.grad_scale;
    const double m1 = o.beta1 * m[i] + (1 - o.beta1) * gi;
    const double m_size = o.beta1 * std::abs(m[i]) + (1 - o.beta1) * std::abs(gi);
    const double v1 = o.beta2 * v[i] + (1 - o.beta2) * gi * gi;
    const double rate = o.lr / (1 - std::pow(o.beta1, double(o.step)));
    const double root = std::sqrt(v1) / std::sqrt(1 - std::pow(o.beta2, double(o.step))) + o.eps;
    const double kept = w[i] * (1 - o.lr * o.weight_decay), w1 = kept - rate * m1 / root;
    out.value.push_back(result == kW ? w1 : result == kM ? m1 : v1);
    out.gauge.push_back(result == kW   ? 3 * std::abs(kept) + 20 * rate * m_size / root
                        : result == kM ? 5 * m_size
                                       : 9 * v1);
  }
  return out;
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const Shape& shape : {Shape{3}, Shape{}, Shape{0}, Shape{2, 3}, Shape{1, 1}, Shape{31},
                             Shape{65, 3}, Shape{8193}})
    all.push_back({in(shape), in(shape), in(shape), in(shape, 0.01, 1)});
  return all;
}

OpRow adamw_row(const std::string& name, Written result) {
  return {
      .name = name,
      .op = [=](L x) { return step(x, result); },
      .samples = samples(),
      .y =
          [=](const Call& call) {
            return TensorList{from_vector(loop(call.x, result).gauge, call.x[0].shape(), kFloat64)};
          },
      .reference = [=](L x) { return from_vector(loop(x, result).value, x[0].shape(), kFloat64); },
      .no_gradient = "the step of an optimizer is not differentiable",
      .no_dtypes = "the copies that it changes are made by mul"};
}

Tensor f64(const Shape& shape) { return full(shape, 1, kFloat64); }

std::vector<ErrorSample> adamw_errors() {
  AdamWOptions zero;
  zero.step = 0;
  const auto with = [](double AdamWOptions::*field, double value) {
    AdamWOptions options;
    options.*field = value;
    return [=] { adamw_(f64({2}), f64({2}), f64({2}), f64({2}), options); };
  };
  const Tensor two = f64({2}), three = f64({3});
  return {
      {with(&AdamWOptions::lr, NAN), "adamw_: lr must be finite and not negative; got nan"},
      {with(&AdamWOptions::lr, -1), "adamw_: lr must be finite and not negative; got -1"},
      {with(&AdamWOptions::beta1, 1), "adamw_: betas must be in [0, 1); got 1, 0.999"},
      {with(&AdamWOptions::beta2, NAN), "adamw_: betas must be in [0, 1); got 0.9, nan"},
      {with(&AdamWOptions::eps, 0), "adamw_: eps must be positive; got 0"},
      {with(&AdamWOptions::weight_decay, -1), "adamw_: weight_decay must not be negative; got -1"},
      {with(&AdamWOptions::grad_scale, NAN), "adamw_: grad_scale must be finite; got nan"},
      {[=] { adamw_(f64({2}), f64({2}), two, two, {}); },
       "adamw_: w, m and v of shape (2) share memory; each needs its own"},
      {[=] { adamw_(slice(three, 0, 0, 2), f64({2}), f64({2}), slice(three, 0, 1, 3), {}); },
       "adamw_: w, m and v of shape (2) share memory; each needs its own"},
      {[] { adamw_(f64({2}), Tensor(), f64({2}), f64({2}), {}); },
       "adamw_: g is undefined: w of shape (2) got no gradient"},
      {[] {
         adamw_(f64({2}), f64({2, 1}), f64({2}), f64({2}), {});
       },
       "adamw_: g, m and v must have w's shape; got w (2), g (2, 1), m (2), v (2)"},
      {[=] { adamw_(f64({2}), f64({2}), f64({2}), f64({2}), zero); },
       "adamw_: step counts from 1; got 0"},
      {[] {
         adamw_(transpose(f64({2, 3}), 0, 1), f64({3, 2}), f64({3, 2}), f64({3, 2}), {});
       },
       "adamw_: w, m and v must be contiguous; got strides w (1, 3), m (2, 1), v (2, 1)"},
      {[] { adamw_(full({2}, 1, kFloat32), f64({2}), f64({2}), f64({2}), {}); },
       "adamw_: one floating dtype wanted; got w float32, g float64, m float64, v float64; "
       "astype() converts"},
  };
}

}  // namespace

std::vector<OpRow> rows_optim() {
  OpRow w = adamw_row("adamw_", kW), m = adamw_row("adamw_ mean", kM),
        v = adamw_row("adamw_ square", kV);
  w.errors = adamw_errors();
  m.errors = {{[] { adamw_(f64({2}), f64({2}), f64({3}), f64({2}), {}); },
               "adamw_: g, m and v must have w's shape; got w (2), g (2), m (3), v (2)"}};
  v.errors = {{[] { adamw_(f64({2}), f64({2}), f64({2}), full({2}, 1), {}); },
               "adamw_: one floating dtype wanted; got w float64, g float64, m float64, v "
               "float32; astype() converts"}};
  const auto norm_of = [](L x) { return full({}, grad_norm(x), x[0].dtype()); };
  const auto norm_by_loop = [](L x) {
    long double total = 0;  // a serial sum in double would itself be off by more than the op
    for (const Tensor& g : x)
      for (long double value : g.to_vector()) total += value * value;
    return full({}, static_cast<double>(std::sqrt(total)), kFloat64);
  };
  return {
      w,
      m,
      v,
      {.name = "grad_norm",
       .op = norm_of,
       .samples = {{in({3}), in({2, 2})},
                   {in({})},
                   {in({0})},
                   {in({1, 1}), in({0, 3}), in({17})},
                   {in({65, 33}, 1, 2)},
                   {in({5}, 1e-6, 2e-6)},
                   {in({127}), in({129})},
                   {in({33000})}},
       // In double, block by block: half the roundings of a sum of 33,000 terms in lanes and
       // blocks.
       .y = relative(32),
       .reference = norm_by_loop,
       .errors = {{[] {
                     grad_norm({f64({2}), Tensor()});
                   },
                   "grad_norm: gradient 1 must be float32 or float64; it is undefined"},
                  {[] { grad_norm({full({2}, 1, kInt64)}); },
                   "grad_norm: gradient 0 must be float32 or float64; it is int64"},
                  {[] {
                     grad_norm({f64({2}), full({2}, 1, kBool)});
                   },
                   "grad_norm: gradient 1 must be float32 or float64; it is bool"}},
       .no_gradient = "a number, not a tensor"},
  };
}

}  // namespace pellucid
