// Softmax and its logarithms: the kernels work along the last dimension, others are transposed
// there.
#include "autograd/ops.h"
#include "kernels/softmax.h"
#include "tensor/launch.h"

namespace pellucid {

// softmax(x) = softmax(x - a) for any a, so the maximum needs no gradient.
Tensor plain::softmax(const Tensor& x, int dim) {
  if (x.numel() == 0) return x * 1;                 // there may be no maximum
  Tensor e = exp(x - amax(x.detach(), dim, true));  // x's shape
  return e / sum(e, dim, true);
}

Tensor softmax(const Tensor& x, int dim) {
  const int at = axis("softmax", dim, x);
  if (at != x.dim() - 1) return transpose(softmax(transpose(x, at, -1), -1), at, -1);
  const int64_t C = x.size(-1), N = C > 0 ? x.numel() / C : 0;
  Tensor y = empty_like(x);  // (..., C)
  LAUNCH(x, softmax_forward, y, x, N, C);

  // backward: dx = y (dy - sum_c dy y). It saves y alone, so create_graph takes the formula, not
  // vjp, which would need x.
  return record("softmax", y, {x}, [y = SavedTensor(y), N, C](const Tensor& dy) {
    if (grad_enabled()) return TensorList{y() * (dy - sum(dy * y(), -1, true))};
    Tensor dx = empty_like(dy);  // (..., C)
    LAUNCH(dy, softmax_backward, dx, dy, y(), N, C);
    return TensorList{dx};
  });
}

Tensor plain::log_softmax(const Tensor& x, int dim) {
  if (x.numel() == 0) return x * 1;
  Tensor d = x - amax(x.detach(), dim, true);  // x's shape
  return d - log(sum(exp(d), dim, true));
}

Tensor log_softmax(const Tensor& x, int dim) {
  const int at = axis("log_softmax", dim, x);
  if (at != x.dim() - 1) return transpose(log_softmax(transpose(x, at, -1), -1), at, -1);
  const int64_t C = x.size(-1), N = C > 0 ? x.numel() / C : 0;
  Tensor y = empty_like(x);  // (..., C)
  LAUNCH(x, log_softmax_forward, y, x, N, C);

  // backward: dx = dy - e^y sum_c dy; under create_graph over y, as for softmax.
  return record("log_softmax", y, {x}, [y = SavedTensor(y), N, C](const Tensor& dy) {
    if (grad_enabled()) return TensorList{dy - exp(y()) * sum(dy, -1, true)};
    Tensor dx = empty_like(dy);  // (..., C)
    LAUNCH(dy, log_softmax_backward, dx, dy, y(), N, C);
    return TensorList{dx};
  });
}

}  // namespace pellucid
