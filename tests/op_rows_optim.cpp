// The rows of the optimizers' ops: adamw_, sgd_ and grad_norm (tests/op_table.h). adamw_ has three:
// one for each tensor that it writes. Its numbers are checked against a table in
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

// sgd_: w, g, m copied, in that order. One row for w and one for m, and one without m.
const SGDOptions kSGD = {
    .lr = 0.02, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1, .grad_scale = 0.7};
const SGDOptions kPlainSGD = {.lr = 0.02, .weight_decay = 0.1, .grad_scale = 0.7};

// The same by a loop. g' rounds 3 times, m' once more, the update 4 times, the difference once.
Loop sgd_loop(L x, const SGDOptions& o, bool with_m, bool result_m) {
  const std::vector<double> w = x[0].to_vector(), g = x[1].to_vector(), m = x[2].to_vector();
  Loop out;
  for (std::size_t i = 0; i < w.size(); ++i) {
    const double gi = o.grad_scale * g[i] + o.weight_decay * w[i];
    const double size = std::abs(o.grad_scale * g[i]) + std::abs(o.weight_decay * w[i]);
    const double m1 = (with_m ? o.momentum * m[i] : 0) + gi;
    const double m_size = (with_m ? std::abs(o.momentum * m[i]) : 0) + size;
    const double ahead = o.nesterov ? gi + o.momentum * m1 : m1;
    out.value.push_back(result_m ? m1 : w[i] - o.lr * ahead);
    out.gauge.push_back(result_m ? 5 * m_size
                                 : std::abs(w[i]) + o.lr * 12 * (size + o.momentum * m_size) +
                                       o.lr * 12 * m_size);
  }
  return out;
}

OpRow sgd_row(const std::string& name, const SGDOptions& options, bool with_m, bool result_m) {
  std::vector<Sample> three = samples();
  for (Sample& sample : three) sample.pop_back();
  return {.name = name,
          .op =
              [=](L x) {
                NoGradGuard no_grad;
                const Tensor w = x[0] * 1.0, m = with_m ? x[2] * 1.0 : Tensor();
                sgd_(w, x[1], m, options);
                return result_m ? m : w;
              },
          .samples = three,
          .y =
              [=](const Call& call) {
                return TensorList{from_vector(sgd_loop(call.x, options, with_m, result_m).gauge,
                                              call.x[0].shape(), kFloat64)};
              },
          .reference =
              [=](L x) {
                return from_vector(sgd_loop(x, options, with_m, result_m).value, x[0].shape(),
                                   kFloat64);
              },
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

std::vector<ErrorSample> sgd_errors() {
  const auto with = [](const SGDOptions& options) {
    return [=] { sgd_(f64({2}), f64({2}), f64({2}), options); };
  };
  const Tensor two = f64({2});
  return {
      {with({.lr = NAN}), "sgd_: lr must be finite and not negative; got nan"},
      {with({.momentum = 1}), "sgd_: momentum must be in [0, 1); got 1"},
      {with({.weight_decay = -1}), "sgd_: weight_decay must not be negative; got -1"},
      {with({.grad_scale = NAN}), "sgd_: grad_scale must be finite; got nan"},
      {[=] { sgd_(two, f64({2}), two, {}); },
       "sgd_: w and m of shape (2) share memory; each needs its own"},
      {[] { sgd_(f64({2}), f64({2}), Tensor(), {.momentum = 0.9}); },
       "sgd_: momentum 0.9 needs m, its memory; got an undefined tensor"},
      {[] { sgd_(f64({2}), Tensor(), f64({2}), {}); },
       "sgd_: g is undefined: w of shape (2) got no gradient"},
      {[] { sgd_(f64({2}), f64({3}), f64({2}), {}); },
       "sgd_: g and m must have w's shape; got w (2), g (3), m (2)"},
      {[] {
         sgd_(transpose(f64({2, 3}), 0, 1), f64({3, 2}), f64({3, 2}), {});
       },
       "sgd_: w and m must be contiguous; got strides w (1, 3), m (2, 1)"},
      {[] { sgd_(f64({2}), full({2}, 1, kFloat32), Tensor(), {}); },
       "sgd_: one floating dtype wanted; got w float64, g float32, m undefined; astype() converts"},
  };
}

}  // namespace

std::vector<OpRow> rows_optim() {
  OpRow sgd = sgd_row("sgd_", kSGD, true, false),
        sgd_m = sgd_row("sgd_ momentum", kSGD, true, true),
        sgd_plain = sgd_row("sgd_ without momentum", kPlainSGD, false, false);
  sgd.errors = sgd_m.errors = sgd_plain.errors = sgd_errors();
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
      sgd,
      sgd_m,
      sgd_plain,
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
