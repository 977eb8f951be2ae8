// Storage (bytes, shared by views), TensorImpl (a layout over a Storage), Tensor (the handle).
#pragma once
#include <atomic>
#include <concepts>
#include <memory>
#include <string>
#include <vector>

#include "tensor/allocator.h"
#include "tensor/dtype.h"
#include "tensor/shape.h"
#include "tensor/strides.h"

namespace pellucid {

struct Storage {
  Storage(std::size_t bytes, Device device);
  ~Storage();
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  void* data;
  std::size_t bytes;
  Device device;
  std::atomic<int> savers = 0;  // how many saved tensors of a tape keep it
  uint32_t version = 0;         // how often a kernel has written here
  const char* writer = "";      // what wrote last: for error messages
};

struct AutogradMeta;  // defined by the autograd floor; this floor only carries the pointer
class Tensor;
using TensorList = std::vector<Tensor>;

struct TensorImpl {
  std::shared_ptr<Storage> storage;
  Shape sizes, strides;
  int64_t offset = 0;  // in elements
  DType dtype = kFloat32;
  bool contiguous = true;
  int64_t numel = 0;
  std::shared_ptr<AutogradMeta> autograd;
};

// A handle: copies are the same tensor.
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(std::shared_ptr<TensorImpl> impl) : impl_(std::move(impl)) {}

  bool defined() const { return impl_ != nullptr; }
  const Shape& shape() const { return self().sizes; }
  const Shape& strides() const { return self().strides; }
  int64_t size(int d) const { return self().sizes[d]; }
  int64_t stride(int d) const { return self().strides[d]; }
  int dim() const { return self().sizes.dim(); }
  int64_t numel() const { return self().numel; }
  DType dtype() const { return self().dtype; }
  Device device() const { return self().storage->device; }
  Storage& storage() const { return *self().storage; }
  const std::shared_ptr<TensorImpl>& impl() const { return impl_; }
  // Row-major without gaps; the strides of dimensions of size 1 do not matter.
  bool is_contiguous() const { return self().contiguous; }

  void* data() const {
    return static_cast<char*>(self().storage->data) +
           static_cast<std::size_t>(impl_->offset) * item_size(impl_->dtype);
  }
  // The same for the eyes of a test or a lesson: refuses another dtype than T, another device than
  // the CPU, and a layout that is not contiguous. Writing through it raises no version.
  template <class T>
  T* data() const {
    check_data(kDTypeOf<T>);
    return static_cast<T*>(data());
  }
  // A row-major copy. Without an argument any dtype, as double; else T must be that of dtype().
  template <class T = double>
  std::vector<T> to_vector() const;
  double item() const;                                    // of a tensor with one element
  double at(std::initializer_list<int64_t> index) const;  // negative indices count from the end

  // Declared here so that loss.backward() reads well; defined by the autograd floor.
  bool requires_grad() const;
  const Tensor& set_requires_grad(bool on) const;
  Tensor& grad() const;
  void backward(bool retain_graph = false) const;
  Tensor detach() const;

 private:
  const TensorImpl& self() const {
    CHECK_ARG(impl_,
              "this tensor is undefined: a handle that was given no value, or a gradient "
              "before backward");
    return *impl_;
  }
  void check_data(DType wanted) const;

  std::shared_ptr<TensorImpl> impl_;
};

// Creation. Each is contiguous.
Tensor empty(const Shape& shape, DType dtype = kFloat32, Device device = kCPU);  // uninitialised
Tensor full(const Shape& shape, double value, DType dtype = kFloat32, Device device = kCPU);
Tensor zeros(const Shape& shape, DType dtype = kFloat32, Device device = kCPU);
Tensor ones(const Shape& shape, DType dtype = kFloat32, Device device = kCPU);
Tensor scalar(double value, DType dtype = kFloat32);                            // ()
Tensor arange(int64_t end, DType dtype = kInt64);                               // 0 .. end - 1
Tensor arange(int64_t start, int64_t end, int64_t step, DType dtype = kInt64);  // below end
Tensor linspace(double first, double last, int64_t n, DType dtype = kFloat32);  // both included
Tensor eye(int64_t n, DType dtype = kFloat32);                                  // (n, n)
Tensor from_vector(const std::vector<double>& values, const Shape& shape, DType dtype = kFloat32);
// A template, so that braces make doubles: these do not round above 2^53.
template <std::same_as<int64_t> T>
Tensor from_vector(const std::vector<T>& values, const Shape& shape, DType dtype = kInt64);

// Nested braces: tensor({{1, 2, 3}, {4, 5, 6}}) has shape (2, 3).
struct Literal {
  Literal(double value) : values{value} {}
  Literal(std::initializer_list<Literal> rows);
  std::vector<double> values;
  Shape shape;
};
Tensor tensor(const Literal& literal, DType dtype = kFloat32);

// With the dtype and device of x.
Tensor empty_like(const Tensor& x, const Shape& shape);
Tensor full_like(const Tensor& x, const Shape& shape, double value);
// (), for op; refuses what an int64 or bool tensor would store changed.
Tensor number_like(const char* op, const Tensor& x, double value);
inline Tensor empty_like(const Tensor& x) { return empty_like(x, x.shape()); }
inline Tensor zeros_like(const Tensor& x) { return full_like(x, x.shape(), 0); }
inline Tensor ones_like(const Tensor& x) { return full_like(x, x.shape(), 1); }

// A contiguous copy without history. Floating to whole drops the fraction, as a C++ cast does, and
// refuses what int64 cannot hold; bool is x != 0.
Tensor astype(const Tensor& x, DType dtype);

// Bare layouts without history: what kernels and differentiable views are made from.
Tensor alias(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset = 0);
Tensor alias(const Tensor& x);
Tensor expanded(const Tensor& x, const Shape& shape);  // repeats by stride 0
Tensor packed(const Tensor& x);                        // x if contiguous, else a contiguous copy
Tensor on_cpu(const Tensor& x);                        // packed(x), copied to the CPU if need be
bool overlaps(const Tensor& x);                        // may two of its indices be one element?

// As NumPy prints: tensor([[1., 2.], [3., 4.]], shape (2, 2), float32), over 1000 elements only the
// edges (print.cpp has the rules).
std::string to_string(const Tensor& x);
std::ostream& operator<<(std::ostream& out, const Tensor& x);

}  // namespace pellucid
