// Layouts over a Storage, and how their elements are read.
#include "tensor/tensor.h"

#include <limits>

#include "kernels/device.h"
#include "kernels/elementwise.h"
#include "tensor/launch.h"

namespace pellucid {

Storage::Storage(std::size_t bytes_, Device device_)
    : data(allocate_block(device_, bytes_)), bytes(bytes_), device(device_) {}
Storage::~Storage() { release_block(device, data, bytes); }

// Every TensorImpl is made here, or copied from one that was.
static Tensor make_tensor(std::shared_ptr<Storage> storage, const Shape& sizes,
                          const Shape& strides, int64_t offset, DType dtype, int64_t numel) {
  auto impl = std::make_shared<TensorImpl>();
  impl->storage = std::move(storage);
  impl->sizes = sizes;
  impl->strides = strides;
  impl->offset = offset;
  impl->dtype = dtype;
  impl->numel = numel;
  int64_t stride = 1;
  for (int d = sizes.dim() - 1; d >= 0 && numel > 0; --d) {
    const int64_t size = sizes.begin()[d];
    if (size != 1 && strides.begin()[d] != stride) impl->contiguous = false;
    stride *= size;
  }
  return Tensor(std::move(impl));
}

Tensor empty(const Shape& shape, DType dtype, Device device) {
  for (int64_t size : shape) CHECK_ARG(size >= 0, "empty: shape ", shape, " has a negative size");
  CHECK_ARG(device == kCPU || device::has_cuda(),
            "empty: this build has no CUDA; configure with PELLUCID_CUDA=ON");
  const int64_t numel = shape.numel();
  const auto item = static_cast<int64_t>(item_size(dtype));
  CHECK_ARG(numel <= std::numeric_limits<int64_t>::max() / item, "numel overflow: shape ", shape,
            " of ", name(dtype), " has more bytes than int64 counts");
  auto storage = std::make_shared<Storage>(static_cast<std::size_t>(numel * item), device);
  return make_tensor(std::move(storage), shape, row_major(shape), 0, dtype, numel);
}

// Refuses a layout that would leave the storage: no view can read or write out of bounds.
Tensor alias(const Tensor& x, const Shape& sizes, const Shape& strides, int64_t offset) {
  const auto capacity = static_cast<int64_t>(x.storage().bytes / item_size(x.dtype()));
  const int64_t numel = sizes.numel();
  int64_t start = 0;
  bool good = !__builtin_add_overflow(x.impl()->offset, offset, &start) && start >= 0;
  CHECK_ARG(sizes.dim() == strides.dim(), "alias: shape ", sizes, " and strides ", strides,
            " have different lengths");
  int64_t last = start;
  for (int d = 0; d < sizes.dim(); ++d) {
    int64_t reach = 0;
    good = good && sizes[d] >= 0 && strides[d] >= 0 &&
           !__builtin_mul_overflow(std::max<int64_t>(sizes[d] - 1, 0), strides[d], &reach) &&
           !__builtin_add_overflow(last, reach, &last);
  }
  CHECK_ARG(good && (numel == 0 || last < capacity), "alias: shape ", sizes, " with strides ",
            strides, " from element ", start, " leaves a storage of ", capacity, " elements");
  return make_tensor(x.impl()->storage, sizes, strides, start, x.dtype(), numel);
}

Tensor alias(const Tensor& x) {
  x.storage();  // refuses an undefined x
  auto impl = std::make_shared<TensorImpl>(*x.impl());
  impl->autograd.reset();
  return Tensor(std::move(impl));
}

Tensor expanded(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  return alias(x, shape, expanded_strides(x.shape(), x.strides(), shape));
}

Tensor packed(const Tensor& x) {
  if (x.is_contiguous()) return x;
  Tensor y = empty_like(x);
  LAUNCH_ANY(x, copy, y, x);
  return y;
}

Tensor on_cpu(const Tensor& x) {
  const Tensor from = packed(x);
  if (x.device() == kCPU) return from;
  Tensor y = empty(x.shape(), x.dtype());
  device::copy(y.data(), from.data(), y.storage().bytes, true);
  return y;
}

// Taken in order of their strides, each dimension must step over all that the ones before span.
bool overlaps(const Tensor& x) {
  if (x.is_contiguous()) return false;
  std::vector<std::pair<int64_t, int64_t>> dims;  // stride, size
  for (int d = 0; d < x.dim(); ++d)
    if (x.size(d) > 1) dims.emplace_back(x.stride(d), x.size(d));
  std::sort(dims.begin(), dims.end());
  int64_t span = 0;
  for (const auto& [stride, size] : dims) {
    if (stride <= span) return true;
    span += (size - 1) * stride;
  }
  return false;
}

void Tensor::check_data(DType wanted) const {
  CHECK_ARG(dtype() == wanted, "data: wanted ", name(wanted), "; got a ", name(dtype()),
            " tensor of shape ", shape());
  CHECK_ARG(device() == kCPU, "data: this tensor of shape ", shape(), " is on the CUDA device");
  CHECK_ARG(is_contiguous(), "data: a view of shape ", shape(), " with strides ", strides(),
            " is not contiguous; take packed(x)");
}

template <class T>
std::vector<T> Tensor::to_vector() const {
  CHECK_ARG((std::is_same_v<T, double> || kDTypeOf<T> == dtype()), "to_vector: wanted ",
            name(kDTypeOf<T>), "; got a ", name(dtype()), " tensor of shape ", shape());
  const Tensor x = on_cpu(*this);
  std::vector<T> values(static_cast<std::size_t>(numel()));
  visit(dtype(), [&]<class From>() {
    const From* from = x.data<From>();
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(from[i]);
  });
  return values;
}
template std::vector<float> Tensor::to_vector() const;
template std::vector<double> Tensor::to_vector() const;
template std::vector<int64_t> Tensor::to_vector() const;
template std::vector<bool> Tensor::to_vector() const;

double Tensor::item() const {
  CHECK_ARG(numel() == 1, "item: wanted one element; got shape ", shape());
  return to_vector()[0];
}

double Tensor::at(std::initializer_list<int64_t> index) const {
  CHECK_ARG(static_cast<int>(index.size()) == dim(), "at: ", index.size(),
            " indices for a tensor of shape ", shape());
  Shape from_start;
  for (int64_t i : index) {
    const int d = from_start.dim();
    CHECK_ARG(i >= -size(d) && i < size(d), "at: index ", i, " of dimension ", d,
              " is outside shape ", shape());
    from_start.push_back(i < 0 ? i + size(d) : i);
  }
  return alias(*this, {}, {}, offset_of(from_start, strides())).item();
}

}  // namespace pellucid
