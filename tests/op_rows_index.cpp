// The rows of the ops with index tensors (tests/op_table.h).
#include <algorithm>
#include <cstdint>

#include "op_table.h"

namespace pellucid {

// 0 .. limit - 1 in some order with repeats, of the given shape.
static Tensor some_ids(const Shape& shape, int64_t limit) {
  std::vector<int64_t> ids(static_cast<std::size_t>(shape.numel()));
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int64_t>(i * i * 7 + 3) % limit;
  return from_vector(ids, shape);
}
static Tensor ids_of(const std::vector<int64_t>& ids) {
  return from_vector(ids, {static_cast<int64_t>(ids.size())});
}

static std::vector<OpRow> rows_of_tables() {
  return {
      {.name = "embedding",
       .op =
           [](L x) {
             return embedding(x[0], some_ids({2, 5}, x[0].size(0)));
           },
       .samples = {{in({1, 1})},
                   {in({3, 2})},
                   {in({5, 0})},
                   {in({8, 3})},
                   {in({4, 17})},
                   {in({2, 65})},
                   {in({96, 129})}},
       .y = exact(),
       .dx = terms(1),  // summed in double, rounded once
       .errors = {{[] {
                     embedding(ones({8, 2}), ids_of({3, 100}));
                   },
                   "embedding: ids(1) is 100, outside [0, 8)"},
                  {[] {
                     embedding(ones({8, 2}), ids_of({-1}));
                   },
                   "embedding: ids(0) is -1, outside [0, 8)"},
                  {[] {
                     embedding(ones({8, 2}), reshape(ids_of({0, 1, 2, 3, 8, 5}), {2, 3}));
                   },
                   "embedding: ids(1, 1) is 8, outside [0, 8)"},
                  {[] {
                     embedding(ones({8, 2}), ones({2}));
                   },
                   "embedding: ids must be int64; got float32"},
                  {[] { embedding(ones({8}), ids_of({0})); },
                   "embedding: weight must have shape (V, C); got (8)"},
                  {[] {
                     embedding(ones({8, 2}), zeros({1, 1, 1, 1, 1, 1, 1, 2}, kInt64));
                   },
                   "embedding: ids of shape (1, 1, 1, 1, 1, 1, 1, 2) leave no room for one "
                   "dimension more; a tensor has at most 8"}}},
      {.name = "embedding squared",
       .op =
           [](L x) {
             const Tensor y = embedding(x[0], some_ids({3}, x[0].size(0)));
             return y * y;
           },
       .samples = {{in({2, 3})}, {in({4, 1})}},
       .y = relative(1),
       .dx = terms(3),
       .errors = {{[] {
                     embedding(ones({2, 3}), Tensor());
                   },
                   "embedding: ids must be int64; got an undefined tensor"}}},
      {.name = "embedding without ids",
       .op = [](L x) { return embedding(x[0], some_ids({0}, 1)); },
       .samples = {{in({3, 2})}, {in({0, 2})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     embedding(ones({0, 2}), ids_of({0}));
                   },
                   "embedding: ids(0) is 0, outside [0, 0)"}}},
      {.name = "embedding with one id",
       .op = [](L x) { return embedding(x[0], some_ids({}, x[0].size(0))); },
       .samples = {{in({4, 2})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     embedding(ones({4, 2}), full({}, 4, kInt64));
                   },
                   "embedding: ids() is 4, outside [0, 4)"}}},
      {.name = "scatter_add_rows",
       .op = [](L x) { return scatter_add_rows(x[0], some_ids({x[0].size(0)}, 4), 6); },
       .samples = {{in({0, 2})},
                   {in({1, 1})},
                   {in({7, 3})},
                   {in({3, 0})},
                   {in({33, 2})},
                   {in({4, 65})},
                   {in({300, 129})}},
       .y = terms(1),
       .dx = exact(),
       .errors = {{[] {
                     scatter_add_rows(ones({2, 3}), ids_of({0, 6}), 6);
                   },
                   "scatter_add_rows: ids(1) is 6, outside [0, 6)"},
                  {[] {
                     scatter_add_rows(ones({2, 3}), ids_of({0}), 6);
                   },
                   "scatter_add_rows: x must have the shape of ids and one dimension more; got x "
                   "(2, 3), ids (1)"},
                  {[] {
                     scatter_add_rows(ones({2, 3}), ids_of({0, 1}), -1);
                   },
                   "scatter_add_rows: V must not be negative; got -1"},
                  {[] {
                     scatter_add_rows(ones({0, 3}), ids_of({}), INT64_MAX);
                   },
                   "scatter_add_rows: 9223372036854775807 rows of 3 elements are more than int64 "
                   "counts bytes"}}},
      {.name = "scatter_add_rows without columns",
       .op =
           [](L x) {
             return sum(scatter_add_rows(x[0], ids_of({}), INT64_MAX)) +
                    sum(scatter_add_rows(x[0], ids_of({}), int64_t{1} << 50));
           },
       .samples = {{in({0, 0})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { scatter_add_rows(ones({}), ids_of({}), 3); },
                   "scatter_add_rows: x must have the shape of ids and one dimension more; got x "
                   "(), ids (0)"}}},
      {.name = "scatter_add_rows squared",
       .op =
           [](L x) {
             const Tensor ids =
                 reshape(some_ids({x[0].size(0) * x[0].size(1)}, 3), {x[0].size(0), x[0].size(1)});
             const Tensor y = scatter_add_rows(x[0], ids, 3);
             return y * y;
           },
       .samples = {{in({2, 3, 2})}, {in({1, 1, 3})}, {in({2, 0, 2})}},
       .y = both(relative(1), terms(2)),
       .dx = terms(3),
       .errors = {{[] {
                     scatter_add_rows(ones({2, 1}), tensor({0, 1}), 3);
                   },
                   "scatter_add_rows: ids must be int64; got float32"}}},
  };
}

// ---- The same in any dimension.

// The place of row-major element i in a tensor of the given shape.
static std::vector<int64_t> place_of(int64_t i, const Shape& shape) {
  std::vector<int64_t> place(static_cast<std::size_t>(shape.dim()));
  for (int d = shape.dim() - 1; d >= 0; i /= shape[d--])
    place[static_cast<std::size_t>(d)] = i % shape[d];
  return place;
}
static std::size_t element(const std::vector<int64_t>& place, const Shape& shape) {
  int64_t i = 0;
  for (int d = 0; d < shape.dim(); ++d) i = i * shape[d] + place[static_cast<std::size_t>(d)];
  return static_cast<std::size_t>(i);
}

// Moves values between x and the elements that index names, one after another.
template <class Move>
static void for_each_index(const Shape& x, int dim, const Tensor& index, const Move& move) {
  const std::vector<int64_t> ids = index.to_vector<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    std::vector<int64_t> place = place_of(i, index.shape());
    place[static_cast<std::size_t>(dim)] = ids[static_cast<std::size_t>(i)];
    move(element(place, x), place_of(i, index.shape()));
  }
}
static Tensor gather_by_loop(const Tensor& x, int dim, const Tensor& index) {
  const std::vector<double> from = x.to_vector();
  std::vector<double> y;
  for_each_index(x.shape(), dim, index, [&](std::size_t at, auto) { y.push_back(from[at]); });
  return from_vector(y, index.shape(), kFloat64);
}
static Tensor scatter_add_by_loop(const Tensor& x, int dim, const Tensor& index,
                                  const Tensor& src) {
  std::vector<double> y = x.to_vector();
  const std::vector<double> from = src.to_vector();
  for_each_index(x.shape(), dim, index, [&](std::size_t at, const std::vector<int64_t>& place) {
    y[at] += from[element(place, src.shape())];
  });
  return from_vector(y, x.shape(), kFloat64);
}

// An index for x: `more` longer in dim, `less` shorter elsewhere.
static Tensor index_for(const Tensor& x, int dim, int64_t more, int64_t less) {
  Shape shape = x.shape();
  for (int d = 0; d < x.dim(); ++d)
    shape[d] = d != dim       ? std::max<int64_t>(shape[d] - less, std::min<int64_t>(shape[d], 1))
               : shape[d] > 0 ? shape[d] + more
                              : 0;
  return some_ids(shape, x.size(dim));
}

static OpRow gather_row(const std::string& name, int dim, int64_t more, int64_t less,
                        const std::vector<Sample>& samples) {
  return {.name = name,
          .op = [=](L x) { return gather(x[0], dim, index_for(x[0], dim, more, less)); },
          .samples = samples,
          .y = exact(),
          .dx = terms(1.01),  // in double, rounded once
          .reference =
              [=](L x) { return gather_by_loop(x[0], dim, index_for(x[0], dim, more, less)); }};
}

// src is one longer than its index in each dimension.
static OpRow scatter_add_row(const std::string& name, int dim, int64_t more, int64_t less,
                             const std::vector<Shape>& shapes) {
  OpRow row{
      .name = name,
      .op = [=](L x) { return scatter_add(x[0], dim, index_for(x[0], dim, more, less), x[1]); },
      .y = terms(1.01),
      .dx = exact(),
      .reference =
          [=](L x) {
            return scatter_add_by_loop(x[0], dim, index_for(x[0], dim, more, less), x[1]);
          }};
  for (const Shape& shape : shapes) {
    Shape src = index_for(zeros(shape), dim, more, less).shape();
    for (int d = 0; d < src.dim(); ++d) ++src[d];
    row.samples.push_back({in(shape), in(src)});
  }
  return row;
}

static std::vector<OpRow> rows_of_elements() {
  OpRow last = gather_row("gather", 1, 2, 0,
                          {{in({1, 1})},
                           {in({3, 4})},
                           {in({2, 3, 5})},
                           {in({0, 3})},
                           {in({3, 0})},
                           {in({2, 17})},
                           {in({5, 2, 3})},
                           {in({33, 129})}});
  OpRow first =
      gather_row("gather along the first dimension", 0, 3, 1,
                 {{in({5})}, {in({3, 4})}, {in({2, 3, 4})}, {in({1, 2})}, {in({65, 31})}});
  OpRow one = gather_row("gather one of each line", 1, -2, 1,
                         {{in({4, 3})}, {in({2, 3, 3})}, {in({127, 3})}});
  last.errors = {{[] {
                    gather(ones({2, 3}), 1, tensor({{0, 1}, {1, 3}}, kInt64));
                  },
                  "gather: index(1, 1) is 3, outside [0, 3)"},
                 {[] {
                    gather(ones({2, 3}), 0, tensor({{0, -1}}, kInt64));
                  },
                  "gather: index(0, 1) is -1, outside [0, 2)"},
                 {[] {
                    gather(ones({2, 3}), 2, tensor({{0}}, kInt64));
                  },
                  "gather: dimension 2 is outside [-2, 2) of shape (2, 3)"},
                 {[] {
                    gather(ones({2, 3}), 1, tensor({0}, kInt64));
                  },
                  "gather: index must have as many dimensions as x and, but for dimension 1, no "
                  "larger size; got x (2, 3), index (1)"},
                 {[] {
                    gather(ones({2, 3}), 1, zeros({3, 1}, kInt64));
                  },
                  "gather: index must have as many dimensions as x and, but for dimension 1, no "
                  "larger size; got x (2, 3), index (3, 1)"},
                 {[] {
                    gather(ones({2, 3}), 1, zeros({2, 1}));
                  },
                  "gather: index must be int64; got float32"},
                 {[] {
                    gather(ones({2, 3}), 1, Tensor());
                  },
                  "gather: index must be int64; got an undefined tensor"}};
  first.errors = one.errors = {{[] { gather(ones({}), 0, zeros({}, kInt64)); },
                                "gather: dimension 0 is outside [0, 0) of shape ()"}};

  OpRow add = scatter_add_row("scatter_add", 1, 3, 0,
                              {{1, 1}, {3, 4}, {2, 3, 2}, {0, 3}, {3, 0}, {2, 17}, {33, 129}});
  OpRow add_first = scatter_add_row("scatter_add along the first dimension", 0, 1, 1,
                                    {{5}, {3, 4}, {2, 3, 4}, {1, 2}, {65, 31}});
  OpRow add_one =
      scatter_add_row("scatter_add of one to each line", 1, -2, 0, {{4, 3}, {2, 3, 3}, {127, 3}});
  add.errors = {{[] {
                   scatter_add(ones({2, 3}), 1, tensor({{0, 1}, {1, 3}}, kInt64), ones({2, 2}));
                 },
                 "scatter_add: index(1, 1) is 3, outside [0, 3)"},
                {[] {
                   scatter_add(ones({2, 3}), 1, tensor({{-1000, 1e18}}), ones({2, 2}));
                 },
                 "scatter_add: index must be int64; got float32"},
                {[] {
                   scatter_add(ones({2, 3}), 1,
                               from_vector(std::vector<int64_t>{-1000, INT64_MAX}, {1, 2}),
                               ones({2, 2}));
                 },
                 "scatter_add: index(0, 0) is -1000, outside [0, 3)"},
                {[] {
                   scatter_add(ones({2, 3}), 1, zeros({2, 2}, kInt64), ones({2, 1}));
                 },
                 "scatter_add: src must be float32 and at least as large as index in each "
                 "dimension; got float32 (2, 1), index (2, 2)"},
                {[] {
                   scatter_add(ones({2, 3}), 1, zeros({2, 2}, kInt64), ones({2, 2}, kFloat64));
                 },
                 "scatter_add: src must be float32 and at least as large as index in each "
                 "dimension; got float64 (2, 2), index (2, 2)"}};
  add_first.errors =
      add_one.errors = {{[] {
                           scatter_add(ones({2, 3}), -3, zeros({2, 2}, kInt64), ones({2, 2}));
                         },
                         "scatter_add: dimension -3 is outside [-2, 2) of shape (2, 3)"}};
  return {last, first, one, add, add_first, add_one};
}

// take_along: the index of one line serves all, or the other way round.
static std::vector<OpRow> rows_take_along() {
  const auto row = [](const std::string& name, int dim, const Shape& index,
                      const std::vector<Sample>& samples) {
    const auto ids = [=](L x) { return some_ids(index, x[0].size(dim)); };
    return OpRow{.name = name,
                 .op = [=](L x) { return take_along(x[0], ids(x), dim); },
                 .samples = samples,
                 .y = exact(),
                 .dx = terms(1.01),
                 .reference =
                     [=](L x) {
                       const Tensor y = take_along(x[0].detach(), ids(x), dim);  // for its shape
                       Shape from = y.shape();
                       from[dim] = x[0].size(dim);
                       return gather_by_loop(packed(expanded(x[0].detach(), from)), dim,
                                             expanded(ids(x), y.shape()));
                     }};
  };
  OpRow shared = row("take_along", 1, {1, 5},
                     {{in({3, 4})}, {in({1, 1})}, {in({0, 3})}, {in({17, 2})}, {in({31, 33})}});
  OpRow line = row("take_along of one line", 2, {2, 3, 4},
                   {{in({1, 1, 3})}, {in({2, 1, 2})}, {in({1, 3, 7})}, {in({2, 3, 1})}});
  shared.errors = {{[] {
                      take_along(ones({2, 3}), zeros({3}, kInt64), 1);
                    },
                    "take_along: index must have as many dimensions as x; got x (2, 3), index "
                    "(3)"},
                   {[] {
                      take_along(ones({2, 3}), zeros({4, 1}, kInt64), 1);
                    },
                    "take_along: shapes (2, 1) and (4, 1) do not broadcast: they differ in axis "
                    "-2"},
                   {[] {
                      take_along(ones({2, 3}), tensor({{3}}, kInt64), 1);
                    },
                    "take_along: index(0, 0) is 3, outside [0, 3)"}};
  line.errors = {{[] { take_along(ones({2}), zeros({1}, kInt64), 1); },
                  "take_along: dimension 1 is outside [-1, 1) of shape (2)"}};
  return {shared, line};
}

// Along dim the 5 ids name 3 rows at most.
static std::vector<OpRow> rows_of_rows() {
  const auto ids = [](L x, int dim) { return some_ids({5}, std::min<int64_t>(x[0].size(dim), 3)); };
  const auto as_index = [=](L x, int dim) {  // the same ids for every line
    Shape shape = x[0].shape(), ones_but_dim = x[0].shape();
    for (int d = 0; d < shape.dim(); ++d) ones_but_dim[d] = d == dim ? 5 : 1;
    shape[dim] = 5;
    return packed(expanded(reshape(ids(x, dim), ones_but_dim), shape));
  };
  const auto select = [=](const std::string& name, int dim, const std::vector<Sample>& samples) {
    return OpRow{.name = name,
                 .op = [=](L x) { return index_select(x[0], dim, ids(x, dim)); },
                 .samples = samples,
                 .y = exact(),
                 .dx = terms(1.01),
                 .reference = [=](L x) { return gather_by_loop(x[0], dim, as_index(x, dim)); }};
  };
  const auto add = [=](const std::string& name, int dim, const std::vector<Sample>& samples) {
    return OpRow{
        .name = name,
        .op = [=](L x) { return index_add(x[0], dim, ids(x, dim), x[1]); },
        .samples = samples,
        .y = terms(2.01),  // the sums of src, then x added
        .dx = exact(),
        .reference = [=](L x) { return scatter_add_by_loop(x[0], dim, as_index(x, dim), x[1]); }};
  };
  OpRow first = select("index_select", 0,
                       {{in({5})},
                        {in({3, 4})},
                        {in({4, 1})},
                        {in({2, 0})},
                        {in({2, 3, 4})},
                        {in({17, 2})},
                        {in({33, 65})}});
  OpRow middle =
      select("index_select in the middle", 1,
             {{in({2, 3, 4})}, {in({3, 1})}, {in({0, 3, 2})}, {in({2, 2, 3, 2})}, {in({31, 33})}});
  OpRow add_first = add("index_add", 0,
                        {{in({5}), in({5})},
                         {in({3, 4}), in({5, 4})},
                         {in({4, 1}), in({5, 1})},
                         {in({2, 0}), in({5, 0})},
                         {in({17, 2}), in({5, 2})},
                         {in({33, 65}), in({5, 65})}});
  OpRow add_middle = add(
      "index_add in the middle", 1,
      {{in({2, 3, 4}), in({2, 5, 4})}, {in({3, 1}), in({3, 5})}, {in({0, 3, 2}), in({0, 5, 2})}});
  first.errors = {{[] {
                     index_select(ones({3, 2}), 0, ids_of({0, 3}));
                   },
                   "index_select: ids(1) is 3, outside [0, 3)"},
                  {[] {
                     index_select(ones({3, 2}), 0, zeros({2, 2}, kInt64));
                   },
                   "index_select: ids must have shape (N); got (2, 2)"},
                  {[] {
                     index_select(ones({3, 2}), 2, ids_of({0}));
                   },
                   "index_select: dimension 2 is outside [-2, 2) of shape (3, 2)"}};
  middle.errors = {{[] {
                      index_select(ones({3, 2}), 1, ones({2}));
                    },
                    "index_select: ids must be int64; got float32"}};
  add_first.errors = {{[] {
                         index_add(ones({3, 2}), 0, ids_of({0, 1}), ones({3, 2}));
                       },
                       "index_add: src must be float32 of shape (2, 2), that of x (3, 2) with 2 "
                       "ids in dimension 0; got float32 (3, 2)"},
                      {[] {
                         index_add(ones({3, 2}), 0, ids_of({0, 1}), ones({2, 2}, kFloat64));
                       },
                       "index_add: src must be float32 of shape (2, 2), that of x (3, 2) with 2 "
                       "ids in dimension 0; got float64 (2, 2)"},
                      {[] {
                         index_add(ones({3, 2}), 0, ids_of({0, -1}), ones({2, 2}));
                       },
                       "index_add: ids(1) is -1, outside [0, 3)"}};
  add_middle.errors = {{[] { index_add(ones({3}), 1, ids_of({0}), ones({1})); },
                        "index_add: dimension 1 is outside [-1, 1) of shape (3)"}};
  return {first, middle, add_first, add_middle};
}

static OpRow one_hot_row() {
  const auto ids = [](L x) { return some_ids(x[0].shape(), 5); };
  return {
      .name = "one_hot",
      .op = [=](L x) { return one_hot(ids(x), 5, x[0].dtype()); },
      .samples = {{in({})},
                  {in({1})},
                  {in({3})},
                  {in({0})},
                  {in({2, 3})},
                  {in({2, 0})},
                  {in({2, 1, 3})},
                  {in({33})}},
      .y = exact(),
      .reference =
          [=](L x) {
            std::vector<double> y;
            for (double id : ids(x).to_vector())
              for (int c = 0; c < 5; ++c) y.push_back(id == c ? 1 : 0);
            Shape shape = x[0].shape();
            shape.push_back(5);
            return from_vector(y, shape, kFloat64);
          },
      .errors = {{[] {
                    one_hot(ids_of({2, 3}), 3);
                  },
                  "one_hot: ids(1) is 3, outside [0, 3)"},
                 {[] { one_hot(ids_of({}), -1); }, "one_hot: classes must not be negative; got -1"},
                 {[] { one_hot(ones({2}), 3); }, "one_hot: ids must be int64; got float32"},
                 {[] {
                    one_hot(zeros({1, 1, 1, 1, 1, 1, 1, 2}, kInt64), 3);
                  },
                  "one_hot: ids of shape (1, 1, 1, 1, 1, 1, 1, 2) leave no room for one "
                  "dimension more; a tensor has at most 8"}},
      .no_gradient = "made from whole numbers"};
}

std::vector<OpRow> rows_index() {
  std::vector<OpRow> all;
  for (auto rows : {rows_of_tables, rows_of_elements, rows_take_along, rows_of_rows})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  all.push_back(one_hot_row());
  return all;
}

}  // namespace pellucid
