// Activations. The fused ones have one kernel each way, and above each its definition in plain ops.
#include <cmath>

#include "autograd/operands.h"
#include "kernels/gelu.h"
#include "kernels/silu.h"

namespace pellucid {

// dx is dy where y > 0, else y itself: 0, or a NaN.
Tensor relu(const Tensor& x) {
  Tensor y = MAP(relu, x);
  return record("relu", y, {x}, [y = SavedTensor(y)](const Tensor& dy) {
    return TensorList{where(greater(y(), 0), dy, y().detach())};
  });
}

Tensor leaky_relu(const Tensor& x, double slope) {
  const Tensor positive = greater(floating("leaky_relu", x), 0);
  return where(positive, x, x * slope);
}

// expm1 sees no x > 0: there it might overflow, and the gradient it does not get be 0 * inf.
Tensor elu(const Tensor& x, double alpha) {
  const Tensor positive = greater(floating("elu", x), 0);
  return where(positive, x, alpha * expm1(where(positive, full_like(x, {}, 0), x)));
}

// dx = dy y (1 - y).
Tensor sigmoid(const Tensor& x) {
  Tensor y = MAP(sigmoid, x);
  return record("sigmoid", y, {x}, [y = SavedTensor(y)](const Tensor& dy) {
    return TensorList{dy * (y() * (1.0 - y()))};
  });
}

Tensor softplus(const Tensor& x) {
  return record("softplus", MAP(softplus, x), {x},
                [x = SavedTensor(x)](const Tensor& dy) { return TensorList{dy * sigmoid(x())}; });
}

// Beyond the limit silu and the gelus are x, below its negative 0, in every dtype. There x is held,
// for what is inside overflows or becomes inf * 0.
static Tensor with_limits(const Tensor& x, double limit, Tensor (*inside)(const Tensor&)) {
  return where(greater(x, limit), x, inside(clamp(x, -limit, limit)));
}

// dx = dy slope(x), by a kernel each way.
#define FUSED(op)                                                       \
  Tensor op(const Tensor& x) {                                          \
    Tensor y = MAP(op##_forward, x, x.numel());                         \
    return record(#op, y, {x}, [x = SavedTensor(x)](const Tensor& dy) { \
      if (grad_enabled()) return vjp(plain::op, dy, x());               \
      return TensorList{MAP(op##_backward, dy, x(), dy.numel())};       \
    });                                                                 \
  }

Tensor plain::silu(const Tensor& x) {
  return with_limits(x, 1000, [](const Tensor& z) { return z * sigmoid(z); });
}

// slope = s + x s (1 - s), s = sigmoid(x).
FUSED(silu)

Tensor plain::swiglu(const Tensor& gate, const Tensor& up) { return pellucid::silu(gate) * up; }

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  // backward: dgate = dy up (s + gate s (1 - s)), dup = dy silu(gate), s = sigmoid(gate).
  return record("swiglu", MAP2(swiglu, gate, up), {gate, up},
                [gate = SavedTensor(gate), up = SavedTensor(up)](const Tensor& dy) {
                  if (grad_enabled()) return vjp(plain::swiglu, dy, gate(), up());
                  Tensor dgate = empty_like(dy), dup = empty_like(dy);
                  LAUNCH(dy, swiglu_backward, dgate, dup, dy, expanded(gate(), dy.shape()),
                         expanded(up(), dy.shape()), dy.numel());
                  return TensorList{dgate, dup};
                });
}

Tensor plain::gelu(const Tensor& x) {
  return with_limits(x, 40,
                     [](const Tensor& z) { return 0.5 * z * (1.0 + erf(z * std::sqrt(0.5))); });
}

// slope = Phi(x) + x phi(x), phi(x) = e^(-x^2/2) / sqrt(2 pi).
FUSED(gelu)

Tensor plain::gelu_tanh(const Tensor& x) {
  return with_limits(x, 40, [](const Tensor& z) {
    constexpr double kRoot = 0.79788456080286536;  // sqrt(2/pi)
    return 0.5 * z * (1.0 + tanh(kRoot * (z + 0.044715 * z * z * z)));
  });
}

// slope = s + x s (1 - s) 2 u', s = (1 + tanh(u)) / 2.
FUSED(gelu_tanh)

}  // namespace pellucid
