// The rows of the ops with index tensors (tests/op_table.h).
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

std::vector<OpRow> rows_index() {
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
       .dx = terms(3)},
      {.name = "embedding without ids",
       .op = [](L x) { return embedding(x[0], some_ids({0}, 1)); },
       .samples = {{in({3, 2})}, {in({0, 2})}},
       .y = exact(),
       .dx = exact()},
      {.name = "embedding with one id",
       .op = [](L x) { return embedding(x[0], some_ids({}, x[0].size(0))); },
       .samples = {{in({4, 2})}},
       .y = exact(),
       .dx = exact()},
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
                   "numel overflow: shape (9223372036854775807, 3)"}}},
      {.name = "scatter_add_rows without columns",
       .op =
           [](L x) {
             return sum(scatter_add_rows(x[0], ids_of({}), INT64_MAX)) +
                    sum(scatter_add_rows(x[0], ids_of({}), int64_t{1} << 50));
           },
       .samples = {{in({0, 0})}},
       .y = exact(),
       .dx = exact()},
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
       .dx = terms(3)},
  };
}

}  // namespace pellucid
