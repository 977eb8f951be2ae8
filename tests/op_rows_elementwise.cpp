// The rows of the elementwise ops (tests/op_table.h). Bounds count roundings: one for + - * / sqrt,
// two for exp and log (1 ulp is at most 2 u), four for tanh and erf. Gradients summed over what was
// broadcast are added in double and rounded once: 1.01 for that.
#include <limits>

#include "op_table.h"

namespace pellucid {

static const std::vector<Sample> kPairs = {{in({}), in({})},
                                           {in({5}), in({})},
                                           {in({0, 3}), in({3})},
                                           {in({3, 4}), in({3, 4})},
                                           {in({3, 4}), in({4})},
                                           {in({3, 1}), in({1, 4})},
                                           {in({2, 3}), in({4, 1, 1})},
                                           {in({2, 0}), in({2, 1})},
                                           {in({33}), in({1})}};

static std::vector<Sample> one(double low, double high) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, {1}, {5}, {0, 3}, {3, 4}, {2, 3, 4}, {33}})
    samples.push_back({in(shape, low, high)});
  return samples;
}

// Away from 0 on both sides, for divisors.
static double away(double x) { return x < 0 ? x - 0.5 : x + 0.5; }

static std::vector<Sample> divided(std::vector<Sample> samples) {
  for (Sample& sample : samples) sample[1].map = away;
  return samples;
}

static std::vector<Sample> rounded(std::vector<Sample> samples) {
  for (Sample& sample : samples)
    for (Input& input : sample) input.map = [](double x) { return x < 0 ? -1.0 : 1.0; };
  return samples;
}

// As 0 and 1 of the dtype of x, so that an op of comparisons has numbers to show.
static Tensor truth(const Tensor& condition, const Tensor& x) {
  return where(condition, full_like(x, {}, 1), full_like(x, {}, 0));
}

// A mask that does not depend on values, which terms() replaces by their magnitudes.
static Tensor odd(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(double(i % 2));
  return from_vector(values, shape, kBool);
}

static std::vector<OpRow> rows_arithmetic() {
  const auto mixed = [](Tensor (*op)(const Tensor&, const Tensor&)) {
    return [op] { op(ones({2}), ones({2}, kFloat64)); };
  };
  const std::string dtypes =
      ": wanted two tensors of one dtype; got float32 of shape (2) and float64 of shape (2); use "
      "astype()";
  return {
      {.name = "add",
       .op = [](L x) { return x[0] + x[1]; },
       .samples = kPairs,
       .y = relative(1),
       .dx = terms(1.01),
       .errors = {{mixed(add), "add" + dtypes},
                  {[] {
                     add(ones({2, 3}), ones({4}));
                   },
                   "add: shapes (2, 3) and (4) do not broadcast: they differ in axis -1"},
                  {[] { add(ones({2}, kInt64), ones({2}, kInt64)); },
                   "add: wanted float32 or float64; got int64"}}},
      {.name = "sub",
       .op = [](L x) { return x[0] - x[1]; },
       .samples = kPairs,
       .y = relative(1),
       .dx = terms(1.01),
       .errors = {{mixed(sub), "sub" + dtypes}}},
      {.name = "mul",
       .op = [](L x) { return x[0] * x[1]; },
       .samples = kPairs,
       .y = relative(1),
       .dx = terms(2.01),
       .errors = {{mixed(mul), "mul" + dtypes}}},
      {.name = "mul of itself",  // the engine adds two gradients
       .op = [](L x) { return x[0] * x[0]; },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(2)},
      {.name = "div",
       .op = [](L x) { return x[0] / x[1]; },
       .samples = divided(kPairs),
       .y = relative(1),
       .dx = terms(4.01),
       .errors = {{mixed(div), "div" + dtypes}}},
      {.name = "neg",
       .op = [](L x) { return -x[0]; },
       .samples = one(-2, 2),
       .y = exact(),
       .dx = exact()},
  };
}

// dy (1 - y^2): the errors of y^2, 4 * 2 + 1 roundings, do not shrink with the difference.
static TensorList tanh_gradient_gauge(const Call& call) {
  NoGradGuard no_grad;
  return {magnitude(call.dy) * (9.0 * call.y * call.y + 2.0)};
}

static std::vector<OpRow> rows_functions() {
  return {
      {.name = "exp",
       .op = [](L x) { return exp(x[0]); },
       .samples = one(-3, 3),
       .y = relative(2),
       .dx = relative(3)},
      {.name = "log",
       .op = [](L x) { return log(x[0]); },
       .samples = one(0.5, 3),
       .y = relative(2),
       .dx = relative(1)},
      {.name = "sqrt",
       .op = [](L x) { return sqrt(x[0]); },
       .samples = one(0.5, 3),
       .y = relative(1),
       .dx = relative(2)},
      {.name = "rsqrt",
       .op = [](L x) { return rsqrt(x[0]); },
       .samples = one(0.5, 3),
       .y = relative(2),
       .dx = relative(9)},
      {.name = "tanh",
       .op = [](L x) { return tanh(x[0]); },
       .samples = one(-2, 2),
       .y = relative(4),
       .dx = tanh_gradient_gauge},
      // x^2 <= 4 is rounded before exp: 4 in the result, 2 for exp, 3 for products and 2 /
      // sqrt(pi).
      {.name = "erf",
       .op = [](L x) { return erf(x[0]); },
       .samples = one(-2, 2),
       .y = relative(4),
       .dx = relative(9)},
  };
}

static std::vector<OpRow> rows_choices() {
  const std::vector<Sample> signs = rounded(kPairs);
  return {
      {.name = "where",
       .op = [](L x) { return where(odd(x[2].shape()), x[0], x[1]); },
       .samples = {{in({}), in({}), in({})},
                   {in({5}), in({}), in({5})},
                   {in({3, 4}), in({4}), in({3, 1})},
                   {in({1, 4}), in({2, 1, 1}), in({3, 1})},
                   {in({0, 3}), in({3}), in({1})}},
       .y = exact(),
       .dx = terms(1.01),
       .errors = {{[] { where(ones({2}), ones({2}), ones({2})); },
                   "where: the condition must be bool; got float32 of shape (2); compare with "
                   "equal() or greater()"},
                  {[] { where(ones({2}, kBool), ones({2}), ones({2}, kInt64)); },
                   "where: wanted two tensors of one dtype; got float32 of shape (2) and int64 of "
                   "shape (2); use astype()"}},
       .zero_gradient = "the third input is there for the shape of the mask"},
      {.name = "equal",
       .op = [](L x) { return truth(equal(x[0], x[1]), x[0]); },
       .samples = signs,
       .y = exact(),
       .errors = {{[] { equal(ones({2}), ones({3})); },
                   "equal: shapes (2) and (3) do not broadcast: they differ in axis -1"}},
       .no_gradient = "the result is bool"},
      {.name = "greater",
       .op = [](L x) { return truth(greater(x[0], x[1]), x[0]); },
       .samples = signs,
       .y = exact(),
       .errors = {{[] { greater(ones({2}), ones({3})); },
                   "greater: shapes (2) and (3) do not broadcast: they differ in axis -1"}},
       .no_gradient = "the result is bool"},
  };
}

static std::vector<OpRow> rows_in_place() {
  return {
      {.name = "add_",
       .op = [](L x) { return add_(x[0] * 1.0, x[1]); },
       .samples = {{in({}), in({})},
                   {in({3, 4}), in({3, 4})},
                   {in({3, 4}), in({4})},
                   {in({3, 4}), in({3, 1})},
                   {in({0, 3}), in({3})},
                   {in({33}), in({})}},
       .y = relative(1),
       .dx = terms(1.01),
       .errors = {{[] {
                     add_(ones({3}), ones({2, 3}));
                   },
                   "add_: shape (2, 3) does not broadcast to (3), the shape of what is written"}}},
      {.name = "mul_",
       .op = [](L x) { return mul_(x[0] * 1.0, -2.5); },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(1)},
      {.name = "copy_",
       .op =
           [](L x) {
             return copy_(full_like(x[0], {2, 3, 4}, 7), x[0]);
           },
       .samples = {{in({2, 3, 4})}, {in({3, 4})}, {in({3, 1})}, {in({})}},
       .y = exact(),
       .dx = terms(1.01),
       .errors = {{[] { copy_(ones({3}), ones({4})); },
                   "copy_: shapes (3) and (4) do not broadcast: they differ in axis -1"},
                  {[] { copy_(ones({3}), ones({3}, kBool)); },
                   "copy_: wanted two tensors of one dtype; got float32 of shape (3) and bool of "
                   "shape (3); use astype()"}}},
      {.name = "copy_ over a result",  // whose own gradient ends there
       .op = [](L x) { return copy_(x[0] * x[0], x[1]) * x[0]; },
       .samples = {{in({3, 4}), in({4})}, {in({5}), in({5})}},
       .y = relative(1),
       .dx = terms(2.01)},
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
                   "dropout: p must be in [0, 1]; got nan"}}},
      {.name = "dropout of nothing",
       .op =
           [](L x) {
             Generator rng;
             return dropout(x[0], 0, rng);
           },
       .samples = one(-2, 2),
       .y = exact(),
       .dx = exact()},
  };
}

std::vector<OpRow> rows_elementwise() {
  std::vector<OpRow> all;
  for (auto rows : {rows_arithmetic, rows_functions, rows_choices, rows_in_place, rows_dropout})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace pellucid
