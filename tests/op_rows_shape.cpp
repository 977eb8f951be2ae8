// The rows of the shape ops (tests/op_table.h). Copies and views are exact. Gradients that are
// summed over what was repeated are added in double and rounded once.
#include "op_table.h"

namespace pellucid {

static const Gauge kSum = terms(1.01);
static const std::vector<Sample> kAnyShape = {{in({})},        {in({1})},    {in({5})},
                                              {in({0, 3})},    {in({3, 4})}, {in({1, 4, 1})},
                                              {in({2, 3, 4})}, {in({33})}};

static const char* const kUndefined =
    "this tensor is undefined: a handle that was given no value, or a gradient before backward";

// y, multiplied by fixed numbers of its shape: so that the second derivative is not 0 everywhere.
static Tensor squared(const Tensor& y) { return y * y; }

static std::vector<OpRow> rows_copies() {
  return {
      {.name = "identity",
       .op = [](L x) { return identity(x[0]); },
       .samples = kAnyShape,
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { identity(Tensor()); }, kUndefined}}},
      {.name = "identity squared",
       .op = [](L x) { return squared(identity(x[0])); },
       .samples = kAnyShape,
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] { squared(identity(ones({2}, kInt64))); },
                   "mul: wanted float32 or float64; got int64; use astype()"}}},
      {.name = "contiguous",
       .op = [](L x) { return contiguous(x[0]); },
       .samples = kAnyShape,
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { contiguous(Tensor()); }, kUndefined}}},
      {.name = "contiguous of a view",
       .op = [](L x) { return contiguous(transpose(x[0], 0, -1)); },
       .samples = {{in({5})},
                   {in({0, 3})},
                   {in({3, 4})},
                   {in({1, 4})},
                   {in({2, 3, 4})},
                   {in({17, 2})},
                   {in({2, 33})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { contiguous(transpose(ones({2}), 0, 1)); },
                   "transpose: dimension 1 is outside [-1, 1) of shape (2)"}}},
      {.name = "expand",
       .op =
           [](L x) {
             return expand(x[0], {4, 2, 3});
           },
       .samples = {{in({})},
                   {in({1})},
                   {in({3})},
                   {in({2, 1})},
                   {in({1, 3})},
                   {in({2, 3})},
                   {in({4, 1, 1})},
                   {in({4, 2, 3})}},
       .y = exact(),
       .dx = kSum,
       .errors =
           {{[] { expand(ones({2}), {3}); }, "expand: shape (2) does not broadcast to (3)"},
            {[] {
               expand(ones({2, 3}), {3});
             },
             "expand: shape (2, 3) has more dimensions than (3)"},
            {[] { expand(ones({1}), {-1}); },
             "alias: shape (-1) with strides (0) from element 0 leaves a storage of 1 elements"}}},
      {.name = "expand to nothing",
       .op =
           [](L x) {
             return expand(x[0], {0, 3});
           },
       .samples = {{in({})}, {in({1})}, {in({3})}, {in({1, 3})}, {in({0, 3})}, {in({1, 1})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     expand(ones({2, 3}), {0, 3});
                   },
                   "expand: shape (2, 3) does not broadcast to (0, 3)"}}},
  };
}

static std::vector<OpRow> rows_reshape() {
  return {
      {.name = "reshape",
       .op =
           [](L x) {
             return reshape(x[0], {2, -1});
           },
       .samples = {{in({2})},
                   {in({4})},
                   {in({3, 4})},
                   {in({2, 3, 4})},
                   {in({0, 3})},
                   {in({1, 6, 1})},
                   {in({2, 5})},
                   {in({34})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     reshape(ones({2, 3}), {4, -1});
                   },
                   "reshape: no size in place of -1 gives (4, -1) the 6 elements of (2, 3)"},
                  {[] {
                     reshape(ones({2, 3}), {-1, -1});
                   },
                   "reshape: shape (-1, -1) has a negative size; one size may be -1, for what is "
                   "left"},
                  {[] {
                     reshape(ones({2, 3}), {5});
                   },
                   "reshape: (2, 3) has 6 elements, (5) has 5"},
                  {[] {
                     reshape(full({2, 3}, 1), {int64_t{1} << 62, 4, -1});
                   },
                   "numel overflow: shape (4611686018427387904, 4)"},
                  {[] {
                     reshape(ones({0}), {0, -1});
                   },
                   "reshape: no size in place of -1 gives (0, -1) the 0 elements of (0)"}}},
      {.name = "reshape of a view",
       .op = [](L x) { return squared(reshape(transpose(x[0], 0, 1), {-1})); },
       .samples =
           {{in({3, 4})}, {in({2, 3, 4})}, {in({0, 3})}, {in({1, 5})}, {in({5, 1})}, {in({17, 3})}},
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] {
                     reshape(transpose(ones({3, 4}), 0, 1), {5, -1});
                   },
                   "reshape: no size in place of -1 gives (5, -1) the 12 elements of (4, 3)"}}},
      {.name = "view",
       .op =
           [](L x) {
             return view(contiguous(x[0]), {-1, 2});
           },
       .samples =
           {{in({2})}, {in({6})}, {in({3, 4})}, {in({2, 3, 4})}, {in({0, 2})}, {in({1, 2, 1})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     view(transpose(ones({3, 4}), 0, 1), {12});
                   },
                   "view: shape (4, 3) with strides (1, 4) cannot be seen as (12) without a copy; "
                   "use reshape()"},
                  {[] {
                     view(ones({2, 3}), {7});
                   },
                   "view: (2, 3) has 6 elements, (7) has 7"}}},
      {.name = "transpose",
       .op = [](L x) { return transpose(x[0], 0, -1); },
       .samples =
           {{in({5})}, {in({0, 3})}, {in({1, 4})}, {in({3, 4})}, {in({2, 3, 4})}, {in({17, 2})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     transpose(ones({2, 3}), 0, 2);
                   },
                   "transpose: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "transpose in the middle",
       .op = [](L x) { return squared(transpose(x[0], 1, 2)); },
       .samples = {{in({2, 3, 4})},
                   {in({2, 1, 3, 2})},
                   {in({2, 0, 3})},
                   {in({1, 17, 2})},
                   {in({3, 2, 1})}},
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] {
                     transpose(ones({2, 3}), 1, 2);
                   },
                   "transpose: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "permute",
       .op =
           [](L x) {
             return permute(x[0], {2, 0, -2});
           },
       .samples =
           {{in({2, 3, 4})}, {in({1, 3, 1})}, {in({0, 2, 3})}, {in({3, 1, 5})}, {in({1, 1, 1})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     permute(ones({2, 3}), {0, 0});
                   },
                   "permute: the order must name each of the 2 dimensions of (2, 3) once"},
                  {[] {
                     permute(ones({2, 3}), {1});
                   },
                   "permute: the order must name each of the 2 dimensions of (2, 3) once"},
                  {[] {
                     permute(ones({2, 3}), {0, 5});
                   },
                   "permute: dimension 5 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "squeeze",
       .op = [](L x) { return squeeze(x[0], 1); },
       .samples = {{in({3, 1})}, {in({1, 1})}, {in({2, 1, 4})}, {in({0, 1})}, {in({2, 1, 3, 1})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     squeeze(ones({2, 3}), 1);
                   },
                   "squeeze: dimension 1 of (2, 3) has size 3; only a size of 1 can be dropped"},
                  {[] {
                     squeeze(ones({2, 1}), 2);
                   },
                   "squeeze: dimension 2 is outside [-2, 2) of shape (2, 1)"}}},
      {.name = "unsqueeze",
       .op = [](L x) { return unsqueeze(x[0], -1); },
       .samples = kAnyShape,
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { unsqueeze(ones({2}), 2); },
                   "unsqueeze: dimension 2 is outside [-2, 1] for shape (2)"},
                  {[] {
                     unsqueeze(full({1, 1, 1, 1, 1, 1, 1, 2}, 1), 0);
                   },
                   "unsqueeze: shape (1, 1, 1, 1, 1, 1, 1, 2) leaves no room for one dimension "
                   "more; a tensor has at most 8"}}},
      {.name = "unsqueeze first",
       .op = [](L x) { return squared(unsqueeze(x[0], 0)); },
       .samples = kAnyShape,
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] {
                     unsqueeze(ones({2, 3}), -4);
                   },
                   "unsqueeze: dimension -4 is outside [-3, 2] for shape (2, 3)"}}},
  };
}

static std::vector<OpRow> rows_parts() {
  return {
      {.name = "slice",
       .op = [](L x) { return slice(x[0], 0, 1, 3); },
       .samples = {{in({3})}, {in({5})}, {in({3, 4})}, {in({4, 0})}, {in({3, 1, 2})}, {in({33})}},
       .y = exact(),
       .dx = exact(),
       .errors =
           {{[] { slice(ones({4}), 0, 1, 5); }, "slice: [1, 5) is outside dimension 0 of (4)"},
            {[] { slice(ones({4}), 0, 3, 2); }, "slice: [3, 2) is outside dimension 0 of (4)"},
            {[] { slice(ones({4}), 0, -1, 2); }, "slice: [-1, 2) is outside dimension 0 of (4)"},
            {[] { slice(ones({4}), 0, 0, 2, -1); },
             "slice: step must be at least 1; got -1; flip() "
             "reverses"},
            {[] { slice(ones({4}), 0, -5, kEnd); },
             "slice: [-5, 9223372036854775807) is outside dimension 0 of (4)"},
            {[] { slice(ones({4}), 1, 0, 2); },
             "slice: dimension 1 is outside [-1, 1) of shape (4)"}}},
      {.name = "slice step",
       .op = [](L x) { return slice(x[0], -1, 1, x[0].size(-1), 3); },
       .samples = {{in({1})},
                   {in({2})},
                   {in({4})},
                   {in({5})},
                   {in({3, 8})},
                   {in({0, 3})},
                   {in({2, 3, 4})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { slice(ones({4}), 0, 0, 4, 0); },
                   "slice: step must be at least 1; got 0; flip() reverses"}}},
      {.name = "slice from the end",
       .op = [](L x) { return slice(x[0], -1, -2, kEnd) * slice(x[0], -1, 0, 2); },
       .samples = {{in({2})}, {in({5})}, {in({3, 4})}, {in({0, 3})}, {in({2, 3, 4})}, {in({33})}},
       .y = relative(1),
       .dx = terms(2),
       .reference =
           [](L x) {
             const int64_t n = x[0].size(-1);
             return slice(x[0], -1, n - 2, n) * slice(x[0], -1, 0, 2);
           },
       .errors = {{[] { slice(ones({4}), 0, -1, -2); },
                   "slice: [-1, -2) is outside dimension 0 of (4)"}}},
      {.name = "slice to before the end",
       .op = [](L x) { return slice(x[0], 0, 0, -1, 2); },
       .samples = {{in({1})}, {in({2})}, {in({5})}, {in({3, 4})}, {in({2, 3, 4})}, {in({33})}},
       .y = exact(),
       .dx = exact(),
       .reference = [](L x) { return slice(x[0], 0, 0, x[0].size(0) - 1, 2); },
       .errors = {{[] { slice(ones({0}), 0, 0, -1); },
                   "slice: [0, -1) is outside dimension 0 of (0)"}}},
      {.name = "slice twice",
       .op = [](L x) { return slice(x[0], 1, 0, 3, 2) * slice(x[0], 1, 1, 3); },
       .samples = {{in({3, 4})}, {in({2, 3})}, {in({0, 3})}, {in({2, 3, 4})}, {in({17, 5})}},
       .y = relative(1),
       .dx = terms(2),
       .errors = {{[] {
                     slice(ones({3, 2}), 1, 1, 3);
                   },
                   "slice: [1, 3) is outside dimension 1 of (3, 2)"}}},
      {.name = "slice nothing",
       .op = [](L x) { return slice(x[0], 0, 2, 2, 1000000000000); },
       .samples = {{in({2})}, {in({3, 2})}, {in({33})}, {in({2, 0})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { slice(ones({1}), 0, 2, 2); },
                   "slice: [2, 2) is outside dimension 0 of (1)"}}},
      {.name = "select",
       .op = [](L x) { return select(x[0], 0, 1); },
       .samples =
           {{in({2})}, {in({5})}, {in({3, 4})}, {in({2, 3, 4})}, {in({2, 0})}, {in({33, 1})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] {
                     select(ones({2, 3}), 1, 3);
                   },
                   "select: index 3 is outside [-3, 3) of dimension 1 of (2, 3)"},
                  {[] {
                     select(ones({2, 3}), 0, -3);
                   },
                   "select: index -3 is outside [-2, 2) of dimension 0 of (2, 3)"},
                  {[] {
                     select(ones({2, 3}), 2, 0);
                   },
                   "select: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
      {.name = "select from the end",
       .op = [](L x) { return squared(select(x[0], -1, -1)); },
       .samples =
           {{in({1})}, {in({5})}, {in({3, 4})}, {in({2, 3, 4})}, {in({0, 2})}, {in({2, 17})}},
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] { select(ones({}), 0, 0); },
                   "select: dimension 0 is outside [0, 0) of shape ()"}}},
      {.name = "unslice",
       .op = [](L x) { return unslice(x[0], 0, 9, 2, 2); },
       .samples = {{in({0})}, {in({1})}, {in({4})}, {in({3, 2})}, {in({2, 0})}, {in({1, 3, 2})}},
       .y = exact(),
       .dx = exact(),
       .errors = {{[] { unslice(ones({4}), 0, 7, 1, 2); },
                   "unslice: 4 elements from 1 in steps of 2 do not fit in dimension 0 of size 7"},
                  {[] { unslice(ones({1}), 0, 3, -1); },
                   "unslice: 1 elements from -1 in steps of 1 do not fit in dimension 0 of size 3"},
                  {[] { unslice(ones({1}), 0, 3, 0, 0); },
                   "unslice: step must be at least 1; got 0"}}},
      {.name = "unslice squared",
       .op = [](L x) { return squared(unslice(x[0], -1, 6, 1, 2)); },
       .samples = {{in({3})}, {in({2, 2})}, {in({2, 1})}, {in({3, 0})}, {in({2, 1, 3})}},
       .y = relative(1),
       .dx = relative(2),
       .errors = {{[] {
                     unslice(ones({2, 3}), 2, 6, 1);
                   },
                   "unslice: dimension 2 is outside [-2, 2) of shape (2, 3)"}}},
  };
}

std::vector<OpRow> rows_shape() {
  std::vector<OpRow> rows;
  for (auto part : {rows_copies, rows_reshape, rows_parts})
    for (OpRow& row : part()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
