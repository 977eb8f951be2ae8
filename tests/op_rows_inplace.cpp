// The rows of the ops in place (tests/op_table.h). Each works on a copy, for its inputs are leaves.
#include "op_samples.h"

namespace pellucid {

// What broadcasts to the first.
static std::vector<Sample> written() {
  return {{in({}), in({})},         {in({3, 4}), in({3, 4})}, {in({3, 4}), in({4})},
          {in({3, 4}), in({3, 1})}, {in({0, 3}), in({3})},    {in({33}), in({})},
          {in({1}), in({1})},       {in({17, 31}), in({31})}};
}

static std::vector<ErrorSample> errors_of(const std::string& op, Binary f) {
  return {{[=] {
             f(ones({3}), ones({2, 3}));
           },
           op + ": shape (2, 3) does not broadcast to (3), the shape of what is written"},
          {[=] { f(ones({3}), ones({4})); },
           op + ": shapes (3) and (4) do not broadcast: they differ in axis -1"},
          {[=] { f(ones({3}), ones({3}, kFloat64)); },
           op + ": wanted two tensors of one dtype; got float32 of shape (3) and float64 of shape "
                "(3); use astype()"}};
}
static std::vector<ErrorSample> refusals(const std::string& op, Unary f) {
  return {{[=] { f(expand(ones({1}), {4})); },
           op + ": writes to a tensor of shape (4) whose elements share memory, as expand makes "
                "them; write to the tensor before expand, or to contiguous(x)"},
          {[=] { f(ones({4}).set_requires_grad(true)); },
           op + ": in place on a leaf that requires a gradient; use NoGradGuard"},
          {[=] { f(slice(ones({4}).set_requires_grad(true) * 1.0, 0, 0, 2)); },
           op + ": in place on a view of part of a tensor is not differentiable; use where() or "
                "unslice()"}};
}
static std::vector<ErrorSample> joined(std::vector<ErrorSample> a, const ErrorSample& more) {
  a.push_back(more);
  return a;
}

static std::vector<OpRow> rows_add_mul() {
  const std::string by_mul = "the copy is made by mul";
  return {
      {.name = "add_",
       .op = [](L x) { return add_(x[0] * 1.0, x[1]); },
       .samples = written(),
       .y = relative(1),
       .dx = terms(1.01),
       .reference = by_loop([](double a, double b) { return a + b; }),
       .errors = joined(errors_of("add_", add_),
                        refuses(
                            "add_", [](const Tensor& x) { add_(x, x); }, kInt64)),
       .lanes = Lanes::kEach,
       .no_dtypes = by_mul},
      {.name = "mul_",
       .op = [](L x) { return mul_(x[0] * 1.0, x[1]); },
       .samples = written(),
       .y = relative(1),
       .dx = terms(2.01),
       .reference = by_loop([](double a, double b) { return a * b; }),
       .errors = joined(errors_of("mul_", mul_),
                        refuses(
                            "mul_", [](const Tensor& x) { mul_(x, x); }, kInt64)),
       .lanes = Lanes::kEach,
       .no_dtypes = by_mul},
      {.name = "mul_ by itself",
       .op =
           [](L x) {
             const Tensor y = x[0] * 1.0;
             return mul_(y, y);
           },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(2),
       .reference = by_loop([](double x) { return x * x; }),
       .errors = refusals("mul_", [](const Tensor& x) { return mul_(x, x); }),
       .lanes = Lanes::kEach,
       .no_dtypes = by_mul},
      {.name = "mul_ by a number",
       .op = [](L x) { return mul_(x[0] * 1.0, -2.5); },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(1),
       .reference = by_loop([](double x) { return -2.5 * x; }),
       .errors = joined(refusals("mul_", [](const Tensor& x) { return mul_(x, 2); }),
                        refuses(
                            "mul_", [](const Tensor& x) { mul_(x, 2); }, kInt64)),
       .lanes = Lanes::kEach,
       .no_dtypes = by_mul},
  };
}

static std::vector<OpRow> rows_copy_fill() {
  const auto refuses_half = [](DType dtype, const std::string& what) {
    return ErrorSample{[=] { fill_(ones({2}, dtype), 0.5); }, "fill_: 0.5 is no " + what};
  };
  return {
      {.name = "copy_",
       .op =
           [](L x) {
             return copy_(full_like(x[0], {2, 3, 4}, 7), x[0]);
           },
       .samples = {{in({2, 3, 4})},
                   {in({3, 4})},
                   {in({3, 1})},
                   {in({4})},
                   {in({1})},
                   {in({})},
                   {in({2, 1, 4})}},
       .y = exact(),
       .dx = terms(1.01),
       .errors = errors_of("copy_", copy_)},
      {.name = "copy_ over a result",  // whose own gradient ends there
       .op = [](L x) { return copy_(x[0] * x[0], x[1]) * x[0]; },
       .samples = written(),
       .y = relative(1),
       .dx = terms(2.01),
       .reference = by_loop([](double a, double b) { return a * b; }),
       .errors = refusals("copy_", [](const Tensor& x) { return copy_(x, full_like(x, {}, 1)); }),
       .lanes = Lanes::kEach,
       .no_dtypes = "the copy is made by mul"},
      {.name = "fill_",
       .op = [](L x) { return fill_(x[0] * 2.0, 3) * x[0]; },
       .samples = one(-2, 2),
       .y = relative(1),
       .dx = relative(1),
       .reference = by_loop([](double x) { return 3 * x; }),
       .errors = {refuses_half(kInt64, "whole number of at most 2^53, as int64 wants it"),
                  refuses_half(kBool, "bool")},
       .lanes = Lanes::kEach,
       .no_dtypes = "the copy is made by mul"},
      {.name = "zero_",
       .op = [](L x) { return zero_(x[0] * 2.0) + x[0]; },
       .samples = one(-2, 2),
       .y = exact(),
       .dx = exact(),
       .reference = by_loop([](double x) { return x; }),
       .errors = refusals("zero_", zero_),
       .lanes = Lanes::kEach,
       .no_dtypes = "the copy is made by mul"},
  };
}

std::vector<OpRow> rows_inplace() {
  std::vector<OpRow> rows = rows_add_mul();
  for (OpRow& row : rows_copy_fill()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
