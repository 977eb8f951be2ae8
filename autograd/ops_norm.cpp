// Normalisation of rows: one kernel each way, and above each op its definition in plain ops.
#include <cmath>

#include "autograd/ops.h"
#include "kernels/layer_norm.h"
#include "kernels/rms_norm.h"
#include "kernels/rows.h"
#include "tensor/launch.h"

namespace pellucid {

namespace {

void check_norm(const char* op, const Tensor& x, const Tensor& weight, const Tensor& bias,
                double eps) {
  CHECK_ARG(x.dim() >= 1 && x.size(-1) > 0, op,
            ": x must have a last dimension of at least 1; got x ", x.shape());
  const Shape wanted{x.size(-1)};
  CHECK_ARG(weight.shape() == wanted, op,
            ": weight must have shape (C), C the last dimension of x; got x ", x.shape(),
            ", weight ", weight.shape());
  CHECK_ARG(!bias.defined() || bias.shape() == wanted, op,
            ": bias must have shape (C), C the last dimension of x; got x ", x.shape(), ", bias ",
            bias.defined() ? bias.shape() : wanted);
  CHECK_ARG(eps >= 0 && std::isfinite(eps), op, ": eps must be finite and not negative; got ", eps);
}

}  // namespace

Tensor plain::layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  Tensor d = x - mean(x, -1, true);                            // (..., C)
  Tensor y = d * rsqrt(mean(d * d, -1, true) + eps) * weight;  // (..., C)
  return bias.defined() ? y + bias : y;
}

Tensor layer_norm(const Tensor& x, const Tensor& weight, const Tensor& bias, double eps) {
  check_norm("layer_norm", x, weight, bias, eps);
  const int64_t C = x.size(-1), N = x.numel() / C;
  Tensor y = empty_like(x);                                        // (..., C)
  Tensor mean = empty_like(x, {N, 2}), rstd = empty_like(x, {N});  // (N, 2), (N)
  LAUNCH(x, layer_norm_forward, y, mean, rstd, x, weight, maybe(bias), N, C, eps);

  // backward: dx = rstd (g - mean(g) - h mean(g h)), g = dy w, h = (x - mean) rstd;
  // dw = sum_n dy h, db = sum_n dy.
  return record(
      "layer_norm", y, {x, weight, bias},
      [x = SavedTensor(x), w = SavedTensor(weight), b = SavedTensor(bias), mean, rstd, N, C,
       eps](const Tensor& dy) {
        if (grad_enabled()) return vjp(plain::layer_norm, dy, x(), w(), b(), eps);
        const bool want_w = needs_input_grad(1), want_b = needs_input_grad(2);
        Tensor dx = needs_input_grad(0) ? empty_like(dy) : Tensor();  // (..., C)
        Tensor dw = want_w ? empty_like(dy, {C}) : Tensor();          // (C)
        Tensor db = want_b ? empty_like(dy, {C}) : Tensor();          // (C)
        Tensor partials = want_w || want_b ? empty_like(dy, {row_blocks(N), 2, C}) : Tensor();
        LAUNCH(dy, layer_norm_backward, maybe(dx), maybe(dw), maybe(db), maybe(partials), dy, x(),
               w(), mean, rstd, N, C);
        return TensorList{dx, dw, db};
      });
}

Tensor plain::rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  return x * rsqrt(mean(x * x, -1, true) + eps) * weight;  // (..., C)
}

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps) {
  check_norm("rms_norm", x, weight, Tensor(), eps);
  const int64_t C = x.size(-1), N = x.numel() / C;
  Tensor y = empty_like(x), rstd = empty_like(x, {N});  // (..., C), (N)
  LAUNCH(x, rms_norm_forward, y, rstd, x, weight, N, C, eps);

  // backward: dx = rstd (g - h mean(g h)), dw = sum_n dy h, with h = x rstd, g = dy w.
  return record("rms_norm", y, {x, weight},
                [x = SavedTensor(x), w = SavedTensor(weight), rstd, N, C, eps](const Tensor& dy) {
                  if (grad_enabled()) return vjp(plain::rms_norm, dy, x(), w(), eps);
                  const bool want_w = needs_input_grad(1);
                  Tensor dx = needs_input_grad(0) ? empty_like(dy) : Tensor();  // (..., C)
                  Tensor dw = want_w ? empty_like(dy, {C}) : Tensor();          // (C)
                  Tensor partials = want_w ? empty_like(dy, {row_blocks(N), C}) : Tensor();
                  LAUNCH(dy, rms_norm_backward, maybe(dx), maybe(dw), maybe(partials), dy, x(), w(),
                         rstd, N, C);
                  return TensorList{dx, dw};
                });
}

}  // namespace pellucid
