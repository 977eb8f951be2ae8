// The rows of the reductions (tests/op_table.h). A sum of float32 is added in double and rounded
// once: n <= 300 terms err by (1 + 300 2^-29) u sum |terms|; the float64 run, judged by 2^-45, may
// err by 256 roundings, and adds in blocks and a tree. References are loops over to_vector().
#include <cmath>

#include "op_table.h"

namespace pellucid {

static const Gauge kSum = terms(1.01);
static const char* const kOrder = "the terms are added in memory order";

static std::vector<Sample> shapes(const std::vector<Shape>& list, double low = -1,
                                  double high = 1) {
  std::vector<Sample> samples;
  for (const Shape& shape : list) samples.push_back({in(shape, low, high)});
  return samples;
}
static const std::vector<Shape> kAny = {{},     {1},       {5},       {0, 3},       {3, 4},
                                        {2, 0}, {2, 3, 4}, {1, 4, 1}, {3, 1, 2, 2}, {33}};
// At least two dimensions, for reductions over the first, the last, or both.
static const std::vector<Shape> kMatrices = {{3, 4},    {1, 5},    {5, 1},      {0, 3},
                                             {3, 0},    {2, 3, 4}, {31, 2},     {2, 33},
                                             {1, 2, 1}, {129, 2},  {2, 1, 3, 2}};

// y, multiplied by itself: so that the second derivative is not 0 everywhere.
static Tensor squared(const Tensor& y) { return y * y; }

// Reduces the dimensions of dims with a loop: f gets the elements of each group, in order.
using Fold = std::function<double(const std::vector<double>&)>;
static Tensor folded(const Tensor& x, const Dims& dims, bool keepdim, const Fold& f) {
  const unsigned mask = dims.mask("folded", x);
  Shape shape;
  for (int d = 0; d < x.dim(); ++d)
    if (!(mask >> d & 1) || keepdim) shape.push_back(mask >> d & 1 ? 1 : x.size(d));
  std::vector<std::vector<double>> groups(static_cast<std::size_t>(shape.numel()));
  const std::vector<double> values = x.to_vector();
  for (int64_t i = 0; i < x.numel(); ++i) {
    int64_t group = 0, step = 1, rest = i;
    for (int d = x.dim() - 1; d >= 0; rest /= x.size(d--)) {
      if (mask >> d & 1) continue;
      group += rest % x.size(d) * step, step *= x.size(d);
    }
    groups[static_cast<std::size_t>(group)].push_back(values[static_cast<std::size_t>(i)]);
  }
  std::vector<double> y;
  for (const std::vector<double>& group : groups) y.push_back(f(group));
  return from_vector(y, shape, x.dtype());
}
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
       .errors = {{[] { sum(ones({2}, kInt64)); }, "sum: wanted float32 or float64; got int64"},
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
       .errors = {{[] { mean(ones({2}, kBool)); }, "mean: wanted float32 or float64; got bool"}},
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

static std::vector<OpRow> rows_largest() {
  return {
      {.name = "row_max",
       .op = [](L x) { return row_max(x[0]); },
       .samples = shapes({{1}, {5}, {0, 3}, {3, 4}, {2, 3, 33}, {4, 1}}),
       .y = exact(),
       .errors = {{[] {
                     row_max(ones({0, 0}));
                   },
                   "row_max: the last dimension must have elements, the largest of none is "
                   "undefined; got (0, 0)"},
                  {[] { row_max(ones({})); },
                   "row_max: the last dimension must have elements, the largest of none is "
                   "undefined; got ()"}},
       .no_gradient = "row_max only shifts what softmax would overflow on: its value cancels"},
  };
}

std::vector<OpRow> rows_reduce() {
  std::vector<OpRow> rows;
  for (auto part : {rows_sums, rows_means, rows_largest})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
