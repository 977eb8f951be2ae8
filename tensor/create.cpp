// The creation functions of tensor.h.
#include <cmath>

#include "kernels/elementwise.h"
#include "tensor/launch.h"

namespace pellucid {

// Whole numbers up to 2^53 are exact in a double: others would be stored changed, so they are
// refused.
static void check_whole(const char* op, double value) {
  CHECK_ARG(value == std::trunc(value) && std::abs(value) <= 0x1p53, op, ": ", value,
            " is no whole number of at most 2^53, as int64 wants it");
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  if (dtype == kInt64) check_whole("full", value);
  Tensor y = empty(shape, dtype, device);
  LAUNCH_ANY(y, fill, y, value);
  return y;
}
Tensor zeros(const Shape& shape, DType dtype, Device device) {
  return full(shape, 0, dtype, device);
}
Tensor ones(const Shape& shape, DType dtype, Device device) {
  return full(shape, 1, dtype, device);
}
Tensor scalar(double value, DType dtype) { return full({}, value, dtype); }

Tensor empty_like(const Tensor& x, const Shape& shape) {
  return empty(shape, x.dtype(), x.device());
}
Tensor full_like(const Tensor& x, const Shape& shape, double value) {
  return full(shape, value, x.dtype(), x.device());
}

Tensor number_like(const char* op, const Tensor& x, double value) {
  if (x.dtype() == kInt64) check_whole(op, value);
  CHECK_ARG(x.dtype() != kBool || value == 0 || value == 1, op, ": ", value, " is no bool");
  return full_like(x, {}, value);
}

// y[i] = value(i), i in row-major order.
template <class Value>
static Tensor generate(const Shape& shape, DType dtype, Value value) {
  Tensor y = empty(shape, dtype);
  visit(dtype, [&]<class T>() {
    T* data = y.data<T>();
    for (int64_t i = 0; i < y.numel(); ++i) data[i] = static_cast<T>(value(i));
  });
  return y;
}

Tensor arange(int64_t end, DType dtype) { return arange(0, end, 1, dtype); }

Tensor arange(int64_t start, int64_t end, int64_t step, DType dtype) {
  CHECK_ARG(step > 0, "arange: step ", step, " must be positive");
  int64_t distance = 0;
  CHECK_ARG(!__builtin_sub_overflow(end, start, &distance), "arange: from ", start, " to ", end,
            " is farther than int64 counts");
  const int64_t n = distance <= 0 ? 0 : (distance - 1) / step + 1;
  return generate({n}, dtype, [&](int64_t i) { return start + i * step; });
}

Tensor linspace(double first, double last, int64_t n, DType dtype) {
  CHECK_ARG(n >= 0 && is_floating(dtype), "linspace: wanted n >= 0 and a floating dtype; got n ", n,
            ", ", name(dtype));
  CHECK_ARG(std::isfinite(last - first), "linspace: from ", first, " to ", last,
            " is no finite distance");
  const double step = n <= 1 ? 0 : (last - first) / static_cast<double>(n - 1);
  return generate({n}, dtype, [&](int64_t i) {
    return i > 0 && i == n - 1 ? last : first + step * static_cast<double>(i);
  });
}

Tensor eye(int64_t n, DType dtype) {
  CHECK_ARG(n >= 0, "eye: n must not be negative; got ", n);
  return generate({n, n}, dtype, [&](int64_t i) { return i % (n + 1) == 0; });
}

template <class From>
static Tensor from_values(const std::vector<From>& values, const Shape& shape, DType dtype) {
  CHECK_ARG(static_cast<int64_t>(values.size()) == shape.numel(), "from_vector: ", values.size(),
            " values do not fill shape ", shape);
  if constexpr (std::is_same_v<From, double>) {
    if (dtype == kInt64)
      for (double value : values) check_whole("from_vector", value);
  }
  return generate(shape, dtype, [&](int64_t i) { return values[static_cast<std::size_t>(i)]; });
}
Tensor from_vector(const std::vector<double>& values, const Shape& shape, DType dtype) {
  return from_values(values, shape, dtype);
}
template <std::same_as<int64_t> T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, DType dtype) {
  return from_values(values, shape, dtype);
}
template Tensor from_vector(const std::vector<int64_t>&, const Shape&, DType);

Literal::Literal(std::initializer_list<Literal> rows) {
  shape.push_back(static_cast<int64_t>(rows.size()));
  for (const Literal& row : rows) {
    CHECK_ARG(row.shape == rows.begin()->shape, "tensor: rows of shapes ", rows.begin()->shape,
              " and ", row.shape, " side by side");
    values.insert(values.end(), row.values.begin(), row.values.end());
  }
  if (rows.size() > 0)
    for (int64_t size : rows.begin()->shape) shape.push_back(size);
}
Tensor tensor(const Literal& literal, DType dtype) {
  return from_vector(literal.values, literal.shape, dtype);
}

Tensor astype(const Tensor& x, DType dtype) {
  const Tensor from = on_cpu(x);
  CHECK_ARG(x.device() == kCPU, "astype: wants a tensor on the CPU; take on_cpu(x) first");
  return visit(x.dtype(), [&]<class From>() {
    const From* values = from.data<From>();
    return generate(x.shape(), dtype, [&](int64_t i) {
      if constexpr (std::is_floating_point_v<From>) {
        // Below 2^63 in size: a cast of anything else, NaN included, is undefined behaviour.
        CHECK_ARG(dtype != kInt64 || std::abs(values[i]) < From(0x1p63),
                  "astype: int64 cannot hold ", values[i]);
      }
      return values[i];
    });
  });
}

}  // namespace pellucid
