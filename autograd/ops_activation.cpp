// Activations: one kernel each way, and above each op its definition in plain ops.
#include <cmath>

#include "autograd/ops.h"
#include "kernels/gelu.h"
#include "tensor/launch.h"

namespace pellucid {

// Beyond 40 both gelus are x, below -40 0, in every dtype. There x is held, for what is inside
// overflows or becomes inf * 0.
static Tensor with_limits(const Tensor& x, Tensor (*inside)(const Tensor&)) {
  const Tensor high = full_like(x, {}, 40), low = full_like(x, {}, -40);
  const Tensor above = greater(x, high);
  const Tensor z = where(above, high, where(greater(low, x), low, x));
  return where(above, x, inside(z));
}

Tensor plain::gelu(const Tensor& x) {
  return with_limits(x, [](const Tensor& z) { return 0.5 * z * (1.0 + erf(z * std::sqrt(0.5))); });
}

Tensor gelu(const Tensor& x) {
  Tensor y = empty_like(x);
  LAUNCH(x, gelu_forward, y, x, x.numel());

  // backward: dx = dy (Phi(x) + x phi(x)), phi(x) = e^(-x^2/2) / sqrt(2 pi).
  return record("gelu", y, {x}, [x = SavedTensor(x)](const Tensor& dy) {
    if (grad_enabled()) return vjp(plain::gelu, dy, x());
    Tensor dx = empty_like(dy);
    LAUNCH(dy, gelu_backward, dx, dy, x(), dy.numel());
    return TensorList{dx};
  });
}

Tensor plain::gelu_tanh(const Tensor& x) {
  return with_limits(x, [](const Tensor& z) {
    constexpr double kRoot = 0.79788456080286536;  // sqrt(2/pi)
    return 0.5 * z * (1.0 + tanh(kRoot * (z + 0.044715 * z * z * z)));
  });
}

Tensor gelu_tanh(const Tensor& x) {
  Tensor y = empty_like(x);
  LAUNCH(x, gelu_tanh_forward, y, x, x.numel());

  // backward: dx = dy (s + x s (1 - s) 2 u'), s = (1 + tanh(u)) / 2.
  return record("gelu_tanh", y, {x}, [x = SavedTensor(x)](const Tensor& dy) {
    if (grad_enabled()) return vjp(plain::gelu_tanh, dy, x());
    Tensor dx = empty_like(dy);
    LAUNCH(dy, gelu_tanh_backward, dx, dy, x(), dy.numel());
    return TensorList{dx};
  });
}

}  // namespace pellucid
