// Reductions over any dimensions. Each backward is written in ops, so one lambda serves every order
// of derivative.
#include "autograd/ops.h"
#include "kernels/sum.h"
#include "tensor/launch.h"

namespace pellucid {

int axis(const char* op, int dim, const Tensor& x) {
  CHECK_ARG(dim >= -x.dim() && dim < x.dim(), op, ": dimension ", dim, " is outside [", -x.dim(),
            ", ", x.dim(), ") of shape ", x.shape());
  return dim < 0 ? dim + x.dim() : dim;
}

unsigned Dims::mask(const char* op, const Tensor& x) const {
  if (all) return (1u << x.dim()) - 1;
  unsigned bits = 0;
  for (int dim : list) {
    const unsigned bit = 1u << axis(op, dim, x);
    CHECK_ARG(!(bits & bit), op, ": dimension ", dim, " of shape ", x.shape(), " is named twice");
    bits |= bit;
  }
  return bits;
}

// The same for an op of floating numbers.
static unsigned floating_mask(const char* op, const Tensor& x, const Dims& dims) {
  CHECK_ARG(is_floating(x.dtype()), op, ": wanted float32 or float64; got ", name(x.dtype()));
  return dims.mask(op, x);
}

// x's shape, where each dimension of mask has size 1 or is left out.
static Shape reduced_shape(const Tensor& x, unsigned mask, bool keepdim) {
  Shape shape;
  for (int d = 0; d < x.dim(); ++d)
    if (!(mask >> d & 1) || keepdim) shape.push_back(mask >> d & 1 ? 1 : x.size(d));
  return shape;
}

// How many elements of x a result is made of.
static int64_t count(const Tensor& x, unsigned mask) {
  int64_t n = 1;
  for (int d = 0; d < x.dim(); ++d)
    if (mask >> d & 1) n *= x.size(d);
  return n;
}

// The dimensions that stay first, those of mask last: a layout, not a copy.
static Tensor masked_last(const Tensor& x, unsigned mask) {
  Shape sizes, strides;
  for (unsigned last : {0u, 1u})
    for (int d = 0; d < x.dim(); ++d)
      if ((mask >> d & 1) == last) sizes.push_back(x.size(d)), strides.push_back(x.stride(d));
  return alias(x, sizes, strides);
}

// ---- Sums.

// Never x itself, so that writing to y leaves x alone. shape: of y.
static Tensor summed(const Tensor& x, unsigned mask, const Shape& shape) {
  Tensor y = empty_like(x, shape);
  LAUNCH(x, sum, y, masked_last(x, mask), y.numel(), count(x, mask));
  return record("sum", y, {x},
                [from = x.shape(), one = reduced_shape(x, mask, true)](const Tensor& dy) {
                  return TensorList{expand(reshape(dy, one), from)};
                });
}

Tensor sum(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = floating_mask("sum", x, dims);
  return summed(x, mask, reduced_shape(x, mask, keepdim));
}

Tensor sum_to(const Tensor& x, const Shape& shape) {
  if (x.shape() == shape) return x;
  CHECK_ARG(reduces_to(x.shape(), shape), "sum_to: shape ", x.shape(), " does not reduce to ",
            shape, ": each size, from the last, must be equal or 1");
  const int lead = x.dim() - shape.dim();
  unsigned mask = 0;
  for (int d = 0; d < x.dim(); ++d)
    if (d < lead || shape[d - lead] != x.size(d)) mask |= 1u << d;
  return summed(x, mask, shape);
}

// No elements: 0 / 0 = NaN.
Tensor mean(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = floating_mask("mean", x, dims);
  return summed(x, mask, reduced_shape(x, mask, keepdim)) / static_cast<double>(count(x, mask));
}

Tensor row_max(const Tensor& x) {
  CHECK_ARG(
      x.dim() >= 1 && x.size(-1) > 0,
      "row_max: the last dimension must have elements, the largest of none is undefined; got ",
      x.shape());
  Shape shape = x.shape();
  shape[-1] = 1;
  Tensor y = empty_like(x, shape);  // (..., 1)
  LAUNCH(x, row_max, y, x, y.numel(), x.size(-1));
  return y;
}

}  // namespace pellucid
