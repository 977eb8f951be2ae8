// The rows of the reductions (tests/op_table.h). A sum of float32 is added in double and rounded
// once: n <= 300 terms err by (1 + 300 2^-29) u sum |terms|; the float64 run, judged by 2^-45, may
// err by 256 roundings, and adds in blocks and a tree. References are loops over to_vector().
#include <cmath>

#include "op_table.h"

namespace pellucid {

static const Gauge kSum = terms(1.01);
static const char* const kOrder = "the terms are added in memory order";

static const std::vector<Shape> kAny = {{},     {1},       {5},       {0, 3},       {3, 4},
                                        {2, 0}, {2, 3, 4}, {1, 4, 1}, {3, 1, 2, 2}, {33}};
// At least two dimensions, for reductions over the first, the last, or both.
static const std::vector<Shape> kMatrices = {{3, 4},    {1, 5},    {5, 1},      {0, 3},
                                             {3, 0},    {2, 3, 4}, {31, 2},     {2, 33},
                                             {1, 2, 1}, {129, 2},  {2, 1, 3, 2}};

// y, multiplied by itself: so that the second derivative is not 0 everywhere.
static Tensor squared(const Tensor& y) { return y * y; }

static double total(const std::vector<double>& x) {
  double sum = 0;
  for (double v : x) sum += v;
  return sum;
}
static double average(const std::vector<double>& x) {
  return total(x) / static_cast<double>(x.size());
}

static std::vector<OpRow> rows_sums() {
  return {
      {.name = "sum",
       .op = [](L x) { return sum(x[0]); },
       .samples = shapes(kAny),
       .y = kSum,
       .dx = exact(),
       .reference = [](L x) { return folded(x[0], {}, false, total); },
       .errors = {{[] { sum(ones({2}, kInt64)); },
                   "sum: wanted float32 or float64; got int64; use astype()"},
                  {[] { sum(Tensor()); },
                   "this tensor is undefined: a handle that was given no value, or a gradient "
                   "before backward"}},
       .layout_changes_bits = kOrder},
      {.name = "sum dim",
       .op = [](L x) { return squared(sum(x[0], 0)); },
       .samples = shapes({{5}, {1}, {0, 3}, {3, 0}, {3, 4}, {2, 3, 4}, {31, 2}, {129, 2}}),
       .y = both(relative(1), terms(2.1)),
       .dx = both(relative(1), terms(2.1)),
       .reference = [](L x) { return squared(folded(x[0], 0, false, total)); },
       .errors = {{[] {
                     sum(ones({2, 3}), 2);
                   },
                   "sum: dimension 2 is outside [-2, 2) of shape (2, 3)"},
                  {[] { sum(ones({}), 0); }, "sum: dimension 0 is outside [0, 0) of shape ()"}},
       .layout_changes_bits = kOrder},
      {.name = "sum keepdim",
       .op = [](L x) { return sum(x[0], -1, true); },
       .samples = shapes({{5}, {3, 4}, {2, 3, 4}, {2, 0}, {3, 65}, {1}, {17, 1}}),
       .y = kSum,
       .dx = exact(),
       .reference = [](L x) { return folded(x[0], -1, true, total); },
       .errors = {{[] {
                     sum(ones({2, 3}), -3, true);
                   },
                   "sum: dimension -3 is outside [-2, 2) of shape (2, 3)"}},
       .layout_changes_bits = kOrder},
      {.name = "sum dims",
       .op =
           [](L x) {
             return squared(sum(x[0], {-1, 0}));
           },
       .samples = shapes(kMatrices),
       .y = both(relative(1), terms(2.1)),
       .dx = both(relative(1), terms(2.1)),
       .reference =
           [](L x) {
             return squared(folded(x[0], {0, -1}, false, total));
           },
       .errors = {{[] {
                     sum(ones({2, 3}), {0, -2});
                   },
                   "sum: dimension -2 of shape (2, 3) is named twice"},
                  {[] {
                     sum(ones({2, 3}), {0, 5});
                   },
                   "sum: dimension 5 is outside [-2, 2) of shape (2, 3)"}},
       .layout_changes_bits = kOrder},
      {.name = "sum_to",
       .op =
           [](L x) {
             return sum_to(x[0], {3, 1});
           },
       .samples = shapes(
           {{3, 1}, {3, 4}, {2, 3, 4}, {2, 2, 3, 5}, {0, 3, 2}, {1, 3, 1}, {3, 0}, {2, 3, 17}}),
       .y = kSum,
       .dx = exact(),
       .errors = {{[] {
                     sum_to(ones({2, 3}), {2});
                   },
                   "sum_to: shape (2, 3) does not reduce to (2): each size, from the last, must be "
                   "equal or 1"},
                  {[] {
                     sum_to(ones({3}), {1, 3});
                   },
                   "sum_to: shape (3) does not reduce to (1, 3): each size, from the last, must be "
                   "equal or 1"}},
       .layout_changes_bits = kOrder},
  };
}

// The sum, rounded once, and the division: two roundings; the gradient is one division.
static std::vector<OpRow> rows_means() {
  return {
      {.name = "mean",
       .op = [](L x) { return mean(x[0]); },
       .samples = shapes({{}, {1}, {5}, {3, 4}, {2, 3, 4}, {33}, {17, 3}}),
       .y = terms(2.01),
       .dx = relative(1),
       .reference = [](L x) { return folded(x[0], {}, false, average); },
       .errors = {{[] { mean(ones({2}, kBool)); },
                   "mean: wanted float32 or float64; got bool; use astype()"}},
       .layout_changes_bits = kOrder},
      {.name = "mean dim",
       .op = [](L x) { return mean(x[0], 1, true); },
       .samples = shapes({{3, 4}, {2, 1}, {2, 3, 4}, {0, 3}, {2, 127}, {3, 31}}),
       .y = terms(2.01),
       .dx = relative(1),
       .reference = [](L x) { return folded(x[0], 1, true, average); },
       .errors = {{[] {
                     mean(ones({2, 3}), -3);
                   },
                   "mean: dimension -3 is outside [-2, 2) of shape (2, 3)"}},
       .layout_changes_bits = kOrder},
      {.name = "mean dims",
       .op =
           [](L x) {
             return squared(mean(x[0], {0, -1}));
           },
       .samples = shapes({{3, 4}, {1, 5}, {5, 1}, {2, 3, 4}, {31, 2}, {1, 2, 1}, {2, 1, 3, 2}}),
       .y = both(relative(1), terms(4.1)),
       .dx = both(relative(1), terms(5.1)),
       .reference =
           [](L x) {
             return squared(folded(x[0], {0, -1}, false, average));
           },
       .errors = {{[] {
                     mean(ones({2, 3}), {1, 1});
                   },
                   "mean: dimension 1 of shape (2, 3) is named twice"}},
       .layout_changes_bits = kOrder},
  };
}

static double away(double x) { return x < 0 ? x - 0.4 : x + 0.4; }  // from 0
static std::vector<Sample> apart(const std::vector<Shape>& list) {
  std::vector<Sample> samples;
  for (const Shape& shape : list) samples.push_back({in(shape, -1, 1, away)});
  return samples;
}

// A product of n factors has n - 1 roundings, and so has each gradient with dy.
static TensorList prod_gauge(const Call& call) {
  const double n = static_cast<double>(call.x[0].numel()) /
                   std::max<double>(1, static_cast<double>(call.y.numel()));
  return relative(std::max(1.0, n))(call);
}
static double product(const std::vector<double>& x) {
  double y = 1;
  for (double v : x) y *= v;
  return y;
}

static std::vector<OpRow> rows_prod() {
  return {
      {.name = "prod",
       .op = [](L x) { return prod(x[0]); },
       .samples = shapes(kAny, 0.5, 1.5),
       .y = prod_gauge,
       .dx = prod_gauge,
       .reference = [](L x) { return folded(x[0], {}, false, product); },
       .errors = {{[] { prod(ones({2}, kInt64)); },
                   "prod: wanted float32 or float64; got int64; use astype()"}}},
      {.name = "prod dim",
       .op = [](L x) { return prod(x[0], 0, true); },
       .samples = apart({{5}, {1}, {0, 3}, {3, 0}, {3, 4}, {2, 3, 4}, {11, 2}, {17, 3}}),
       .y = prod_gauge,
       .dx = prod_gauge,
       .reference = [](L x) { return folded(x[0], 0, true, product); },
       .errors = {{[] {
                     prod(ones({2, 3}), 2);
                   },
                   "prod: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "prod dims",
       .op =
           [](L x) {
             return prod(x[0], {0, -1});
           },
       .samples =
           apart({{3, 4}, {1, 5}, {5, 1}, {0, 3}, {3, 0}, {2, 3, 4}, {1, 2, 1}, {2, 1, 3, 2}}),
       .y = prod_gauge,
       .dx = prod_gauge,
       .reference =
           [](L x) {
             return folded(x[0], {0, -1}, false, product);
           },
       .errors = {{[] {
                     prod(ones({2, 3}), {0, 0});
                   },
                   "prod: dimension 0 of shape (2, 3) is named twice"}}},
  };
}

// ---- Deviations.

// Each c = (x - x_0) - m, m the mean of x - x_0, errs by e = |c| + |x - x_0| + 2 |m| + mean |x -
// x_0|. So c^2 errs by 2 |c| e + c^2, their sum and the division by two roundings more; and the
// gradient g = 2 dy c / (n - correction), from which its mean, 0 but for errors, is subtracted, by
// 2 |dy| / (n - correction) times (4 |c| + e) and the mean of that.
struct Deviations {
  Tensor c, e, y;
  double divisor;
  Deviations(const Tensor& x, const Dims& dims, double correction) {
    const unsigned mask = dims.mask("var", x);
    Tensor first = x;
    double n = 1;
    for (int d = 0; d < x.dim(); ++d)
      if (mask >> d & 1) first = slice(first, d, 0, 1), n *= static_cast<double>(x.size(d));
    const Tensor a = x - first, m = mean(a, dims, true), size = mean(magnitude(a), dims, true);
    c = a - m;
    e = magnitude(c) + magnitude(a) + 2.0 * magnitude(m) + size;
    divisor = n - correction;
    y = (sum(2.0 * magnitude(c) * e + c * c, dims, true) + 2.0 * sum(c * c, dims, true)) / divisor;
  }
};
static Gauge var_gauge(const Dims& dims, double correction) {
  return [=](const Call& call) {
    const Deviations v(call.x[0].detach(), dims, correction);
    if (!call.dy.defined()) return TensorList{reshape(v.y, call.y.shape())};
    const Tensor t = 4.0 * magnitude(v.c) + v.e;
    const Tensor dy = magnitude(reshape(call.dy, v.y.shape()));
    return TensorList{2.0 / v.divisor * dy * (t + mean(t, dims, true))};
  };
}
// s = |c| / sqrt(divisor): of itself |c| errs by 4 roundings (see norm), the root and the quotient
// by one each, and by sum |c| e / sum c^2 for the errors of c. The gradient is dy c / (s divisor):
// 5 roundings more, and those of s.
static Gauge stddev_gauge(const Dims& dims, double correction) {
  return [=](const Call& call) {
    const Deviations v(call.x[0].detach(), dims, correction);
    const Tensor var = sum(v.c * v.c, dims, true) / v.divisor, s = sqrt(var);
    const Tensor c = magnitude(v.c);
    const Tensor share = sum(c * v.e, dims, true) / sum(c * c, dims, true) + 6.01;
    if (!call.dy.defined()) return TensorList{reshape(share * s, call.y.shape())};
    const Tensor t = (5.0 + share) * c + v.e;
    const Tensor dy = magnitude(reshape(call.dy, v.y.shape()));
    return TensorList{dy / (s * v.divisor) * (t + mean(t, dims, true))};
  };
}
static Fold spread(double correction, bool root) {
  return [=](const std::vector<double>& x) {
    double squares = 0;
    for (double v : x) squares += (v - average(x)) * (v - average(x));
    squares /= static_cast<double>(x.size()) - correction;
    return root ? std::sqrt(squares) : squares;
  };
}

static std::vector<OpRow> rows_deviations() {
  return {
      {.name = "var",
       .op = [](L x) { return var(x[0]); },
       .samples = shapes({{2}, {5}, {3, 4}, {2, 3, 4}, {1, 4, 1}, {33}, {17, 3}}),
       .y = var_gauge({}, 1),
       .dx = var_gauge({}, 1),
       .reference = [](L x) { return folded(x[0], {}, false, spread(1, false)); },
       .errors = {{[] { var(ones({2}, kInt64)); },
                   "var: wanted float32 or float64; got int64; use astype()"}},
       .layout_changes_bits = kOrder},
      {.name = "var of large numbers",
       .op = [](L x) { return var(x[0], -1, true, 0); },
       .samples = shapes({{1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {33}, {2, 127}}, 1000, 1001),
       .y = var_gauge(-1, 0),
       .dx = var_gauge(-1, 0),
       .reference = [](L x) { return folded(x[0], -1, true, spread(0, false)); },
       .errors = {{[] {
                     var(ones({2, 3}), 2);
                   },
                   "var: dimension 2 is outside [-2, 2) of shape (2, 3)"}},
       .layout_changes_bits = kOrder},
      {.name = "stddev",
       .op =
           [](L x) {
             return stddev(x[0], {0, -1});
           },
       .samples = shapes({{3, 4}, {1, 5}, {5, 1}, {2, 3, 4}, {31, 2}, {2, 33}, {2, 1, 3, 2}}),
       .y = stddev_gauge({0, -1}, 1),
       .dx = stddev_gauge({0, -1}, 1),
       .reference =
           [](L x) {
             return folded(x[0], {0, -1}, false, spread(1, true));
           },
       .errors = {{[] {
                     stddev(ones({2, 3}), {1, -1});
                   },
                   "stddev: dimension -1 of shape (2, 3) is named twice"},
                  {[] {
                     stddev(ones({2, 3}), -3);
                   },
                   "stddev: dimension -3 is outside [-2, 2) of shape (2, 3)"},
                  {[] { stddev(ones({2}, kBool)); },
                   "stddev: wanted float32 or float64; got bool; use astype()"}},
       .layout_changes_bits = kOrder},
  };
}

// p = 2: x / scale, its square, their sum, the root, times scale: 1, 3, 4, 3 and 4 roundings of
// itself. Its gradient dy (x / y): 6.
static std::vector<OpRow> rows_norms() {
  const auto length = [](const std::vector<double>& x) {
    double y = 0;
    for (double v : x) y = std::hypot(y, v);
    return y;
  };
  const auto absolute = [](const std::vector<double>& x) {
    double y = 0;
    for (double v : x) y += std::abs(v);
    return y;
  };
  const auto furthest = [](const std::vector<double>& x) {
    double y = 0;
    for (double v : x) y = std::max(y, std::abs(v));
    return y;
  };
  return {
      {.name = "norm",
       .op = [](L x) { return norm(x[0]); },
       .samples = apart(kAny),
       .y = relative(4.01),
       .dx = relative(6.01),
       .reference = [=](L x) { return folded(x[0], {}, false, length); },
       .errors = {{[] { norm(ones({2}, kInt64)); },
                   "norm: wanted float32 or float64; got int64; use astype()"}},
       .layout_changes_bits = kOrder},
      {.name = "norm dims",
       .op =
           [](L x) {
             return norm(x[0], {0, -1}, true);
           },
       .samples = apart(kMatrices),
       .y = relative(4.01),
       .dx = relative(6.01),
       .reference =
           [=](L x) {
             return folded(x[0], {0, -1}, true, length);
           },
       .errors = {{[] {
                     norm(ones({2, 3}), 2);
                   },
                   "norm: dimension 2 is outside [-2, 2) of shape (2, 3)"},
                  {[] {
                     norm(ones({2, 3}), {1, 1});
                   },
                   "norm: dimension 1 of shape (2, 3) is named twice"}},
       .layout_changes_bits = kOrder},
      {.name = "norm p = 1",
       .op = [](L x) { return norm(x[0], -1, false, 1); },
       .samples = apart({{1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {3, 0}, {33}, {2, 127}}),
       .y = relative(1.01),
       .dx = exact(),
       .reference = [=](L x) { return folded(x[0], -1, false, absolute); },
       .errors = {{[] {
                     norm(ones({2, 3}), 0, false, 3);
                   },
                   "norm: p must be 1, 2 or inf; got 3"}},
       .layout_changes_bits = kOrder},
      {.name = "norm p = inf",
       .op = [](L x) { return norm(x[0], 0, false, HUGE_VAL); },
       .samples = apart({{1}, {5}, {3, 4}, {2, 3, 4}, {3, 0}, {17}}),
       .y = exact(),
       .dx = relative(1),
       .reference = [=](L x) { return folded(x[0], 0, false, furthest); },
       .errors = {{[] {
                     norm(ones({0, 3}), 0, false, HUGE_VAL);
                   },
                   "norm: there is none among no elements; got shape (0, 3)"}}},
  };
}

// S errs by sum_i p_i (|x_i - m| + 2) + 1 of itself, log S by 2 |log S| too, the last sum by |y|.
// In the gradient dy / S e^(x - m): S, the quotient, |x - m| + 2 for exp, the product.
static Gauge logsumexp_gauge(const Dims& dims) {
  return [dims](const Call& call) {
    const Tensor x = call.x[0].detach(), m = amax(x, dims, true), y = logsumexp(x, dims, true);
    const Tensor p = exp(x - y), S = sum(p * (m - x), dims, true) + 3.0;
    if (!call.dy.defined())
      return TensorList{reshape(S + 2.0 * magnitude(y - m) + magnitude(y), call.y.shape())};
    const Tensor dy = magnitude(reshape(call.dy, y.shape()));
    return TensorList{dy * p * (S + 1.0 + (m - x) + 2.0 + 1.0)};
  };
}
static double log_sum_exp(const std::vector<double>& x) {
  double s = 0;
  for (double v : x) s += std::exp(v);
  return std::log(s);
}

static std::vector<OpRow> rows_logarithms() {
  return {
      {.name = "logsumexp",
       .op = [](L x) { return logsumexp(x[0]); },
       .samples = shapes({{}, {1}, {5}, {3, 4}, {2, 3, 4}, {1, 4, 1}, {33}}, -3, 3),
       .y = logsumexp_gauge({}),
       .dx = logsumexp_gauge({}),
       .reference = [](L x) { return folded(x[0], {}, false, log_sum_exp); },
       .errors = {{[] { logsumexp(ones({2}, kInt64)); },
                   "logsumexp: wanted float32 or float64; got int64; use astype()"}},
       .layout_changes_bits = kOrder},
      {.name = "logsumexp dims",
       .op =
           [](L x) {
             return logsumexp(x[0], {0, -1}, true);
           },
       .samples = shapes(
           {{3, 4}, {1, 5}, {5, 1}, {2, 3, 4}, {31, 2}, {2, 33}, {2, 1, 3, 2}, {2, 0, 3}}, -5, 5),
       .y = logsumexp_gauge({0, -1}),
       .dx = logsumexp_gauge({0, -1}),
       .reference =
           [](L x) {
             return folded(x[0], {0, -1}, true, log_sum_exp);
           },
       .errors = {{[] {
                     logsumexp(ones({2, 3}), {0, 2});
                   },
                   "logsumexp: dimension 2 is outside [-2, 2) of shape (2, 3)"},
                  {[] {
                     logsumexp(ones({2, 3}), {0, -2});
                   },
                   "logsumexp: dimension -2 of shape (2, 3) is named twice"}},
       .layout_changes_bits = kOrder},
      {.name = "cumsum",
       .op = [](L x) { return squared(cumsum(x[0], -1)); },
       .samples = shapes({{1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {3, 0}, {33}, {2, 129}, {200, 129}}),
       .y = both(relative(1), terms(2.1)),
       .dx = both(relative(1), terms(4.1)),
       .reference =
           [](L x) {
             std::vector<double> y = x[0].to_vector();
             const auto C = static_cast<std::size_t>(x[0].size(-1));
             for (std::size_t i = 0; i < y.size(); ++i)
               if (i % C > 0) y[i] += y[i - 1];
             return squared(from_vector(y, x[0].shape(), kFloat64));
           },
       .errors = {{[] {
                     cumsum(ones({2, 3}), 2);
                   },
                   "cumsum: dimension 2 is outside [-2, 2) of shape (2, 3)"},
                  {[] { cumsum(ones({}), 0); },
                   "cumsum: dimension 0 is outside [0, 0) of shape ()"},
                  {[] { cumsum(ones({2}, kInt64), 0); },
                   "cumsum: wanted float32 or float64; got int64; use astype()"}}},
      {.name = "cumsum of columns",
       .op = [](L x) { return cumsum(x[0], 0); },
       .samples = shapes({{1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {3, 0}, {31, 2}, {129, 2}}),
       .y = kSum,
       .dx = kSum,
       .errors = {{[] {
                     cumsum(ones({2, 3}), -3);
                   },
                   "cumsum: dimension -3 is outside [-2, 2) of shape (2, 3)"}}},
  };
}

std::vector<OpRow> rows_reduce() {
  std::vector<OpRow> rows;
  for (auto part : {rows_sums, rows_means, rows_prod, rows_deviations, rows_norms, rows_logarithms})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
