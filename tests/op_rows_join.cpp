// The rows of the ops that put tensors together, take them apart, repeat, reverse and mask them
// (tests/op_table.h). All copy, so they are exact; where a gradient sums what was repeated it is
// added in double and rounded once. References are loops over the places of the result.
#include "op_table.h"

namespace pellucid {

static Tensor squared(const Tensor& y) { return y * y; }

// y of the given shape, y at `index` being f(index).
using Place = std::vector<int64_t>;
static Tensor built(const Shape& shape, const std::function<double(const Place&)>& f) {
  std::vector<double> y;
  for (int64_t i = 0; i < shape.numel(); ++i) {
    Place index(static_cast<std::size_t>(shape.dim()));
    int64_t rest = i;
    for (int d = shape.dim() - 1; d >= 0; rest /= shape[d--])
      index[static_cast<std::size_t>(d)] = rest % shape[d];
    y.push_back(f(index));
  }
  return from_vector(y, shape, kFloat64);
}
static double read(const Tensor& x, const Place& index) {
  int64_t at = 0;
  for (int d = 0; d < x.dim(); ++d) at = at * x.size(d) + index[static_cast<std::size_t>(d)];
  return x.to_vector()[static_cast<std::size_t>(at)];
}
static Place moved(Place index, int d, int64_t by) {
  index[static_cast<std::size_t>(d)] += by;
  return index;
}

static Tensor cat_of_rows(L x) {  // along dimension 0
  Shape shape = x[0].shape();
  for (std::size_t k = 1; k < x.size(); ++k) shape[0] += x[k].size(0);
  return built(shape, [&](Place index) {
    std::size_t k = 0;
    for (; index[0] >= x[k].size(0); ++k) index[0] -= x[k].size(0);
    return read(x[k], index);
  });
}

static std::vector<OpRow> rows_cat() {
  const std::string shapes_differ = "; wanted one dtype and one shape but for the dimension of dim";
  return {
      {.name = "cat",
       .op = [](L x) { return cat(x); },
       .samples = {{in({3}), in({1}), in({4})},
                   {in({0}), in({2}), in({0})},
                   {in({0}), in({0}), in({0})},
                   {in({3, 2}), in({1, 2}), in({0, 2})},
                   {in({2, 3, 4}), in({1, 3, 4}), in({1, 3, 4})},
                   {in({2, 0}), in({1, 0}), in({1, 0})},
                   {in({33}), in({17}), in({1})}},
       .y = exact(),
       .dx = exact(),
       .reference = cat_of_rows,
       .errors = {{[] { cat({}); }, "cat: wanted at least one tensor; got an empty list"},
                  {[] {
                     cat({ones({2, 3}), ones({2, 3}), ones({2, 4})});
                   },
                   "cat: tensor 2 is float32 of shape (2, 4), tensor 0 is float32 of shape (2, 3)" +
                       shapes_differ},
                  {[] {
                     cat({ones({2}), ones({2}, kFloat64)});
                   },
                   "cat: tensor 1 is float64 of shape (2), tensor 0 is float32 of shape (2)" +
                       shapes_differ},
                  {[] {
                     cat({ones({2}), ones({2, 1})});
                   },
                   "cat: tensor 1 is float32 of shape (2, 1), tensor 0 is float32 of shape (2)" +
                       shapes_differ},
                  {[] { cat({ones({2})}, 1); }, "cat: dimension 1 is outside [-1, 1) of shape (2)"},
                  {[] {
                     cat({ones({}), ones({})});
                   },
                   "cat: dimension 0 is outside [0, 0) of shape ()"}}},
      {.name = "cat last",
       .op =
           [](L x) {
             return squared(cat({x[0], x[1], x[0]}, -1));
           },
       .samples = {{in({3}), in({1})},
                   {in({3, 2}), in({3, 1})},
                   {in({2, 3, 4}), in({2, 3, 0})},
                   {in({0, 2}), in({0, 3})},
                   {in({1, 2}), in({1, 17})},
                   {in({2, 31}), in({2, 2})}},
       .y = relative(1),
       .dx = terms(4),
       .errors = {{[] {
                     cat({ones({2, 3}), ones({3, 3})}, -1);
                   },
                   "cat: tensor 1 is float32 of shape (3, 3), tensor 0 is float32 of shape (2, 3)" +
                       shapes_differ}}},
      {.name = "stack",
       .op =
           [](L x) {
             return stack({x[0], x[1], x[0] * x[1]});
           },
       .samples = {{in({}), in({})},
                   {in({1}), in({1})},
                   {in({5}), in({5})},
                   {in({0, 3}), in({0, 3})},
                   {in({3, 4}), in({3, 4})},
                   {in({2, 1, 3}), in({2, 1, 3})},
                   {in({33}), in({33})}},
       .y = relative(1),
       .dx = terms(2),
       .errors = {{[] { stack({}); }, "stack: wanted at least one tensor; got an empty list"},
                  {[] {
                     stack({ones({2}), ones({3})});
                   },
                   "stack: tensor 1 is float32 of shape (3), tensor 0 is float32 of shape (2); "
                   "wanted one dtype and one shape"},
                  {[] {
                     stack({ones({2}), ones({2})}, 2);
                   },
                   "stack: dimension 2 is outside [-2, 1] for shape (2)"}}},
      {.name = "stack last",
       .op =
           [](L x) {
             return stack({x[0], x[1]}, -1);
           },
       .samples = {{in({}), in({})},
                   {in({3}), in({3})},
                   {in({2, 3}), in({2, 3})},
                   {in({0, 2}), in({0, 2})}},
       .y = exact(),
       .dx = exact(),
       .reference =
           [](L x) {
             Shape shape = x[0].shape();
             shape.push_back(2);
             return built(shape, [&](const Place& index) {
               return read(x[static_cast<std::size_t>(index.back())], index);
             });
           },
       .errors = {{[] {
                     stack({ones({2}), ones({2}, kInt64)}, -1);
                   },
                   "stack: tensor 1 is int64 of shape (2), tensor 0 is float32 of shape (2); "
                   "wanted one dtype and one shape"}}},
  };
}

// The parts, put together the other way around.
static Tensor reversed(TensorList parts, int dim) {
  return cat(TensorList(parts.rbegin(), parts.rend()), dim);
}
static Tensor reversed_parts(const Tensor& x, int64_t size) {  // of dimension 0
  const int64_t n = x.size(0);
  return built(x.shape(), [&](const Place& index) {
    int64_t part = (n - 1) / size, left = index[0];
    while (left >= std::min(size, n - part * size)) left -= std::min(size, n - part * size), --part;
    return read(x, moved(index, 0, part * size + left - index[0]));
  });
}

static std::vector<OpRow> rows_split() {
  const std::vector<Sample> samples =
      shapes({{1}, {2}, {3}, {7}, {0, 3}, {5, 2}, {3, 0}, {4, 3, 2}, {33}});
  return {
      {.name = "split",
       .op = [](L x) { return reversed(split(x[0], 2), 0); },
       .samples = samples,
       .y = exact(),
       .dx = exact(),
       .reference = [](L x) { return reversed_parts(x[0], 2); },
       .errors = {{[] { split(ones({4}), 0); }, "split: size must be at least 1; got 0"},
                  {[] { split(ones({4}), -2); }, "split: size must be at least 1; got -2"},
                  {[] { split(ones({4}), 2, 1); },
                   "split: dimension 1 is outside [-1, 1) of shape (4)"}}},
      {.name = "chunk",
       .op = [](L x) { return squared(reversed(chunk(x[0], 3), 0)); },
       .samples = samples,
       .y = relative(1),
       .dx = relative(2),
       .reference =
           [](L x) {
             return squared(reversed_parts(x[0], std::max<int64_t>(1, (x[0].size(0) + 2) / 3)));
           },
       .errors = {{[] { chunk(ones({4}), 0); }, "chunk: wanted at least 1 part; got 0"},
                  {[] { chunk(ones({4}), -1); }, "chunk: wanted at least 1 part; got -1"},
                  {[] { chunk(ones({}), 2); }, "chunk: dimension 0 is outside [0, 0) of shape ()"}},
       .no_dtypes = "cat joins the parts, mul squares them"},
  };
}

static std::vector<OpRow> rows_around() {
  return {
      {.name = "pad",
       .op =
           [](L x) {
             return pad(x[0], {{1, 2}}, 3);
           },
       .samples = shapes({{1}, {5}, {0, 3}, {3, 0}, {3, 4}, {2, 3, 4}, {2, 31}}),
       .y = exact(),
       .dx = exact(),
       .reference =
           [](L x) {
             Shape shape = x[0].shape();
             shape[-1] += 3;
             return built(shape, [&](const Place& index) {
               const int64_t at = index.back() - 1;
               return at >= 0 && at < x[0].size(-1) ? read(x[0], moved(index, x[0].dim() - 1, -1))
                                                    : 3;
             });
           },
       .errors =
           {{[] {
               pad(ones({2}), {{1, 1}, {1, 1}});
             },
             "pad: 2 pairs for the 1 dimensions of shape (2)"},
            {[] {
               pad(ones({2, 3}), {{1, -1}});
             },
             "pad: wanted no negative size; got {1, -1} for dimension 1 of (2, 3); slice() cuts"},
            {[] {
               pad(ones({2}, kInt64), {{1, 1}}, 0.5);
             },
             "pad: 0.5 is no whole number of at most 2^53, as int64 wants it"}}},
      {.name = "pad two",
       .op =
           [](L x) {
             return squared(pad(x[0], {{0, 1}, {2, 0}}));
           },
       .samples = shapes({{1, 1}, {3, 4}, {0, 3}, {3, 0}, {2, 3, 4}, {2, 1, 2, 3}, {17, 2}}),
       .y = relative(1),
       .dx = relative(2),
       .reference =
           [](L x) {
             Shape shape = x[0].shape();
             shape[-2] += 1, shape[-1] += 2;
             return squared(built(shape, [&](const Place& index) {
               const int last = x[0].dim() - 1;
               return index[static_cast<std::size_t>(last - 1)] < x[0].size(-2) && index.back() >= 2
                          ? read(x[0], moved(index, last, -2))
                          : 0;
             }));
           },
       .errors =
           {{[] {
               pad(ones({2, 3}), {{-1, 0}, {0, 0}});
             },
             "pad: wanted no negative size; got {-1, 0} for dimension 0 of (2, 3); slice() cuts"}}},
      {.name = "flip",
       .op = [](L x) { return squared(flip(x[0], 0)); },
       .samples = shapes({{1}, {5}, {0, 3}, {3, 0}, {3, 4}, {2, 3, 4}, {33}, {17, 2}}),
       .y = relative(1),
       .dx = relative(2),
       .reference =
           [](L x) {
             return squared(built(x[0].shape(), [&](const Place& index) {
               return read(x[0], moved(index, 0, x[0].size(0) - 1 - 2 * index[0]));
             }));
           },
       .errors = {{[] { flip(ones({2}), 1); }, "flip: dimension 1 is outside [-1, 1) of shape (2)"},
                  {[] {
                     flip(ones({2, 3}), {0, -2});
                   },
                   "flip: dimension -2 of shape (2, 3) is named twice"},
                  {[] { flip(Tensor(), 0); },
                   "this tensor is undefined: a handle that was given no value, or a gradient "
                   "before backward"}}},
      {.name = "flip dims",
       .op =
           [](L x) {
             return flip(x[0], {0, -1});
           },
       .samples = shapes({{3, 4}, {1, 5}, {0, 3}, {2, 3, 4}, {2, 1, 3, 2}, {2, 33}}),
       .y = exact(),
       .dx = exact(),
       .reference =
           [](L x) {
             return built(x[0].shape(), [&](const Place& index) {
               const Place rows = moved(index, 0, x[0].size(0) - 1 - 2 * index[0]);
               return read(x[0], moved(rows, x[0].dim() - 1, x[0].size(-1) - 1 - 2 * index.back()));
             });
           },
       .errors = {{[] {
                     flip(ones({2, 3}), {0, 2});
                   },
                   "flip: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "repeat",
       .op =
           [](L x) {
             return repeat(x[0], {2, 1, 3});
           },
       .samples = shapes({{}, {1}, {5}, {3, 4}, {0, 3}, {2, 3, 4}, {1, 1, 1}, {2, 17}}),
       .y = exact(),
       .dx = terms(2.01),  // one rounding for each dimension that repeats
       .reference =
           [](L x) {
             Shape shape{2, 1, 3};
             const int lead = 3 - x[0].dim();
             for (int d = lead; d < 3; ++d) shape[d] *= x[0].size(d - lead);
             return built(shape, [&](Place index) {
               index.erase(index.begin(), index.begin() + lead);
               for (int d = 0; d < x[0].dim(); ++d)
                 index[static_cast<std::size_t>(d)] %= x[0].size(d);
               return read(x[0], index);
             });
           },
       .errors = {{[] {
                     repeat(ones({2, 3}), {2});
                   },
                   "repeat: wanted a count of at least 0 for each dimension of (2, 3), and maybe "
                   "more in front; got (2)"},
                  {[] { repeat(ones({2}), {-1}); },
                   "repeat: wanted a count of at least 0 for each dimension of (2), and maybe more "
                   "in front; got (-1)"},
                  {[] { repeat(ones({2}), {int64_t{1} << 62}); },
                   "numel overflow: shape (1, 4611686018427387904, 2)"}}},
      {.name = "repeat to nothing",
       .op =
           [](L x) {
             return repeat(x[0], {2, 0});
           },
       .samples = shapes({{}, {3}, {2, 3}, {0, 2}}),
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     repeat(ones({2, 3}), {});
                   },
                   "repeat: wanted a count of at least 0 for each dimension of (2, 3), and maybe "
                   "more in front; got ()"}}},
  };
}

// x where the column is at most row + k (low), or at least (else).
static Tensor triangle(const Tensor& x, int64_t k, bool low) {
  return built(x.shape(), [&](const Place& index) {
    const int64_t row = index[index.size() - 2], column = index.back();
    return (low ? column <= row + k : column >= row + k) ? read(x, index) : 0;
  });
}
static Tensor odd(const Shape& shape) {
  std::vector<double> values;
  for (int64_t i = 0; i < shape.numel(); ++i) values.push_back(double(i % 2));
  return from_vector(values, shape, kBool);
}

static std::vector<OpRow> rows_masked() {
  const std::vector<Sample> samples =
      shapes({{1, 1}, {3, 4}, {4, 3}, {0, 3}, {3, 0}, {2, 3, 3}, {1, 17}, {31, 2}});
  return {
      {.name = "tril",
       .op = [](L x) { return tril(x[0]); },
       .samples = samples,
       .y = exact(),
       .dx = exact(),
       .reference = [](L x) { return triangle(x[0], 0, true); },
       .errors = {{[] { tril(ones({3})); }, "tril: wanted at least two dimensions; got shape (3)"},
                  {[] { tril(ones({})); }, "tril: wanted at least two dimensions; got shape ()"}}},
      {.name = "tril above",
       .op = [](L x) { return squared(tril(x[0], 1)); },
       .samples = samples,
       .y = relative(1),
       .dx = relative(2),
       .reference = [](L x) { return squared(triangle(x[0], 1, true)); },
       .errors = {{[] { tril(ones({3}), 1); },
                   "tril: wanted at least two dimensions; got shape (3)"}}},
      {.name = "triu",
       .op = [](L x) { return triu(x[0]); },
       .samples = samples,
       .y = exact(),
       .dx = exact(),
       .reference = [](L x) { return triangle(x[0], 0, false); },
       .errors = {{[] { triu(ones({3})); }, "triu: wanted at least two dimensions; got shape (3)"},
                  {[] { triu(ones({})); }, "triu: wanted at least two dimensions; got shape ()"}}},
      {.name = "triu below",
       .op = [](L x) { return triu(x[0], -2); },
       .samples = samples,
       .y = exact(),
       .dx = exact(),
       .reference = [](L x) { return triangle(x[0], -2, false); },
       .errors = {{[] { triu(ones({3}), -2); },
                   "triu: wanted at least two dimensions; got shape (3)"}}},
      {.name = "masked_fill",
       .op = [](L x) { return squared(masked_fill(x[0], odd({x[0].size(-1)}), 2)); },
       .samples = shapes({{1}, {5}, {3, 4}, {2, 3, 4}, {0, 3}, {3, 0}, {2, 33}}),
       .y = relative(1),
       .dx = relative(2),
       .reference =
           [](L x) {
             return squared(built(x[0].shape(), [&](const Place& index) {
               return index.back() % 2 == 1 ? 2 : read(x[0], index);
             }));
           },
       .errors = {{[] {
                     masked_fill(ones({2, 3}), ones({2}, kBool), 0);
                   },
                   "masked_fill: wanted a bool mask that broadcasts to (2, 3); got bool of shape "
                   "(2)"},
                  {[] {
                     masked_fill(ones({2, 3}), ones({3}), 0);
                   },
                   "masked_fill: wanted a bool mask that broadcasts to (2, 3); got float32 of "
                   "shape (3)"},
                  {[] {
                     masked_fill(ones({3}), ones({2, 3}, kBool), 0);
                   },
                   "masked_fill: wanted a bool mask that broadcasts to (3); got bool of shape (2, "
                   "3)"}}},
      {.name = "masked_fill of all",
       .op = [](L x) { return masked_fill(x[0], odd(x[0].shape()), -1); },
       .samples = shapes({{}, {1}, {5}, {0, 3}, {3, 4}, {2, 3, 4}, {33}}),
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { masked_fill(ones({2}, kInt64), ones({2}, kBool), 0.5); },
                   "masked_fill: 0.5 is no whole number of at most 2^53, as int64 wants it"}}},
  };
}

std::vector<OpRow> rows_join() {
  std::vector<OpRow> rows;
  for (auto part : {rows_cat, rows_split, rows_around, rows_masked})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
