// Storage (bytes, shared by views), TensorImpl (a layout over a Storage), Tensor (the handle).
#pragma once
#include <memory>
#include <vector>

#include "tensor/shape.h"

namespace pellucid {

enum class DType { kFloat32, kFloat64, kInt64, kBool };
enum class Device { kCPU, kCUDA };
using enum DType;
using enum Device;

template <class T>
constexpr DType dtype_of() {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double> ||
                    std::is_same_v<T, int64_t> || std::is_same_v<T, bool>,
                "a tensor's elements are float, double, int64_t or bool");
  return std::is_same_v<T, float>    ? kFloat32
         : std::is_same_v<T, double> ? kFloat64
         : std::is_same_v<T, bool>   ? kBool
                                     : kInt64;
}
template <class T>
constexpr DType kDTypeOf = dtype_of<T>();
const char* name(DType dtype);
inline std::size_t item_size(DType dtype) {
  return dtype == kBool ? 1 : dtype == kFloat32 ? 4 : 8;
}

struct Storage {
  Storage(std::size_t bytes, Device device);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  std::size_t bytes;
  Device device;
  uint32_t version = 0;     // how often a kernel has written here
  const char* writer = "";  // what wrote last: for error messages
  static inline int64_t alive_bytes = 0;
};

struct AutogradMeta;  // defined by the autograd floor; this floor only carries the pointer
class Tensor;
using TensorList = std::vector<Tensor>;

struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Shape sizes, strides;
  int64_t offset = 0;  // in elements
  DType dtype = kFloat32;
  std::shared_ptr<AutogradMeta> autograd;
};

// A handle: copies are the same tensor.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const { return impl_->sizes; }
  const Shape& strides() const { return impl_->strides; }
  int64_t size(int d) const { return impl_->sizes[d]; }
  int64_t stride(int d) const { return impl_->strides[d]; }
  int dim() const { return impl_->sizes.dim(); }
  int64_t numel() const { return impl_->sizes.numel(); }
  DType dtype() const { return impl_->dtype; }
  Device device() const { return impl_->storage->device; }
  Storage& storage() const { return *impl_->storage; }
  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }
  bool is_contiguous() const;
  void* data() const {
    return static_cast<char*>(impl_->storage->data) +
           static_cast<std::size_t>(impl_->offset) * item_size(impl_->dtype);
  }
  std::vector<double> to_vector() const;  // row-major copy, for tests and printing
  double item() const { return to_vector().at(0); }

  // Declared here so that loss.backward() reads well; defined by the autograd floor.
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool on) const;
  Tensor& grad() const;
  void backward(bool retain_graph = false) const;
  Tensor detach() const;

 private:
  std::shared_ptr<TensorImpl> impl_;
};

Tensor empty(const Shape& shape, DType dtype = kFloat32, Device device = kCPU);
Tensor full(const Shape& shape, double value, DType dtype = kFloat32, Device device = kCPU);
Tensor from_vector(const std::vector<double>& values, const Shape& shape, DType dtype = kFloat32);
// Contiguous, with the dtype and device of x.
Tensor empty_like(const Tensor& x, const Shape& shape);
Tensor full_like(const Tensor& x, const Shape& shape, double value);
inline Tensor empty_like(const Tensor& x) { return empty_like(x, x.shape()); }

// Bare layouts without history: what kernels and differentiable views are made from.
Tensor alias(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset = 0);
Tensor alias(const Tensor& x);
Tensor expanded(const Tensor& x, const Shape& shape);  // repeats by stride 0
Tensor packed(const Tensor& x);                        // x if contiguous, else a contiguous copy
Shape row_major(const Shape& sizes);
Shape broadcast_shape(const char* op, const Shape& a, const Shape& b);

}  // namespace pellucid
