// What an optimizer does between two backward passes; not differentiable.
#include <cmath>

#include "autograd/ops.h"
#include "kernels/adamw.h"
#include "tensor/launch.h"

namespace pellucid {

void adamw_(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v,
            const AdamWOptions& options) {
  CHECK_ARG(g.defined(), "adamw_: g is undefined: w of shape ", w.shape(), " got no gradient");
  CHECK_ARG(g.shape() == w.shape() && m.shape() == w.shape() && v.shape() == w.shape(),
            "adamw_: g, m and v must have w's shape; got w ", w.shape(), ", g ", g.shape(), ", m ",
            m.shape(), ", v ", v.shape());
  CHECK_ARG(w.is_contiguous() && m.is_contiguous() && v.is_contiguous(),
            "adamw_: w, m and v must be contiguous; got strides w ", w.strides(), ", m ",
            m.strides(), ", v ", v.strides());
  CHECK_ARG(options.step >= 1, "adamw_: step counts from 1; got ", options.step);
  const AdamWOptions& o = options;
  LAUNCH(w, adamw, w, m, v, g, w.numel(), o.lr, o.beta1, o.beta2, o.eps, o.weight_decay,
         o.grad_scale, o.step);
}

// sqrt(sum (scale x)^2) / scale over all elements, summed in double in a fixed order.
static double scaled_norm(const TensorList& grads, double scale) {
  double total = 0;
  for (const Tensor& g : grads) {
    Tensor partials =
        empty({(g.numel() + kSquaresBlock - 1) / kSquaresBlock}, kFloat64, g.device());
    LAUNCH(g, sum_squares, partials, g, g.numel(), scale);
    for (double partial : partials.to_vector()) total += partial;
  }
  return std::sqrt(total) / scale;
}

double grad_norm(const TensorList& grads) {
  for (std::size_t i = 0; i < grads.size(); ++i)
    CHECK_ARG(grads[i].defined(), "grad_norm: gradient ", i, " is undefined");

  // Squares of floats neither overflow in double nor vanish. Those of doubles may: then scale
  // first.
  const double norm = scaled_norm(grads, 1);
  if (std::isinf(norm)) return scaled_norm(grads, 0x1p-600);
  if (norm < 1e-140) return scaled_norm(grads, 0x1p600);
  return norm;
}

}  // namespace pellucid
