// The rows of arithmetic and functions (tests/op_table.h). Bounds count roundings: one for + - * /
// sqrt, two for exp, log, expm1, sin, cos and pow (1 ulp is at most 2 u), three for log1p (1.3
// ulp), four for tanh and erf. Gradients summed over what was broadcast are added in double and
// rounded once: 1.01 for that.
#include <cmath>
#include <limits>

#include "op_samples.h"

namespace pellucid {

static std::vector<OpRow> rows_arithmetic() {
  return {
      binary_row("add", add, pairs(), terms(1.01), [](double a, double b) { return a + b; }),
      binary_row("sub", sub, pairs(), terms(1.01), [](double a, double b) { return a - b; }),
      binary_row("mul", mul, pairs(), terms(2.01), [](double a, double b) { return a * b; }),
      binary_row("div", div, pairs(in({}), in({}, -1, 1, away)), terms(4.01),
                 [](double a, double b) { return a / b; }),
      unary_row("neg", neg, one(-2, 2), exact(), exact(), [](double x) { return -x; }),
      {.name = "mul of itself",  // the engine adds two gradients
       .op = [](L x) { return x[0] * x[0]; },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(2),
       .errors = {refuses(
           "mul", [](const Tensor& x) { x* x; }, kBool)},
       .lanes = Lanes::kEach},
      // y: 2 roundings of the quotient, at most 2, 1 of the product, at most 0.75, 2.75 and 1.75 of
      // the sums. dx: 5 of 1 / (1 + x / 2)^2, at most 1, and 1.25 of the sum.
      {.name = "add of numbers",
       .op = [](L x) { return 2.0 / (1.0 + x[0] * 0.5) + (3.0 - x[0]) * 0.25 - 1.0; },
       .samples = one(0, 1),
       .y = [](const Call& call) { return TensorList{full_like(call.y, call.y.shape(), 9.25)}; },
       .dx = [](const Call& call) { return TensorList{6.25 * magnitude(call.dy)}; },
       .reference = by_loop([](double x) { return 2 / (1 + x / 2) + (3 - x) / 4 - 1; }),
       .errors = {{[] { ones({2}, kInt64) + 0.5; },
                   "add: 0.5 is no whole number of at most 2^53, as int64 wants it"},
                  {[] { 2.0 / ones({2}, kBool); }, "div: 2 is no bool"},
                  {[] { ones({2}, kInt64) + 1; },
                   "add: wanted float32 or float64; got int64; use astype()"}},
       .lanes = Lanes::kEach,
       .no_dtypes = "the first of its ops is mul"},
  };
}

// dy (1 - y^2): the errors of y^2, 4 * 2 + 1 roundings, do not shrink with the difference.
static TensorList tanh_gradient_gauge(const Call& call) {
  NoGradGuard no_grad;
  return {magnitude(call.dy) * (9.0 * call.y * call.y + 2.0)};
}

static std::vector<OpRow> rows_functions() {
  return {
      unary_row("exp", exp, one(-3, 3), relative(2), relative(3),
                [](double x) { return std::exp(x); }),
      unary_row("expm1", expm1, one(-3, 3), relative(2), relative(3),
                [](double x) { return std::expm1(x); }),
      unary_row("log", log, one(0.5, 3), relative(2), relative(1),
                [](double x) { return std::log(x); }),
      // 1 + x is rounded, then the division.
      unary_row("log1p", log1p, one(-0.6, 3), relative(3), relative(2),
                [](double x) { return std::log1p(x); }),
      unary_row("sqrt", sqrt, one(0.5, 3), relative(1), relative(2),
                [](double x) { return std::sqrt(x); }),
      unary_row("rsqrt", rsqrt, one(0.5, 3), relative(2), relative(9),
                [](double x) { return 1 / std::sqrt(x); }),
      // -(dy / x) y.
      unary_row("reciprocal", reciprocal, one(-2, 2, away), relative(1), relative(3),
                [](double x) { return 1 / x; }),
      unary_row("sin", sin, one(-4, 4), relative(2), relative(3),
                [](double x) { return std::sin(x); }),
      unary_row("cos", cos, one(-4, 4), relative(2), relative(3),
                [](double x) { return std::cos(x); }),
      unary_row("tanh", tanh, one(-2, 2), relative(4), tanh_gradient_gauge,
                [](double x) { return std::tanh(x); }),
      // x^2 <= 4 is rounded before exp: 4 in the result, 2 for exp, 3 for products and 2 /
      // sqrt(pi).
      unary_row("erf", erf, one(-2, 2), relative(4), relative(9),
                [](double x) { return std::erf(x); }),
      unary_row("abs", abs, one(-2, 2, away), exact(), exact(),
                [](double x) { return std::abs(x); }),
  };
}

// da = dy b a^(b - 1): 2 for pow, 2 products, and the rounding of b - 1 by |(b - 1) log a|.
// db = dy y log(a): 2 for each function, 2 products.
static TensorList pow_gauge(const Call& call) {
  NoGradGuard no_grad;
  const Tensor a = call.x[0].detach(), b = call.x[1].detach(), dy = 1.01 * magnitude(call.dy);
  const Tensor log_a = magnitude(log(a)), da = magnitude(b * pow(a, b - 1.0));
  return {sum_to(dy * da * (magnitude(b - 1.0) * log_a + 4.0), a.shape()),
          sum_to(6.0 * dy * magnitude(call.y) * log_a, b.shape())};
}

static OpRow pow_row(const std::string& name, std::function<Tensor(const Tensor&)> op,
                     std::vector<Sample> samples, double roundings,
                     std::function<double(double)> f) {
  return {.name = name,
          .op = [op](L x) { return op(x[0]); },
          .samples = std::move(samples),
          .y = relative(2),
          .dx = relative(roundings),
          .reference = by_loop(std::move(f)),
          .errors = {{[] { pow(ones({2}, kInt64), 2.5); },
                      "pow: 2.5 is no whole number of at most 2^53, as int64 wants it"},
                     {[] { pow(-2, ones({2}, kBool)); }, "pow: -2 is no bool"},
                     refuses(
                         "pow", [](const Tensor& x) { pow(x, 1); }, kInt64)},
          .lanes = Lanes::kEach};
}

static std::vector<OpRow> rows_pow() {
  OpRow both = binary_row("pow", pow, pairs(in({}, 0.4, 3), in({}, -2, 3)), pow_gauge,
                          [](double a, double b) { return std::pow(a, b); });
  both.y = relative(2);
  both.nan_lost = "1^NaN and NaN^0 are 1";
  both.lanes = Lanes::kEach;
  return {
      both,
      pow_row(
          "pow to 2.5", [](const Tensor& x) { return pow(x, 2.5); }, one(0.5, 3), 4,
          [](double x) { return std::pow(x, 2.5); }),
      pow_row(
          "pow to 3", [](const Tensor& x) { return pow(x, 3); }, one(-2, 2), 4,
          [](double x) { return x * x * x; }),
      pow_row(
          "pow to -2", [](const Tensor& x) { return pow(x, -2); }, one(-2, 2, away), 4,
          [](double x) { return 1 / (x * x); }),
      pow_row(
          "pow of 2.5", [](const Tensor& x) { return pow(2.5, x); }, one(-2, 2), 6,
          [](double x) { return std::pow(2.5, x); }),
  };
}

static std::vector<OpRow> rows_dropout() {
  static Generator unused;
  return {
      {.name = "dropout",
       .op =
           [](L x) {
             Generator rng{7, 1, 6};
             return dropout(x[0] * x[0], 0.3, rng);
           },
       .samples = one(-2, 2),
       .y = relative(3),
       .dx = relative(5),
       .errors = {{[] { dropout(ones({2}), -0.1, unused); },
                   "dropout: p must be in [0, 1]; got -0.1"},
                  {[] { dropout(ones({2}), 1.5, unused); },
                   "dropout: p must be in [0, 1]; got 1.5"},
                  {[] { dropout(ones({2}), std::numeric_limits<double>::quiet_NaN(), unused); },
                   "dropout: p must be in [0, 1]; got nan"}},
       .no_dtypes = "the first of its ops is mul"},
      {.name = "dropout of nothing",
       .op =
           [](L x) {
             Generator rng;
             return dropout(x[0], 0, rng);
           },
       .samples = one(-2, 2),
       .y = exact(),
       .dx = exact(),
       .errors = {refuses(
           "dropout", [](const Tensor& x) { dropout(x, 0, unused); }, kInt64)},
       .lanes = Lanes::kEach},
  };
}

std::vector<OpRow> rows_elementwise() {
  std::vector<OpRow> all;
  for (auto rows : {rows_arithmetic, rows_functions, rows_pow, rows_dropout})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace pellucid
