#include "tensor/tensor.h"

#include "kernels/elementwise.h"
#include "tensor/launch.h"

namespace pellucid {

const char* name(DType dtype) {
  return dtype == kFloat32   ? "float32"
         : dtype == kFloat64 ? "float64"
         : dtype == kInt64   ? "int64"
                             : "bool";
}

Storage::Storage(std::size_t bytes_, Device device_)
    : data(device::allocate(static_cast<int>(device_), bytes_)), bytes(bytes_), device(device_) {
  alive_bytes += static_cast<int64_t>(bytes);
}
Storage::~Storage() {
  alive_bytes -= static_cast<int64_t>(bytes);
  device::release(static_cast<int>(device), data);
}

Shape row_major(const Shape& sizes) {
  Shape strides = sizes;
  int64_t stride = 1;
  for (int d = sizes.dim() - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d];
  }
  return strides;
}

bool Tensor::is_contiguous() const {
  int64_t stride = 1;
  for (int d = dim() - 1; d >= 0; --d) {
    if (size(d) == 0) return true;
    if (size(d) != 1 && this->stride(d) != stride) return false;
    stride *= size(d);
  }
  return true;
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  CHECK_ARG(device == kCPU || device::has_cuda(),
            "empty: this build has no CUDA; configure with PELLUCID_CUDA=ON");
  auto impl = std::make_shared<TensorImpl>();
  impl->storage =
      std::make_shared<Storage>(static_cast<std::size_t>(shape.numel()) * item_size(dtype), device);
  impl->sizes = shape;
  impl->strides = row_major(shape);
  impl->dtype = dtype;
  return Tensor(std::move(impl));
}

Tensor full(const Shape& shape, double value, DType dtype, Device device) {
  Tensor y = empty(shape, dtype, device);
  LAUNCH_ANY(y, fill, y, value);
  return y;
}

Tensor empty_like(const Tensor& x, const Shape& shape) {
  return empty(shape, x.dtype(), x.device());
}
Tensor full_like(const Tensor& x, const Shape& shape, double value) {
  return full(shape, value, x.dtype(), x.device());
}

Tensor from_vector(const std::vector<double>& values, const Shape& shape, DType dtype) {
  CHECK_ARG(static_cast<int64_t>(values.size()) == shape.numel(), "from_vector: ", values.size(),
            " values do not fill shape ", shape);
  Tensor x = empty(shape, dtype);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (dtype == kFloat32) static_cast<float*>(x.data())[i] = static_cast<float>(values[i]);
    if (dtype == kFloat64) static_cast<double*>(x.data())[i] = values[i];
    if (dtype == kInt64) static_cast<int64_t*>(x.data())[i] = static_cast<int64_t>(values[i]);
    if (dtype == kBool) static_cast<bool*>(x.data())[i] = values[i] != 0;
  }
  return x;
}

std::vector<double> Tensor::to_vector() const {
  const Tensor x = packed(*this);
  std::vector<char> bytes(static_cast<std::size_t>(numel()) * item_size(dtype()));
  device::copy(bytes.data(), x.data(), bytes.size(), device() == kCUDA);
  std::vector<double> values;
  for (int64_t i = 0; i < numel(); ++i) {
    if (dtype() == kFloat32) values.push_back(reinterpret_cast<const float*>(bytes.data())[i]);
    if (dtype() == kFloat64) values.push_back(reinterpret_cast<const double*>(bytes.data())[i]);
    if (dtype() == kInt64)
      values.push_back(static_cast<double>(reinterpret_cast<const int64_t*>(bytes.data())[i]));
    if (dtype() == kBool) values.push_back(bytes[static_cast<std::size_t>(i)]);
  }
  return values;
}

Tensor alias(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = x.impl()->storage;
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = x.impl()->offset + offset;
  impl->dtype = x.dtype();
  return Tensor(std::move(impl));
}
Tensor alias(const Tensor& x) { return alias(x, x.shape(), x.strides()); }

Tensor expanded(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  Shape strides = shape;
  const int lead = shape.dim() - x.dim();
  CHECK_ARG(lead >= 0, "expand: shape ", x.shape(), " has more dimensions than ", shape);
  for (int d = 0; d < shape.dim(); ++d) {
    const bool repeat = d < lead || (x.size(d - lead) == 1 && shape[d] != 1);
    CHECK_ARG(repeat || x.size(d - lead) == shape[d], "expand: shape ", x.shape(),
              " does not broadcast to ", shape);
    strides[d] = repeat ? 0 : x.stride(d - lead);
  }
  return alias(x, shape, strides);
}

Tensor packed(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty_like(x);
  LAUNCH_ANY(x, copy, y, x);
  return y;
}

Shape broadcast_shape(const char* op, const Shape& a, const Shape& b) {
  Shape y = a.dim() >= b.dim() ? a : b;
  for (int d = 1; d <= std::min(a.dim(), b.dim()); ++d) {
    CHECK_ARG(a[-d] == b[-d] || a[-d] == 1 || b[-d] == 1, op, ": shapes ", a, " and ", b,
              " do not broadcast: they differ in axis -", d);
    y[-d] = a[-d] == 1 ? b[-d] : a[-d];
  }
  return y;
}

}  // namespace pellucid
