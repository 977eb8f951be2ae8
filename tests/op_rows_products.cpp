// The rows of the products: matmul, linear, outer (tests/op_table.h). The reference multiplies all
// the pairs and adds them with sum().
#include <algorithm>

#include "op_table.h"

namespace pellucid {

namespace {

// A sum of n terms in any order is off by at most n + 1 roundings of the sum of all |terms|; with
// the partial sums of gemm random numbers stay under 8, and under 16 where the engine then
// adds up a batch. n is K, and for a gradient at most the number of elements of dy.
TensorList product_bound(const Call& call) {
  const bool gradient = call.dy.defined();
  const double n = double(gradient ? call.dy.numel() : call.x[0].size(-1));
  return terms(std::min(n + 1, gradient ? 16.0 : 8.0))(call);
}

const std::string kLayoutReason =
    "few rows along contiguous K are dot products, others blocks: another order of the sums";

// (..., M, K, 1) * (..., 1, K, N), summed over K; a vector is a row, or a column.
Tensor matmul_reference(L x) {
  const bool row = x[0].dim() == 1, column = x[1].dim() == 1;
  const Tensor a = row ? unsqueeze(x[0], 0) : x[0], b = column ? unsqueeze(x[1], 1) : x[1];
  Tensor y = sum(unsqueeze(a, -1) * unsqueeze(b, -3), -2);  // (..., M, N)
  if (column) y = squeeze(y, -1);
  return row ? squeeze(y, column ? -1 : -2) : y;
}

OpRow matmul_row() {
  OpRow row{.name = "matmul", .op = [](L x) { return matmul(x[0], x[1]); }};
  row.samples = {
      {in({3, 5}), in({5, 4})},
      {in({2, 3, 17}), in({2, 17, 2})},
      {in({2, 1, 2, 3}), in({3, 3, 2})},  // leading dimensions broadcast
      {in({3, 1, 4}), in({1, 4, 2})},
      {in({2, 3, 4}), in({4, 5})},  // one b for the whole batch
      {in({3, 4}), in({2, 4, 2})},  // one a for the whole batch
      {in({2, 2, 3, 4}), in({4, 1})},
      {in({4}), in({4})},  // vectors, as NumPy has them
      {in({4}), in({4, 3})},
      {in({4}), in({2, 4, 3})},
      {in({2, 3, 4}), in({4})},
      {in({1, 1}), in({1, 1})},
      {in({3, 2, 0}), in({3, 0, 3})},  // no terms: zeros
      {in({0}), in({0})},
      {in({2, 0}), in({0, 3})},
      {in({0, 3}), in({3, 2})},
      {in({2, 3}), in({3, 0})},
      {in({0, 2, 3}), in({3, 2})},
      {in({33, 65}), in({65, 31})},  // beyond a tile
      {in({2, 63, 129}), in({129, 17})},
      {in({127, 2}), in({2, 127})},
      {in({3, 1, 2049}), in({2049, 3})},
  };
  row.y = product_bound, row.dx = product_bound;
  row.reference = matmul_reference;
  row.layout_changes_bits = kLayoutReason;
  row.errors = {
      {[] {
         matmul(full({2, 3}, 1), full({4, 5}, 1));
       },
       "matmul: wanted (..., M, K) (..., K, N); got (2, 3) and (4, 5): the last dimension of a is "
       "3, that of b's rows is 4; transpose one of them?"},
      {[] {
         matmul(full({3}, 1), full({2, 4, 5}, 1));
       },
       "matmul: wanted (..., M, K) (..., K, N); got (3) and (2, 4, 5): the last dimension of a is "
       "3, that of b's rows is 4; transpose one of them?"},
      {[] {
         matmul(full({}, 1), full({3, 3}, 1));
       },
       "matmul: a number is no matrix; got () and (3, 3); use mul"},
      {[] {
         matmul(full({2, 2, 3}, 1), full({3, 3, 2}, 1));
       },
       "matmul: shapes (2) and (3) do not broadcast: they differ in axis -1"},
      {[] {
         matmul(full({2, 3}, 1), full({3, 2}, 1, kFloat64));
       },
       "matmul: one dtype wanted; got a float32 (2, 3) and b float64 (3, 2); convert one of them"},
      {[] {
         matmul(full({2, 3}, 1, kInt64), full({3, 2}, 1, kInt64));
       },
       "matmul: wanted float32 or float64; got int64; use astype()"},
  };
  return row;
}

// (..., 1, K) * (N, K), summed over K.
Tensor linear_reference(L x) {
  const Tensor y = sum(unsqueeze(x[0], -2) * x[1], -1);  // (..., N)
  return x.size() > 2 ? y + x[2] : y;
}

OpRow linear_row(bool bias) {
  OpRow row{.name = bias ? "linear" : "linear without b",
            .op = [](L x) { return linear(x[0], x[1], x.size() > 2 ? x[2] : Tensor()); }};
  const auto add = [&](const Shape& x, int64_t N) {
    Sample sample{in(x), in({N, x[-1]})};
    if (bias) sample.push_back(in({N}));
    row.samples.push_back(sample);
  };
  add({2, 3, 4}, 5);
  add({3, 7}, 1);
  add({5}, 3);
  add({1, 1, 1}, 1);
  add({2, 2, 0}, 3);  // no terms: b, or zeros
  add({0, 3}, 2);
  add({3, 4}, 0);
  add({2, 31, 65}, 33);
  add({3, 43, 17}, 127);
  add({2050, 3}, 2);
  row.y = bias ? both(product_bound, relative(1)) : Gauge(product_bound);
  row.dx = product_bound;
  row.reference = linear_reference;
  row.layout_changes_bits = kLayoutReason;
  return row;
}

OpRow outer_row() {
  OpRow row{.name = "outer",
            .op = [](L x) { return outer(x[0], x[1]); },
            .y = relative(1),
            .dx = terms(2.01),  // products, added in double
            .reference =
                [](L x) {
                  std::vector<double> y;
                  for (double a : x[0].to_vector())
                    for (double b : x[1].to_vector()) y.push_back(a * b);
                  return from_vector(y, {x[0].size(0), x[1].size(0)}, kFloat64);
                },
            .errors = {{[] {
                          outer(ones({2, 3}), ones({2}));
                        },
                        "outer: wanted a (M) and b (N); got a (2, 3) and b (2); reshape them to "
                        "(-1)"},
                       {[] { outer(ones({}), ones({2})); },
                        "outer: wanted a (M) and b (N); got a () and b (2); reshape them to (-1)"},
                       {[] { outer(ones({2}), ones({2}, kFloat64)); },
                        "outer: one floating dtype wanted; got a float32 and b float64; convert "
                        "one of them"},
                       {[] { outer(ones({2}, kInt64), ones({2}, kInt64)); },
                        "outer: one floating dtype wanted; got a int64 and b int64; convert one "
                        "of them"}}};
  for (const auto& [M, N] : {std::pair{1, 1}, {5, 3}, {3, 0}, {0, 2}, {2, 17}, {31, 33}, {1, 129}})
    row.samples.push_back({in({M}), in({N})});
  return row;
}

}  // namespace

std::vector<OpRow> rows_products() {
  OpRow linear_with_bias = linear_row(true);
  linear_with_bias.errors = {
      {[] {
         linear(full({2, 3}, 1), full({3, 4}, 1), {});
       },
       "linear: wanted x (..., K) and w (N, K); got x (2, 3) and w (3, 4); w has a row for each "
       "output"},
      {[] {
         linear(full({2, 3}, 1), full({4, 3}, 1), full({3}, 1));
       },
       "linear: wanted b of shape (4), the rows of w (4, 3); got (3)"},
      {[] {
         linear(full({2, 3}, 1), full({4, 3}, 1, kFloat64), {});
       },
       "linear: one dtype wanted; got x float32 (2, 3) and w float64 (4, 3); convert one of them"},
      {[] {
         linear(full({2, 3}, 1), full({4, 3}, 1), full({4}, 1, kFloat64));
       },
       "linear: one dtype wanted; got x float32 (2, 3) and b float64 (4); convert one of them"},
  };
  OpRow linear_without_bias = linear_row(false);
  linear_without_bias.errors = {
      {[] {
         linear(full({}, 1), full({3, 1}, 1), {});
       },
       "linear: wanted x (..., K) and w (N, K); got x () and w (3, 1); w has a row for each "
       "output"},
      {[] {
         linear(full({2, 3}, 1, kInt64), full({4, 3}, 1, kInt64), {});
       },
       "linear: wanted float32 or float64; got int64; use astype()"}};
  return {matmul_row(), linear_with_bias, linear_without_bias, outer_row()};
}

}  // namespace pellucid
