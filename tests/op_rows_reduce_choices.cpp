// The rows of the reductions that choose: the largest, the smallest, where they are, all and any
// (tests/op_table.h). What is chosen is exact, and without ties its gradient too. References are
// loops.
#include "op_table.h"

namespace pellucid {

// The place of the first of the largest of sign x.
static Tensor place(const Tensor& x, const Dims& dims, bool keepdim, double sign) {
  const Tensor y = folded(x, dims, keepdim, [sign](const std::vector<double>& v) {
    std::size_t at = 0;
    for (std::size_t i = 0; i < v.size(); ++i)
      if (sign * v[i] > sign * v[at]) at = i;
    return static_cast<double>(at);
  });
  return astype(y, kInt64);
}
static Fold largest(double sign) {
  return [sign](const std::vector<double>& x) {
    double y = x[0];
    for (double v : x)
      if (sign * v > sign * y) y = v;
    return y;
  };
}

static OpRow chosen_row(const std::string& name, const std::function<Tensor(L)>& op,
                        const Dims& dims, bool keepdim, double sign, const std::vector<Shape>& list,
                        std::vector<ErrorSample> errors) {
  return {.name = name,
          .op = op,
          .samples = shapes(list),
          .y = exact(),
          .dx = exact(),  // without ties
          .reference = [=](L x) { return folded(x[0], dims, keepdim, largest(sign)); },
          .errors = std::move(errors)};
}
static OpRow place_row(const std::string& name, const std::function<Tensor(L)>& op,
                       const Dims& dims, bool keepdim, double sign, const std::vector<Shape>& list,
                       std::vector<ErrorSample> errors) {
  OpRow row = chosen_row(name, op, dims, keepdim, sign, list, std::move(errors));
  row.reference = [=](L x) { return place(x[0], dims, keepdim, sign); };
  row.no_gradient = "the result is int64";
  return row;
}

static std::vector<OpRow> rows_extremes() {
  const std::vector<Shape> whole = {{}, {1}, {5}, {3, 4}, {2, 3, 4}, {1, 4, 1}, {33}};
  const std::vector<Shape> first = {{1}, {5}, {3, 4}, {2, 3, 4}, {3, 0}, {17, 2}, {31}};
  const std::vector<Shape> last = {{1},    {5},     {3, 4},  {2, 3, 4},
                                   {0, 3}, {2, 17}, {31, 1}, {200, 129}};
  const std::vector<Shape> several = {{3, 4},    {1, 5},       {5, 1},   {2, 3, 4},
                                      {1, 2, 1}, {2, 1, 3, 2}, {2, 0, 3}};
  const auto none = [](const std::string& op, const std::string& shape) {
    return op + ": there is none among no elements; got shape " + shape;
  };
  const auto dtype = [](const std::string& op) {
    return op + ": wanted float32 or float64; got int64; use astype()";
  };
  const auto outside = [](const std::string& op) {
    return op + ": dimension 2 is outside [-2, 2) of shape (2, 3)";
  };
  const Tensor whole_numbers = ones({2, 3}, kInt64), matrix = ones({2, 3}),
               empty_one = ones({2, 0});
  return {
      chosen_row("amax",
                 [](L x) {
                   return amax(x[0], {0, -1}, true);
                 },
                 {0, -1}, true, 1, several,
                 {{[=] { amax(empty_one, 1); }, none("amax", "(2, 0)")},
                  {[=] { amax(empty_one); }, none("amax", "(2, 0)")},
                  {[=] { amax(whole_numbers); }, dtype("amax")},
                  {[=] { amax(matrix, 2); }, outside("amax")},
                  {[=] {
                     amax(matrix, {0, -2});
                   },
                   "amax: dimension -2 of shape (2, 3) is named twice"}}),
      chosen_row("amin",
                 [](L x) {
                   return amin(x[0], {0, -1});
                 },
                 {0, -1}, false, -1, several,
                 {{[=] { amin(empty_one, -1); }, none("amin", "(2, 0)")},
                  {[=] { amin(whole_numbers); }, dtype("amin")},
                  {[=] { amin(matrix, 2); }, outside("amin")}}),
      chosen_row("amax last", [](L x) { return amax(x[0], -1); }, -1, false, 1, last,
                 {{[=] { amax(empty_one, -1); }, none("amax", "(2, 0)")}}),
      chosen_row("max", [](L x) { return max(x[0]); }, {}, false, 1, whole,
                 {{[=] { max(empty_one); }, none("max", "(2, 0)")},
                  {[=] { max(whole_numbers); }, dtype("max")}}),
      chosen_row("min", [](L x) { return min(x[0]); }, {}, false, -1, whole,
                 {{[=] { min(empty_one); }, none("min", "(2, 0)")},
                  {[=] { min(whole_numbers); }, dtype("min")}}),
      chosen_row("max dim", [](L x) { return max(x[0], 0); }, 0, false, 1, first,
                 {{[=] { max(empty_one, 1); }, none("max", "(2, 0)")},
                  {[=] { max(whole_numbers, 0); }, dtype("max")},
                  {[=] { max(matrix, 2); }, outside("max")}}),
      chosen_row("min dim", [](L x) { return min(x[0], -1, true); }, -1, true, -1, last,
                 {{[=] { min(empty_one, 1); }, none("min", "(2, 0)")},
                  {[=] { min(whole_numbers, 0); }, dtype("min")},
                  {[=] { min(matrix, 2); }, outside("min")}}),
      place_row("argmax", [](L x) { return argmax(x[0]); }, {}, false, 1, whole,
                {{[=] { argmax(empty_one); }, none("argmax", "(2, 0)")},
                 {[=] { argmax(whole_numbers); }, dtype("argmax")}}),
      place_row("argmin", [](L x) { return argmin(x[0]); }, {}, false, -1, whole,
                {{[=] { argmin(empty_one); }, none("argmin", "(2, 0)")},
                 {[=] { argmin(whole_numbers); }, dtype("argmin")}}),
      place_row("argmax dim", [](L x) { return argmax(x[0], 0); }, 0, false, 1, first,
                {{[=] { argmax(empty_one, 1); }, none("argmax", "(2, 0)")},
                 {[=] { argmax(matrix, 2); }, outside("argmax")}}),
      place_row("argmin dim", [](L x) { return argmin(x[0], -1, true); }, -1, true, -1, last,
                {{[=] { argmin(empty_one, 1); }, none("argmin", "(2, 0)")},
                 {[=] { argmin(matrix, 2); }, outside("argmin")}}),
  };
}

// Numbers with zeros among them: all of a few rows, none, or some.
static std::vector<Sample> with_zeros(const std::vector<Shape>& list, double below) {
  std::vector<Sample> samples;
  for (const Shape& shape : list)
    samples.push_back({in(shape, -1, 1, [below](double x) { return x < below ? 0 : x; })});
  return samples;
}
static double none_zero(const std::vector<double>& x) {
  for (double v : x)
    if (v == 0) return 0;
  return 1;
}
static double one_nonzero(const std::vector<double>& x) {
  for (double v : x)
    if (v != 0) return 1;
  return 0;
}

static std::vector<OpRow> rows_truths() {
  const std::vector<Shape> whole = {{}, {1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {33}};
  const std::vector<Shape> several = {{3, 4},    {1, 5},     {17, 1}, {2, 3, 4},
                                      {2, 0, 3}, {31, 3, 1}, {0, 3}};
  const std::string bools = "the result is bool";
  return {
      {.name = "all",
       .op = [](L x) { return all(x[0]); },
       .samples = with_zeros(whole, -0.9),
       .y = exact(),
       .reference = [](L x) { return astype(folded(x[0], {}, false, none_zero), kBool); },
       .errors = {{[] {
                     all(ones({2, 3}), {0, 0});
                   },
                   "all: dimension 0 of shape (2, 3) is named twice"}},
       .no_gradient = bools},
      {.name = "all dims",
       .op =
           [](L x) {
             return all(x[0], {0, -1}, true);
           },
       .samples = with_zeros(several, -0.7),
       .y = exact(),
       .reference =
           [](L x) {
             return astype(folded(x[0], {0, -1}, true, none_zero), kBool);
           },
       .errors = {{[] {
                     all(ones({2, 3}), 2);
                   },
                   "all: dimension 2 is outside [-2, 2) of shape (2, 3)"}},
       .no_gradient = bools},
      {.name = "any",
       .op = [](L x) { return any(x[0]); },
       .samples = with_zeros(whole, 0.9),
       .y = exact(),
       .reference = [](L x) { return astype(folded(x[0], {}, false, one_nonzero), kBool); },
       .errors = {{[] {
                     any(ones({2, 3}), {1, -1});
                   },
                   "any: dimension -1 of shape (2, 3) is named twice"}},
       .no_gradient = bools},
      {.name = "any dim",
       .op = [](L x) { return any(x[0], 0); },
       .samples = with_zeros({{1}, {5}, {3, 4}, {2, 3, 4}, {3, 0}, {0, 3}, {2, 31}}, 0.7),
       .y = exact(),
       .reference = [](L x) { return astype(folded(x[0], 0, false, one_nonzero), kBool); },
       .errors = {{[] { any(ones({}), 0); }, "any: dimension 0 is outside [0, 0) of shape ()"}},
       .no_gradient = bools},
  };
}

std::vector<OpRow> rows_reduce_choices() {
  std::vector<OpRow> rows;
  for (auto part : {rows_extremes, rows_truths})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
