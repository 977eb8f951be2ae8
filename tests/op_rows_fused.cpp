// The rows of the fused row ops: softmax, gelu, gelu_tanh, layer_norm, rms_norm
// (tests/op_table.h). The reference is plain::NAME in float64. The bounds are those of the kernels'
// own tests (tests/kernels/NAME_test.cpp), written in ops.
#include <cmath>

#include "op_table.h"

namespace pellucid {

namespace {

constexpr double kEps = 1e-5;
// A sum of n <= 2048 terms errs by at most this many u sum |terms| (tests/kernels/row_test.h).
double sum_bound(const Tensor& x) { return double((x.size(-1) + 63) / 64) + 7; }
Tensor f64(const Shape& shape, double value = 1) { return full(shape, value, kFloat64); }
Tensor int_ones(const Shape& shape) { return full(shape, 1, kInt64); }
Tensor row_mean(const Tensor& x) { return mean(x, -1, true); }

// y_c errs by u (|x_c - m| + 2 B + c_sum + 3) of itself; the gradient by that of each y in it. The
// dimension of C is the last.
TensorList softmax_gauge(const Call& call) {
  if (call.x[0].numel() == 0) return {empty_like(call.x[0])};
  const Tensor x = call.x[0].detach(), y = softmax(x), gap = amax(x, -1, true) - x;
  const double steps = 2 + sum_bound(x) + 3;
  if (!call.dy.defined()) return {y * (gap + steps)};
  const Tensor dy = magnitude(call.dy), worst = amax(gap, -1, true) + steps;
  return {y * (dy + sum(dy * y, -1, true)) * (2.0 * worst + (sum_bound(x) + 4))};
}

// (x_c - m) - log S: |x_c - m| and |log S| are rounded, S errs by p_c (|x_c - m| + 2 B) + c_sum and
// the result by itself. The gradient dy_c - e^y_c sum dy: what e^y_c errs by, B and the sum.
TensorList log_softmax_gauge(const Call& call) {
  if (call.x[0].numel() == 0) return {empty_like(call.x[0])};
  const Tensor x = call.x[0].detach(), y = log_softmax(x), gap = amax(x, -1, true) - x;
  const Tensor log_sum = magnitude(y + gap);  // y = -gap - log S
  const Tensor Gy = gap + magnitude(y) + log_sum + sum(exp(y) * gap, -1, true) + (4 + sum_bound(x));
  if (!call.dy.defined()) return {Gy};
  const Tensor dy = magnitude(call.dy);
  return {dy + exp(y) * sum(dy, -1, true) * (Gy + (4 + sum_bound(x) + 3))};
}

// The same with the dimension `dim` last.
Gauge along(int dim, TensorList (*gauge)(const Call&)) {
  return [=](const Call& call) {
    const auto turn = [dim](const Tensor& t) {
      return t.defined() ? transpose(t.detach(), dim, -1) : t;
    };
    const TensorList G = gauge({call.op, {turn(call.x[0])}, turn(call.y), turn(call.dy), {}});
    return TensorList{transpose(G[0], dim, -1)};
  };
}

// 4 ulp above -1 and 2^-22 below; the slope within 2^-21.
TensorList gelu_gauge(const Call& call) {
  const Tensor x = call.x[0].detach();
  if (call.dy.defined()) return {8.0 * magnitude(call.dy) + magnitude(call.result[0])};
  return {where(greater(x, f64({}, -1)), 8.0 * magnitude(call.y), f64({}, 4))};
}

// h errs by 16 u (1 + |h|); the gradients term by term.
TensorList layer_norm_gauge(const Call& call) {
  const Tensor x = call.x[0].detach(), w = magnitude(call.x[1]), d = x - row_mean(x);
  const Tensor rstd = rsqrt(row_mean(d * d) + kEps), h = magnitude(d * rstd);
  const Tensor error = 16.0 * (h + 1.0);
  if (!call.dy.defined()) return {error * w + 2.0 * magnitude(call.y)};
  const Tensor dy = magnitude(call.dy), g = dy * w, gh = row_mean(g * h);
  const Tensor terms = (sum_bound(x) + 16) * (g + row_mean(g) + h * gh);
  TensorList G{rstd * (terms + error * gh + h * row_mean(g * error)),
               sum_to(dy * (36.0 * h + error), w.shape())};
  if (call.x.size() == 3) G.push_back(sum_to(33.0 * dy, w.shape()));
  return G;
}

// rstd errs by e = (c_sum + 3) / 2 + 1; the rest term by term.
TensorList rms_norm_gauge(const Call& call) {
  const Tensor x = call.x[0].detach(), w = magnitude(call.x[1]);
  const Tensor rstd = rsqrt(row_mean(x * x) + kEps), h = magnitude(x * rstd);
  const double e = (sum_bound(x) + 3) / 2 + 1;
  if (!call.dy.defined()) return {(e + 2) * magnitude(call.y)};
  const Tensor dy = magnitude(call.dy), g = dy * w;
  return {(3 * e + sum_bound(x) + 8) * rstd * (g + h * row_mean(g * h)),
          sum_to((33 + e + 2) * dy * h, w.shape())};
}

std::vector<Sample> rows_of(double low, double high) {
  return {{in({3, 5}, low, high)},   {in({4}, low, high)},      {in({2, 1, 3}, low, high)},
          {in({5, 1}, low, high)},   {in({0, 4}, low, high)},   {in({2, 3, 2, 3}, low, high)},
          {in({65, 33}, low, high)}, {in({3, 129}, low, high)}, {in({2, 1000}, low, high)}};
}

// x, weight and, if wanted, bias for the norms.
std::vector<Sample> norm_samples(bool bias) {
  std::vector<Sample> samples;
  const auto sample = [&](const Shape& shape, double low, double high) {
    Sample s{in(shape, low, high), in({shape[-1]}, 0.5, 1.5)};
    if (bias) s.push_back(in({shape[-1]}));
    samples.push_back(s);
  };
  sample({3, 5}, -1, 1);
  sample({2, 2, 3}, 1, 3);
  sample({7}, -2, 2);
  sample({4, 1}, 0.5, 1);
  sample({0, 6}, -1, 1);
  sample({2, 1, 17}, -4, 4);
  sample({33, 31}, -1, 2);
  sample({65, 129}, 9, 11);
  sample({3, 384}, -1, 1);
  return samples;
}

std::vector<ErrorSample> layer_norm_errors() {
  const Tensor none;
  return {
      {[=] {
         layer_norm(f64({2, 3}), f64({4}), none, kEps);
       },
       "layer_norm: weight must have shape (C), C the last dimension of x; got x (2, 3), weight "
       "(4)"},
      {[=] {
         layer_norm(f64({2, 3}), f64({3}), f64({1, 3}), kEps);
       },
       "layer_norm: bias must have shape (C), C the last dimension of x; got x (2, 3), bias (1, "
       "3)"},
      {[=] {
         layer_norm(f64({2, 0}), f64({0}), none, kEps);
       },
       "layer_norm: x must have a last dimension of at least 1; got x (2, 0)"},
      {[=] { layer_norm(f64({}), f64({1}), none, kEps); },
       "layer_norm: x must have a last dimension of at least 1; got x ()"},
      {[=] {
         layer_norm(f64({2, 3}), f64({3}), none, -1);
       },
       "layer_norm: eps must be finite and not negative; got -1"},
  };
}

}  // namespace

std::vector<OpRow> rows_fused() {
  const auto float_only = [](const std::string& kernel) {
    return kernel + ": wanted float32 or float64; got int64; use astype()";
  };
  const auto rows_of_three = [](int64_t n) { return Sample{in({3, n}, -3, 3)}; };
  const std::vector<Sample> columns =
      shapes({{1}, {5}, {3, 4}, {2, 3, 4}, {3, 0}, {0, 3}, {17, 2}, {129, 3}, {1000, 2}}, -3, 3);
  return {
      {.name = "softmax",
       .op = [](L x) { return softmax(x[0]); },
       .samples = rows_of(-3, 3),
       .y = softmax_gauge,
       .dx = softmax_gauge,
       .reference = [](L x) { return plain::softmax(x[0]); },
       .errors = {{[] { softmax(f64({})); }, "softmax: dimension -1 is outside [0, 0) of shape ()"},
                  {[] { softmax(int_ones({2})); }, float_only("softmax_forward")}},
       .lanes = Lanes::kRows,
       .lane_sample = rows_of_three},
      {.name = "softmax of columns",
       .op = [](L x) { return softmax(x[0], 0); },
       .samples = columns,
       .y = along(0, softmax_gauge),
       .dx = along(0, softmax_gauge),
       .reference = [](L x) { return plain::softmax(x[0], 0); },
       .errors = {{[] {
                     softmax(f64({2, 3}), 2);
                   },
                   "softmax: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "log_softmax",
       .op = [](L x) { return log_softmax(x[0]); },
       .samples = rows_of(-3, 3),
       .y = log_softmax_gauge,
       .dx = log_softmax_gauge,
       .reference = [](L x) { return plain::log_softmax(x[0]); },
       .errors = {{[] { log_softmax(f64({})); },
                   "log_softmax: dimension -1 is outside [0, 0) of shape ()"},
                  {[] { log_softmax(int_ones({2})); }, float_only("log_softmax_forward")}},
       .lanes = Lanes::kRows,
       .lane_sample = rows_of_three},
      {.name = "log_softmax of columns",
       .op = [](L x) { return log_softmax(x[0], 0); },
       .samples = columns,
       .y = along(0, log_softmax_gauge),
       .dx = along(0, log_softmax_gauge),
       .reference = [](L x) { return plain::log_softmax(x[0], 0); },
       .errors = {{[] {
                     log_softmax(f64({2, 3}), -3);
                   },
                   "log_softmax: dimension -3 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "gelu",
       .op = [](L x) { return gelu(x[0]); },
       .samples = rows_of(-6, 6),
       .y = gelu_gauge,
       .dx = gelu_gauge,
       .reference = [](L x) { return plain::gelu(x[0]); },
       .errors = {{[] { gelu(int_ones({2})); }, float_only("gelu_forward")}},
       .lanes = Lanes::kEach},
      {.name = "gelu_tanh",
       .op = [](L x) { return gelu_tanh(x[0]); },
       .samples = rows_of(-6, 6),
       .y = gelu_gauge,
       .dx = gelu_gauge,
       .reference = [](L x) { return plain::gelu_tanh(x[0]); },
       .errors = {{[] { gelu_tanh(int_ones({2})); }, float_only("gelu_tanh_forward")}},
       .lanes = Lanes::kEach},
      {.name = "layer_norm",
       .op = [](L x) { return layer_norm(x[0], x[1], x[2], kEps); },
       .samples = norm_samples(true),
       .y = layer_norm_gauge,
       .dx = layer_norm_gauge,
       .reference = [](L x) { return plain::layer_norm(x[0], x[1], x[2], kEps); },
       .errors = layer_norm_errors(),
       .lanes = Lanes::kRows,
       .lane_sample =
           [](int64_t n) {
             return Sample{in({3, n}), in({n}, 0.5, 1), in({n})};
           }},
      {.name = "layer_norm without bias",
       .op = [](L x) { return layer_norm(x[0], x[1], Tensor(), kEps); },
       .samples = norm_samples(false),
       .y = layer_norm_gauge,
       .dx = layer_norm_gauge,
       .reference = [](L x) { return plain::layer_norm(x[0], x[1], Tensor(), kEps); },
       .errors = {{[] {
                     layer_norm(f64({2, 3}), f64({3, 1}), Tensor(), kEps);
                   },
                   "layer_norm: weight must have shape (C), C the last dimension of x; got x (2, "
                   "3), weight (3, 1)"}}},
      {.name = "rms_norm",
       .op = [](L x) { return rms_norm(x[0], x[1], kEps); },
       .samples = norm_samples(false),
       .y = rms_norm_gauge,
       .dx = rms_norm_gauge,
       .reference = [](L x) { return plain::rms_norm(x[0], x[1], kEps); },
       .errors = {{[] {
                     rms_norm(f64({2, 3}), f64({4}), kEps);
                   },
                   "rms_norm: weight must have shape (C), C the last dimension of x; got x (2, "
                   "3), weight (4)"},
                  {[] {
                     rms_norm(f64({2, 3}), f64({2, 3}), kEps);
                   },
                   "rms_norm: weight must have shape (C), C the last dimension of x; got x (2, "
                   "3), weight (2, 3)"},
                  {[] {
                     rms_norm(f64({2, 0}), f64({0}), kEps);
                   },
                   "rms_norm: x must have a last dimension of at least 1; got x (2, 0)"},
                  {[] {
                     rms_norm(f64({2, 3}), f64({3}), NAN);
                   },
                   "rms_norm: eps must be finite and not negative; got nan"}},
       .lanes = Lanes::kRows,
       .lane_sample =
           [](int64_t n) {
             return Sample{in({3, n}), in({n}, 0.5, 1)};
           }},
  };
}

}  // namespace pellucid
