// Samples, references and errors that the rows of elementwise ops share (tests/op_table.h).
#pragma once
#include "op_table.h"

namespace pellucid {

// Pairs of operands that broadcast.
inline std::vector<Sample> pairs(const Input& a, const Input& b) {
  const std::pair<Shape, Shape> shapes[] = {
      {{}, {}},      {{5}, {}},           {{0, 3}, {3}},       {{3, 4}, {3, 4}},
      {{3, 4}, {4}}, {{3, 1}, {1, 4}},    {{2, 3}, {4, 1, 1}}, {{2, 0}, {2, 1}},
      {{33}, {1}},   {{17, 31}, {17, 31}}};
  std::vector<Sample> samples;
  for (const auto& [first, second] : shapes)
    samples.push_back({in(first, a.low, a.high, a.map), in(second, b.low, b.high, b.map)});
  return samples;
}
inline std::vector<Sample> pairs() { return pairs(in({}), in({})); }

inline std::vector<Sample> one(double low, double high,
                               std::function<double(double)> map = nullptr) {
  std::vector<Sample> samples;
  for (const Shape& shape : {Shape{}, {1}, {5}, {0, 3}, {3, 4}, {2, 3, 4}, {33}, {17, 31}})
    samples.push_back({in(shape, low, high, map)});
  return samples;
}

// Away from 0 on both sides, for divisors and kinks.
inline double away(double x) { return x < 0 ? x - 0.5 : x + 0.5; }
// To quarters: equal numbers occur.
inline double quarters(double x) { return double(int64_t(4 * x)) / 4; }

// References: one element at a time, in double.
inline std::function<Tensor(L)> by_loop(std::function<double(double)> f) {
  return [f = std::move(f)](L x) {
    std::vector<double> y = x[0].to_vector();
    for (double& value : y) value = f(value);
    return from_vector(y, x[0].shape(), kFloat64);
  };
}
inline std::function<Tensor(L)> by_loop(std::function<double(double, double)> f) {
  return [f = std::move(f)](L x) {
    const Shape shape = broadcast_shape("reference", x[0].shape(), x[1].shape());
    std::vector<double> y = expanded(x[0], shape).to_vector();
    const std::vector<double> b = expanded(x[1], shape).to_vector();
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = f(y[i], b[i]);
    return from_vector(y, shape, kFloat64);
  };
}

// As 0 and 1 of the dtype of x, so that an op of comparisons has numbers to show.
inline Tensor truth(const Tensor& condition, const Tensor& x) {
  return where(condition, full_like(x, {}, 1), full_like(x, {}, 0));
}

using Unary = Tensor (*)(const Tensor&);
using Binary = Tensor (*)(const Tensor&, const Tensor&);

inline ErrorSample refuses(const std::string& op, const std::function<void(const Tensor&)>& call,
                           DType dtype) {
  return {[=] { call(ones({2}, dtype)); },
          op + ": wanted float32 or float64; got " + pellucid::name(dtype) + "; use astype()"};
}
inline std::vector<ErrorSample> unary_errors(const std::string& op, Unary f) {
  return {refuses(op, f, kInt64), refuses(op, f, kBool)};
}
inline std::vector<ErrorSample> pair_errors(const std::string& op, Binary f) {
  return {{[=] { f(ones({2}), ones({2}, kFloat64)); },
           op + ": wanted two tensors of one dtype; got float32 of shape (2) and float64 of shape "
                "(2); use astype()"},
          {[=] {
             f(ones({2, 3}), ones({4}));
           },
           op + ": shapes (2, 3) and (4) do not broadcast: they differ in axis -1"}};
}
inline std::vector<ErrorSample> binary_errors(const std::string& op, Binary f) {
  std::vector<ErrorSample> errors = pair_errors(op, f);
  errors.push_back(refuses(
      op, [f](const Tensor& x) { f(x, x); }, kInt64));
  return errors;
}

inline OpRow unary_row(const std::string& name, Unary op, std::vector<Sample> samples, Gauge y,
                       Gauge dx, std::function<double(double)> f) {
  return {.name = name,
          .op = [op](L x) { return op(x[0]); },
          .samples = std::move(samples),
          .y = std::move(y),
          .dx = std::move(dx),
          .reference = by_loop(std::move(f)),
          .errors = unary_errors(name, op),
          .lanes = Lanes::kEach};
}
inline OpRow binary_row(const std::string& name, Binary op, std::vector<Sample> samples, Gauge dx,
                        std::function<double(double, double)> f) {
  return {.name = name,
          .op = [op](L x) { return op(x[0], x[1]); },
          .samples = std::move(samples),
          .y = relative(1),
          .dx = std::move(dx),
          .reference = by_loop(std::move(f)),
          .errors = binary_errors(name, op),
          .lanes = Lanes::kEach};
}

}  // namespace pellucid
