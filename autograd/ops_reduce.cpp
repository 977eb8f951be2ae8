// Reductions over any dimensions. Each backward is written in ops, so one lambda serves every order
// of derivative.
#include <algorithm>
#include <cmath>

#include "autograd/ops.h"
#include "kernels/amax.h"
#include "kernels/cumsum.h"
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

static void check_floating(const char* op, const Tensor& x) {
  CHECK_ARG(is_floating(x.dtype()), op, ": wanted float32 or float64; got ", name(x.dtype()));
}
static unsigned floating_mask(const char* op, const Tensor& x, const Dims& dims) {
  check_floating(op, x);
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
  check_floating("sum_to", x);
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

static unsigned nonempty_mask(const char* op, const Tensor& x, const Dims& dims) {
  const unsigned mask = floating_mask(op, x, dims);
  CHECK_ARG(count(x, mask) > 0, op, ": there is none among no elements; got shape ", x.shape());
  return mask;
}

// backward: the elements that equal y share dy evenly. The smallest of x is -(the largest of -x).
static Tensor extreme(const char* op, const Tensor& x, unsigned mask, bool keepdim, bool largest) {
  if (!largest) return neg(extreme(op, neg(x), mask, keepdim, true));
  Tensor y = empty_like(x, reduced_shape(x, mask, keepdim));
  LAUNCH(x, amax, y, masked_last(x, mask), y.numel(), count(x, mask));
  return record(op, y, {x}, [x = SavedTensor(x), y = SavedTensor(y), mask](const Tensor& dy) {
    const Shape one = reduced_shape(x(), mask, true);
    const Tensor is_y = equal(x(), reshape(y(), one));
    const Tensor part = where(is_y, full_like(dy, {}, 1), full_like(dy, {}, 0));
    return TensorList{part * (reshape(dy, one) / summed(part, mask, one))};
  });
}

Tensor amax(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("amax", x, nonempty_mask("amax", x, dims), keepdim, true);
}
Tensor amin(const Tensor& x, const Dims& dims, bool keepdim) {
  return extreme("amin", x, nonempty_mask("amin", x, dims), keepdim, false);
}
Tensor max(const Tensor& x) { return extreme("max", x, nonempty_mask("max", x, {}), false, true); }
Tensor min(const Tensor& x) { return extreme("min", x, nonempty_mask("min", x, {}), false, false); }

static Tensor place(const char* op, const Tensor& x, const Dims& dims, bool keepdim, bool largest) {
  const unsigned mask = nonempty_mask(op, x, dims);
  Tensor y = empty(reduced_shape(x, mask, keepdim), kInt64, x.device());
  LAUNCH(x, argmax, y, masked_last(largest ? x : neg(x.detach()), mask), y.numel(), count(x, mask));
  return y;
}

Tensor argmax(const Tensor& x, const Dims& dims, bool keepdim) {
  return place("argmax", x, dims, keepdim, true);
}
Tensor argmin(const Tensor& x, const Dims& dims, bool keepdim) {
  return place("argmin", x, dims, keepdim, false);
}

// The gradient goes to the one element that is read.
static Tensor first_extreme(const char* op, const Tensor& x, int dim, bool keepdim, bool largest) {
  const Tensor y = gather(x, dim, place(op, x, dim, true, largest));
  return keepdim ? y : squeeze(y, dim);
}

Tensor max(const Tensor& x, int dim, bool keepdim) {
  return first_extreme("max", x, dim, keepdim, true);
}
Tensor min(const Tensor& x, int dim, bool keepdim) {
  return first_extreme("min", x, dim, keepdim, false);
}

// ---- Deviations and lengths.

// A shift does not change it: a constant row is exactly 0 away from its first element.
Tensor var(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  const unsigned mask = floating_mask("var", x, dims);
  const Shape one = reduced_shape(x, mask, true);
  const double n = static_cast<double>(count(x, mask));
  const Tensor shifted = n > 0 ? x - alias(x, one, x.strides()) : x;
  const Tensor d = shifted - summed(shifted, mask, one) / n;
  return summed(d * d, mask, reduced_shape(x, mask, keepdim)) / std::max(0.0, n - correction);
}

// Where the variance is 0, so is the gradient: sqrt gets a dy of 0 there.
Tensor stddev(const Tensor& x, const Dims& dims, bool keepdim, double correction) {
  floating_mask("stddev", x, dims);  // so that an error has this name
  const Tensor v = var(x, dims, keepdim, correction);
  const Tensor zero = full_like(x, {}, 0);
  return where(equal(v, zero), zero, sqrt(v));
}

static Tensor magnitude(const Tensor& x) {
  const Tensor zero = full_like(x, {}, 0);
  return where(equal(x, zero), zero, where(greater(zero, x), neg(x), x));
}

// backward: dx = dy x / y, and 0 where y is 0. Scaled by the largest |x|, no square overflows.
static Tensor euclidean_norm(const Tensor& x, unsigned mask, bool keepdim) {
  const Shape one = reduced_shape(x, mask, true);
  const Tensor zero = full_like(x, {}, 0), inf = full_like(x, {}, HUGE_VAL);
  Tensor y;
  {
    const NoGradGuard no_grad;
    Tensor scale = full_like(x, one, 1);
    if (count(x, mask) > 0) {
      const Tensor top = extreme("norm", magnitude(x), mask, true, true);
      scale = where(equal(top, zero), scale, where(equal(top, inf), scale, top));
    }
    const Tensor r = x / scale;
    y = reshape(scale * sqrt(summed(r * r, mask, one)), reduced_shape(x, mask, keepdim));
  }
  return record(
      "norm", y, {x}, [x = SavedTensor(x), y = SavedTensor(y), one, zero, inf](const Tensor& dy) {
        const Tensor length = reshape(y(), one);
        return TensorList{reshape(dy, one) * (x() / where(equal(length, zero), inf, length))};
      });
}

Tensor norm(const Tensor& x, const Dims& dims, bool keepdim, double p) {
  CHECK_ARG(p == 1 || p == 2 || p == HUGE_VAL, "norm: p must be 1, 2 or inf; got ", p);
  const unsigned mask =
      p == HUGE_VAL ? nonempty_mask("norm", x, dims) : floating_mask("norm", x, dims);
  if (p == 2) return euclidean_norm(x, mask, keepdim);
  if (p == 1) return summed(magnitude(x), mask, reduced_shape(x, mask, keepdim));
  return extreme("norm", magnitude(x), mask, keepdim, true);
}

// The largest x only keeps exp in range: it needs no gradient, and shifts nothing where it is not
// finite. A row of -inf has no gradient.
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim) {
  const unsigned mask = floating_mask("logsumexp", x, dims);
  const Tensor zero = full_like(x, {}, 0), one = full_like(x, {}, 1);
  Tensor top = zero;
  if (count(x, mask) > 0) top = extreme("logsumexp", x.detach(), mask, true, true);
  top = where(equal(top - top, zero), top, zero);
  const Tensor total = summed(exp(x - top), mask, reduced_shape(x, mask, true));
  const Tensor none = equal(total, zero);
  const Tensor y = where(none, log(zero), top + log(where(none, one, total)));
  return reshape(y, reduced_shape(x, mask, keepdim));
}

// ---- Truths: x != 0 is true, and so is NaN.

// The number of zeros among the elements of mask, or of all others.
static Tensor how_many(const char* op, const Tensor& x, const Dims& dims, bool keepdim,
                       bool zeros) {
  const unsigned mask = dims.mask(op, x);
  const Tensor is_zero = equal(x, full_like(x, {}, 0));
  return summed(where(is_zero, scalar(zeros), scalar(!zeros)), mask,
                reduced_shape(x, mask, keepdim));
}

Tensor all(const Tensor& x, const Dims& dims, bool keepdim) {
  return equal(how_many("all", x, dims, keepdim, true), scalar(0));
}
Tensor any(const Tensor& x, const Dims& dims, bool keepdim) {
  return greater(how_many("any", x, dims, keepdim, false), scalar(0));
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
