// The rows of ops that choose or decide (tests/op_table.h): comparisons, logic, tests for NaN,
// rounding to whole numbers, where, clamp, maximum, minimum. All are exact but for the sums over
// what was broadcast.
#include <cmath>

#include "op_samples.h"

namespace pellucid {

// k times the sum of all |terms| for a gradient that is a sum of shares of dy, each >= 0.
static Gauge shares(double k) {
  return [k](const Call& call) {
    TensorList x;
    for (const Tensor& a : call.x) x.push_back(a.detach().set_requires_grad(true));
    TensorList G = grad(call.op(x), x, magnitude(call.dy));
    for (Tensor& dx : G) dx = k * magnitude(dx);
    return G;
  };
}

// ---- Comparisons.

using Compare = Tensor (*)(const Tensor&, double);

static OpRow comparison(const std::string& name, Binary op,
                        std::function<double(double, double)> f) {
  return {.name = name,
          .op = [op](L x) { return truth(op(x[0], x[1]), x[0]); },
          .samples = pairs(in({}, -1, 1, quarters), in({}, -1, 1, quarters)),
          .y = exact(),
          .reference = by_loop(std::move(f)),
          .errors = pair_errors(name, op),
          .lanes = Lanes::kEach,
          .no_gradient = "the result is bool",
          .nan_lost = "the result is bool"};
}
static OpRow with_number(const std::string& name, Compare op,
                         std::function<double(double, double)> f) {
  const auto error = [&](DType dtype, double value, const std::string& text) {
    return ErrorSample{[=] { op(ones({2}, dtype), value); }, name + ": " + text};
  };
  return {
      .name = name + " with a number",
      .op = [op](L x) { return truth(op(x[0], 0.25), x[0]); },
      .samples = one(-1, 1, quarters),
      .y = exact(),
      .reference = by_loop([f](double x) { return f(x, 0.25); }),
      .errors = {error(kInt64, 0.5, "0.5 is no whole number of at most 2^53, as int64 wants it"),
                 error(kInt64, NAN, "nan is no whole number of at most 2^53, as int64 wants it"),
                 error(kBool, 2, "2 is no bool")},
      .lanes = Lanes::kEach,
      .no_gradient = "the result is bool",
      .nan_lost = "the result is bool",
      .no_dtypes = "the number has a fraction"};
}

static std::vector<OpRow> rows_comparisons() {
  struct {
    const char* name;
    Binary op;
    Compare number;
    double (*f)(double, double);
  } const all[] = {
      {"equal", equal, equal, [](double a, double b) { return double(a == b); }},
      {"not_equal", not_equal, not_equal, [](double a, double b) { return double(a != b); }},
      {"greater", greater, greater, [](double a, double b) { return double(a > b); }},
      {"greater_equal", greater_equal, greater_equal,
       [](double a, double b) { return double(a >= b); }},
      {"less", less, less, [](double a, double b) { return double(a < b); }},
      {"less_equal", less_equal, less_equal, [](double a, double b) { return double(a <= b); }}};
  std::vector<OpRow> rows;
  for (const auto& c : all) {
    rows.push_back(comparison(c.name, c.op, c.f));
    rows.push_back(with_number(c.name, c.number, c.f));
  }
  return rows;
}

// ---- Logic and tests for NaN.

static OpRow logic(const std::string& name, Binary op, std::function<double(double, double)> f) {
  return {.name = name,
          .op = [op](L x) { return truth(op(greater(x[0], 0), greater(x[1], 0)), x[0]); },
          .samples = pairs(),
          .y = exact(),
          .reference = by_loop(std::move(f)),
          .errors = {{[op] { op(ones({2}), ones({2}, kBool)); },
                      name + ": wanted bool; got float32 of shape (2); compare first, as in "
                             "not_equal(x, 0)"},
                     {[op] { op(ones({2}, kBool), ones({3}, kInt64)); },
                      name + ": wanted bool; got int64 of shape (3); compare first, as in "
                             "not_equal(x, 0)"},
                     {[op] {
                        op(ones({2, 3}, kBool), ones({4}, kBool));
                      },
                      name + ": shapes (2, 3) and (4) do not broadcast: they differ in axis -1"}},
          .lanes = Lanes::kEach,
          .no_gradient = "the result is bool",
          .nan_lost = "the result is bool",
          .no_dtypes = "truth() wants the dtype of x[0] only"};
}

// Some of each: numbers, infinities, NaN.
static double special(double x) {
  return x < -0.7 ? -HUGE_VAL : x < 0.4 ? x : x < 0.7 ? HUGE_VAL : NAN;
}
static OpRow predicate(const std::string& name, Unary op, std::function<double(double)> f) {
  OpRow row = unary_row(name, op, one(-1, 1, special), exact(), nullptr, std::move(f));
  row.op = [op](L x) { return truth(op(x[0]), x[0]); };
  row.no_gradient = row.nan_lost = "the result is bool";
  return row;
}
// Halves, on which rounding has to decide.
static double halves(double x) { return double(int64_t(2 * x)) / 2; }
static OpRow step(const std::string& name, Unary op, std::function<double(double)> f) {
  std::vector<Sample> samples = one(-4, 4), more = one(-4, 4, halves);
  samples.insert(samples.end(), more.begin(), more.end());
  OpRow row = unary_row(name, op, samples, exact(), nullptr, std::move(f));
  row.no_gradient = "a step function: the result has no history";
  return row;
}

static std::vector<OpRow> rows_tests() {
  return {
      logic("logical_and", logical_and, [](double a, double b) { return double(a > 0 && b > 0); }),
      logic("logical_or", logical_or, [](double a, double b) { return double(a > 0 || b > 0); }),
      logic("logical_xor", logical_xor,
            [](double a, double b) { return double((a > 0) != (b > 0)); }),
      {.name = "logical_not",
       .op = [](L x) { return truth(logical_not(greater(x[0], 0)), x[0]); },
       .samples = one(-1, 1),
       .y = exact(),
       .reference = by_loop([](double x) { return double(!(x > 0)); }),
       .errors = {{[] { logical_not(ones({2})); },
                   "logical_not: wanted bool; got float32 of shape (2); compare first, as in "
                   "not_equal(x, 0)"}},
       .lanes = Lanes::kEach,
       .no_gradient = "the result is bool",
       .nan_lost = "the result is bool"},
      predicate("isnan", isnan, [](double x) { return double(std::isnan(x)); }),
      predicate("isinf", isinf, [](double x) { return double(std::isinf(x)); }),
      predicate("isfinite", isfinite, [](double x) { return double(std::isfinite(x)); }),
      step("sign", sign, [](double x) { return double((x > 0) - (x < 0)); }),
      step("floor", floor, [](double x) { return std::floor(x); }),
      step("ceil", ceil, [](double x) { return std::ceil(x); }),
      step("round", round,
           [](double x) { return std::remainder(x, 1.0) == 0 ? x : x - std::remainder(x, 1.0); }),
  };
}

// ---- Choices.

// A mask that does not depend on values, which terms() replaces by their magnitudes.
static Tensor odd(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(double(i % 2));
  return from_vector(values, shape, kBool);
}

static std::vector<OpRow> rows_where() {
  return {
      {.name = "where",  // not in lanes: its mask tells places apart
       .op = [](L x) { return where(odd(x[2].shape()), x[0], x[1]); },
       .samples = {{in({}), in({}), in({})},
                   {in({5}), in({}), in({5})},
                   {in({3, 4}), in({4}), in({3, 1})},
                   {in({1, 4}), in({2, 1, 1}), in({3, 1})},
                   {in({17, 31}), in({17, 31}), in({31})},
                   {in({33}), in({1}), in({33})},
                   {in({1}), in({1}), in({1})},
                   {in({0, 3}), in({3}), in({1})}},
       .y = exact(),
       .dx = terms(1.01),
       .errors = {{[] { where(ones({2}), ones({2}), ones({2})); },
                   "where: the condition must be bool; got float32 of shape (2); compare with "
                   "equal() or greater()"},
                  {[] { where(ones({2}, kBool), ones({2}), ones({2}, kInt64)); },
                   "where: wanted two tensors of one dtype; got float32 of shape (2) and int64 of "
                   "shape (2); use astype()"},
                  {[] { where(ones({3}, kBool), ones({2}), ones({})); },
                   "where: shapes (3) and (2) do not broadcast: they differ in axis -1"}},
       .zero_gradient = "the third input is there for the shape of the mask"},
      {.name = "where by values",
       .op = [](L x) { return where(greater(x[0], x[1]), x[0], x[1]); },
       .samples = pairs(in({}, -1, 1, quarters),
                        in({}, -1, 1, [](double x) { return quarters(x) + 0.125; })),
       .y = exact(),
       .dx = shares(1.01),
       .reference = by_loop([](double a, double b) { return a > b ? a : b; }),
       .errors = {{[] { where(ones({2}, kBool), ones({2}), ones({3})); },
                   "where: shapes (2) and (3) do not broadcast: they differ in axis -1"}},
       .lanes = Lanes::kEach,
       .nan_lost = "a NaN is not greater, so that the other is taken",
       .no_dtypes = "the first of its ops is greater"},
  };
}

static OpRow extremum(const std::string& name, Binary op, std::function<double(double, double)> f) {
  OpRow row = binary_row(
      name, op,
      pairs(in({}, -1, 1, quarters), in({}, -1, 1, [](double x) { return quarters(x) + 0.125; })),
      shares(1.01), std::move(f));
  row.y = exact();
  return row;
}

// Not near the bounds, -0.5 and 0.75.
static double off_bounds(double x) { return quarters(x) + 0.125; }

static std::vector<OpRow> rows_extrema() {
  const auto clamped = [](const std::string& name, double low, double high) {
    return OpRow{.name = name,
                 .op = [=](L x) { return clamp(x[0], low, high); },
                 .samples = one(-2, 2, off_bounds),
                 .y = exact(),
                 .dx = exact(),
                 .reference = by_loop([=](double x) { return std::min(std::max(x, low), high); }),
                 .errors = {{[] { clamp(ones({2}), 1, 0.5); },
                             "clamp: low must be at most high; got low 1, high 0.5"},
                            {[] { clamp(ones({2}), NAN, 1); },
                             "clamp: low must be at most high; got low nan, high 1"},
                            refuses(
                                "clamp", [](const Tensor& x) { clamp(x, 0, 1); }, kInt64)},
                 .lanes = Lanes::kEach};
  };
  return {
      clamped("clamp", -0.5, 0.75),
      clamped("clamp from below", -0.5, HUGE_VAL),
      clamped("clamp from above", -HUGE_VAL, 0.75),
      extremum("maximum", maximum, [](double a, double b) { return std::max(a, b); }),
      extremum("minimum", minimum, [](double a, double b) { return std::min(a, b); }),
  };
}

std::vector<OpRow> rows_choice() {
  std::vector<OpRow> all;
  for (auto rows : {rows_comparisons, rows_tests, rows_where, rows_extrema})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

}  // namespace pellucid
