// The rows of relu, leaky_relu, elu, sigmoid, softplus, silu, swiglu (tests/op_table.h). sigmoid
// and softplus err by at most 2.5 ulp, 5 roundings (tests/kernels/math_test.cpp).
#include <cmath>

#include "op_samples.h"

namespace pellucid {

static double logistic(double x) { return 1 / (1 + std::exp(-x)); }

// dy y (1 - y): 5 of y, 5 y + (1 - y) of 1 - y, 2 products.
static TensorList sigmoid_gradient_gauge(const Call& call) {
  NoGradGuard no_grad;
  return {8.0 * magnitude(call.dy) * call.y};
}

// The slope s + x s (1 - s): s has 3 roundings or, as e r, 6, s (1 - s) = e r r has 10, a product
// and the sum; for k more.
static Tensor slope_gauge(const Tensor& x, double k) {
  const Tensor s = sigmoid(x), rest = sigmoid(neg(x));
  return (7 + k) * s + (12 + k) * magnitude(x) * s * rest;
}
static TensorList silu_gradient_gauge(const Call& call) {
  NoGradGuard no_grad;
  return {magnitude(call.dy) * slope_gauge(call.x[0].detach(), 1)};
}
// dgate = dy up slope, dup = dy silu, added in double over what was broadcast.
static TensorList swiglu_gradient_gauge(const Call& call) {
  NoGradGuard no_grad;
  const Tensor gate = call.x[0].detach(), up = call.x[1].detach(), dy = 1.01 * magnitude(call.dy);
  return {sum_to(dy * magnitude(up) * slope_gauge(gate, 2), gate.shape()),
          sum_to(8.0 * dy * magnitude(gate) * sigmoid(gate), up.shape())};
}

static std::vector<OpRow> rows_with_slope() {
  const auto refused = [](const std::string& op, const std::function<void(const Tensor&)>& call) {
    return std::vector<ErrorSample>{refuses(op, call, kInt64), refuses(op, call, kBool)};
  };
  return {
      {.name = "leaky_relu",  // slope and product are rounded
       .op = [](L x) { return leaky_relu(x[0], 0.01); },
       .samples = one(-2, 2, away),
       .y = relative(2),
       .dx = relative(2),
       .reference = by_loop([](double x) { return x > 0 ? x : 0.01 * x; }),
       .errors = refused("leaky_relu", [](const Tensor& x) { leaky_relu(x); }),
       .lanes = Lanes::kEach},
      {.name = "elu",  // alpha, a product and 2 for expm1 or exp
       .op = [](L x) { return elu(x[0], 1.5); },
       .samples = one(-2, 2, away),
       .y = relative(3),
       .dx = relative(4),
       .reference = by_loop([](double x) { return x > 0 ? x : 1.5 * std::expm1(x); }),
       .errors = refused("elu", [](const Tensor& x) { elu(x); }),
       .lanes = Lanes::kEach},
  };
}

std::vector<OpRow> rows_activation() {
  std::vector<OpRow> rows = {
      unary_row("relu", relu, one(-2, 2, away), exact(), exact(),
                [](double x) { return std::max(x, 0.0); }),
      unary_row("sigmoid", sigmoid, one(-5, 5), relative(5), sigmoid_gradient_gauge, logistic),
      unary_row("softplus", softplus, one(-5, 5), relative(5), relative(6),
                [](double x) { return std::log1p(std::exp(x)); }),
      unary_row("silu", silu, one(-5, 5), relative(6), silu_gradient_gauge,
                [](double x) { return x * logistic(x); }),
      binary_row("swiglu", swiglu, pairs(in({}, -4, 4), in({})), swiglu_gradient_gauge,
                 [](double gate, double up) { return gate * logistic(gate) * up; }),
  };
  for (OpRow& row : rows) {
    if (row.name == "silu") row.errors = {refuses("silu_forward", silu, kInt64)};
    if (row.name == "swiglu") row.y = relative(7);
    // More than two threads' shares.
    if (row.name == "silu") row.samples.push_back({in({36000}, -20, 20)});
    if (row.name == "swiglu") row.samples.push_back({in({36000}, -20, 20), in({36000})});
  }
  for (OpRow& row : rows_with_slope()) rows.push_back(std::move(row));
  return rows;
}

}  // namespace pellucid
