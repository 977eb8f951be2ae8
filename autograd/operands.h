// What the elementwise ops share: checks of their operands, and MAP, the kernel of that name
// applied to new memory, element by element.
#pragma once
#include "autograd/ops.h"
#include "kernels/elementwise.h"
#include "tensor/launch.h"

// kernel(x, more arguments) and kernel(a, b), which broadcast; the result has x's or a's dtype, or
// is made TO one.
#define MAP(kernel, x, ...) MAP_TO(x.dtype(), kernel, x __VA_OPT__(, ) __VA_ARGS__)
#define MAP_TO(dtype, kernel, x, ...)                         \
  [&] {                                                       \
    Tensor result_ = empty(x.shape(), dtype, x.device());     \
    LAUNCH(x, kernel, result_, x __VA_OPT__(, ) __VA_ARGS__); \
    return result_;                                           \
  }()
#define MAP2(kernel, a, b) MAP2_TO(LAUNCH, a.dtype(), kernel, a, b)
#define MAP2_TO(launch, dtype, kernel, a, b)                              \
  [&] {                                                                   \
    check_same_dtype(#kernel, a, b);                                      \
    const Shape shape_ = broadcast_shape(#kernel, a.shape(), b.shape());  \
    Tensor result_ = empty(shape_, dtype, a.device());                    \
    launch(a, kernel, result_, expanded(a, shape_), expanded(b, shape_)); \
    return result_;                                                       \
  }()

namespace pellucid {

inline void check_same_dtype(const char* op, const Tensor& a, const Tensor& b) {
  CHECK_ARG(a.dtype() == b.dtype(), op, ": wanted two tensors of one dtype; got ", name(a.dtype()),
            " of shape ", a.shape(), " and ", name(b.dtype()), " of shape ", b.shape(),
            "; use astype()");
}

// x, if floating: for an op that is made of others, whose messages would name those.
inline const Tensor& floating(const char* op, const Tensor& x) {
  check_floating(op, x);
  return x;
}

// Keeps x only if the gradient that needs it is wanted: that of `other`.
inline SavedTensor saved_for(const Tensor& other, const Tensor& x) {
  return SavedTensor(other.requires_grad() ? x : Tensor());
}

}  // namespace pellucid
