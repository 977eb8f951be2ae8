// Reductions over any dimensions. Each backward is written in ops, so one lambda serves every order
// of derivative.
#include <algorithm>
#include <cmath>

#include "autograd/operands.h"
#include "kernels/amax.h"
#include "kernels/cumsum.h"
#include "kernels/sum.h"

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

static unsigned floating_mask(const char* op, const Tensor& x, const Dims& dims) {
  return dims.mask(op, floating(op, x));
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
  if (floating("sum_to", x).shape() == shape) return x;
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

// ---- Products.

// By halves: the first half of the factors times the second, until one is left. So the gradient is
// made of products alone and right beside zeros, in every order.
Tensor prod(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = floating_mask("prod", x, dims);
  std::vector<int> order;
  for (unsigned last : {0u, 1u})
    for (int d = 0; d < x.dim(); ++d)
      if ((mask >> d & 1) == last) order.push_back(d);
  int64_t M = count(x, mask);
  Tensor y = reshape(permute(x, order), {reduced_shape(x, mask, false).numel(), M});  // (N, M)
  do {
    if (M == 0 || M % 2 == 1) y = pad(y, {{0, 1}}, 1), ++M;
    if (M > 1) y = slice(y, 1, 0, M / 2) * slice(y, 1, M / 2, M), M /= 2;  // (N, M / 2)
  } while (M != 1);
  return reshape(y, reduced_shape(x, mask, keepdim));
}

// ---- The largest and the smallest.

// x, if there is something to choose from: for an error in the name of op.
static const Tensor& nonempty(const char* op, const Tensor& x, const Dims& dims) {
  CHECK_ARG(count(x, floating_mask(op, x, dims)) > 0, op,
            ": there is none among no elements; got shape ", x.shape());
  return x;
}

// backward: the elements that equal y share dy evenly.
Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = dims.mask("amax", nonempty("amax", x, dims));
  Tensor y = empty_like(x, reduced_shape(x, mask, keepdim));
  LAUNCH(x, amax, y, masked_last(x, mask), y.numel(), count(x, mask));
  return record("amax", y, {x}, [x = SavedTensor(x), y = SavedTensor(y), mask](const Tensor& dy) {
    const Shape one = reduced_shape(x(), mask, true);
    const Tensor is_y = equal(x(), reshape(y(), one));
    const Tensor part = where(is_y, full_like(dy, {}, 1), full_like(dy, {}, 0));
    return TensorList{part * (reshape(dy, one) / summed(part, mask, one))};
  });
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return neg(amax(neg(nonempty("amin", x, dims)), dims, keepdim));
}
Tensor max(const Tensor& x) { return amax(nonempty("max", x, {})); }
Tensor min(const Tensor& x) { return amin(nonempty("min", x, {})); }

Tensor argmax(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = dims.mask("argmax", nonempty("argmax", x, dims));
  Tensor y = empty(reduced_shape(x, mask, keepdim), kInt64, x.device());
  LAUNCH(x, argmax, y, masked_last(x, mask), y.numel(), count(x, mask));
  return y;
}
Tensor argmin(const Tensor& x, const Dims& dims, bool keepdim) {
  return argmax(neg(nonempty("argmin", x, dims).detach()), dims, keepdim);
}

// The gradient goes to the one element that is read.
Tensor max(const Tensor& x, int dim, bool keepdim) {
  const Tensor y = gather(x, dim, argmax(nonempty("max", x, dim), dim, true));
  return keepdim ? y : squeeze(y, dim);
}
Tensor min(const Tensor& x, int dim, bool keepdim) {
  return neg(max(neg(nonempty("min", x, dim)), dim, keepdim));
}

// ---- Deviations and lengths.

// x - its mean. A shift does not change it: a constant row is exactly 0 away from its first
// element.
static Tensor deviations(const Tensor& x, unsigned mask) {
  const Shape one = reduced_shape(x, mask, true);
  const double n = static_cast<double>(count(x, mask));
  const Tensor shifted = n > 0 ? x - alias(x, one, x.strides()) : x;
  return shifted - summed(shifted, mask, one) / n;
}

static double divisor(const Tensor& x, unsigned mask, double correction) {
  return std::max(0.0, static_cast<double>(count(x, mask)) - correction);
}

Tensor var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  const unsigned mask = floating_mask("var", x, dims);
  const Tensor d = deviations(x, mask);
  return summed(d * d, mask, reduced_shape(x, mask, keepdim)) / divisor(x, mask, correction);
}

// By norm, whose squares do not overflow, and whose gradient is 0 where it is 0.
Tensor stddev(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  const unsigned mask = floating_mask("stddev", x, dims);
  return norm(deviations(x, mask), dims, keepdim) / std::sqrt(divisor(x, mask, correction));
}

// p = 2: scaled by the largest |x|, no square overflows. backward: dx = dy x / y, and 0 where y is
// 0.
Tensor norm(const Tensor& x, const Dims& dims, bool keepdim, double p) {
  CHECK_ARG(p == 1 || p == 2 || p == HUGE_VAL, "norm: p must be 1, 2 or inf; got ", p);
  const unsigned mask = floating_mask("norm", x, dims);
  const Shape one = reduced_shape(x, mask, true), shape = reduced_shape(x, mask, keepdim);
  if (p == 1) return summed(abs(x), mask, shape);
  if (p == HUGE_VAL) return amax(abs(nonempty("norm", x, dims)), dims, keepdim);
  const Tensor size = abs(x.detach()), unit = full_like(x, {}, 1);
  const Tensor top = count(x, mask) > 0 ? amax(size, dims, true) : unit;
  const Tensor scale = where(logical_and(isfinite(top), greater(top, 0.0)), top, unit);
  const Tensor r = size / scale;
  Tensor y = reshape(scale * sqrt(summed(r * r, mask, one)), shape);
  return record("norm", y, {x}, [x = SavedTensor(x), y = SavedTensor(y), one](const Tensor& dy) {
    const Tensor length = reshape(y(), one), inf = full_like(dy, {}, HUGE_VAL);
    const Tensor divisor = where(equal(length, 0.0), inf, length);
    return TensorList{reshape(dy, one) * (x() / divisor)};
  });
}

// The largest x only keeps exp in range: it needs no gradient, and shifts nothing where it is not
// finite. A row of -inf has no gradient.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = floating_mask("logsumexp", x, dims);
  const Tensor zero = full_like(x, {}, 0), one = full_like(x, {}, 1);
  Tensor top = count(x, mask) > 0 ? amax(x.detach(), dims, true) : zero;
  top = where(isfinite(top), top, zero);
  const Tensor total = summed(exp(x - top), mask, reduced_shape(x, mask, true));
  const Tensor none = equal(total, zero);
  const Tensor y = where(none, log(zero), top + log(where(none, one, total)));
  return reshape(y, reduced_shape(x, mask, keepdim));
}

// ---- Truths: x != 0 is true, and so is NaN.

Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = dims.mask("all", x);
  const Tensor zeros = astype(equal(x, 0.0), kFloat32);
  return equal(summed(zeros, mask, reduced_shape(x, mask, keepdim)), 0.0);
}
Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = dims.mask("any", x);
  const Tensor others = astype(not_equal(x, 0.0), kFloat32);
  return greater(summed(others, mask, reduced_shape(x, mask, keepdim)), 0.0);
}

// ---- Running sums.

// backward: dx_i is the sum of all dy from i on.
Tensor cumsum(const Tensor& x, int dim) {
  const int at = axis("cumsum", dim, x);
  if (at != x.dim() - 1) return transpose(cumsum(transpose(x, at, -1), -1), at, -1);
  const int64_t C = x.size(-1);
  Tensor y = empty_like(x);  // (..., C)
  LAUNCH(x, cumsum, y, x, C > 0 ? x.numel() / C : 0, C);
  return record("cumsum", y, {x},
                [](const Tensor& dy) { return TensorList{flip(cumsum(flip(dy, -1), -1), -1)}; });
}

}  // namespace pellucid
