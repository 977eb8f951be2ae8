// The table put together, and the gauges that most rows use.
#include "op_table.h"

#include <cmath>

namespace pellucid {

std::vector<OpRow> all_rows() {
  std::vector<OpRow> all;
  for (auto rows : {rows_elementwise, rows_choice, rows_activation, rows_inplace, rows_reduce,
                    rows_reduce_choices, rows_shape, rows_join, rows_index, rows_fused,
                    rows_products, rows_attention, rows_optim, rows_conv, rows_loss})
    for (OpRow& row : rows()) all.push_back(std::move(row));
  return all;
}

Tensor magnitude(const Tensor& x) {
  std::vector<double> values = x.to_vector();
  for (double& value : values) value = std::abs(value);
  return from_vector(values, x.shape(), kFloat64);
}

static Tensor scaled(const Tensor& x, double k) {
  std::vector<double> values = x.to_vector();
  for (double& value : values) value = k == 0 ? 0 : k * std::abs(value);
  return from_vector(values, x.shape(), kFloat64);
}

Gauge relative(double k) {
  return [k](const Call& call) {
    TensorList G;
    for (const Tensor& r : call.result) G.push_back(r.defined() ? scaled(r, k) : r);
    return G;
  };
}

Gauge exact() { return relative(0); }

Gauge terms(double k) {
  return [k](const Call& call) {
    TensorList x;
    for (const Tensor& a : call.x) x.push_back(magnitude(a).set_requires_grad(true));
    const Tensor y = call.op(x);
    if (!call.dy.defined()) return TensorList{scaled(y, k)};
    TensorList G = grad(y, x, magnitude(call.dy), {.allow_unused = true});
    for (Tensor& dx : G)
      if (dx.defined()) dx = scaled(dx, k);
    return G;
  };
}

Gauge both(Gauge a, Gauge b) {
  return [a = std::move(a), b = std::move(b)](const Call& call) {
    TensorList G = a(call), more = b(call);
    NoGradGuard no_grad;
    for (std::size_t i = 0; i < G.size(); ++i)
      if (G[i].defined()) G[i] = add(G[i], more[i]);
    return G;
  };
}

std::vector<Sample> shapes(const std::vector<Shape>& list, double low, double high) {
  std::vector<Sample> samples;
  for (const Shape& shape : list) samples.push_back({in(shape, low, high)});
  return samples;
}

Tensor folded(const Tensor& x, const Dims& dims, bool keepdim, const Fold& f) {
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

}  // namespace pellucid
