// What an optimizer does between two backward passes; not differentiable.
#include <cmath>

#include "autograd/ops.h"
#include "kernels/adamw.h"
#include "kernels/sgd.h"
#include "tensor/launch.h"

namespace pellucid {

// For two contiguous tensors of one shape and dtype.
static bool share_memory(const Tensor& a, const Tensor& b) {
  const auto bytes = static_cast<std::ptrdiff_t>(item_size(a.dtype())) * a.numel();
  const auto from = static_cast<const char*>(a.data()), to = static_cast<const char*>(b.data());
  return &a.storage() == &b.storage() && std::abs(to - from) < bytes;
}

void adamw_(const Tensor& w, const Tensor& g, const Tensor& m, const Tensor& v,
            const AdamWOptions& options) {
  CHECK_ARG(g.defined(), "adamw_: g is undefined: w of shape ", w.shape(), " got no gradient");
  CHECK_ARG(g.shape() == w.shape() && m.shape() == w.shape() && v.shape() == w.shape(),
            "adamw_: g, m and v must have w's shape; got w ", w.shape(), ", g ", g.shape(), ", m ",
            m.shape(), ", v ", v.shape());
  CHECK_ARG(is_floating(w.dtype()) && g.dtype() == w.dtype() && m.dtype() == w.dtype() &&
                v.dtype() == w.dtype(),
            "adamw_: one floating dtype wanted; got w ", name(w.dtype()), ", g ", name(g.dtype()),
            ", m ", name(m.dtype()), ", v ", name(v.dtype()), "; astype() converts");
  CHECK_ARG(w.is_contiguous() && m.is_contiguous() && v.is_contiguous(),
            "adamw_: w, m and v must be contiguous; got strides w ", w.strides(), ", m ",
            m.strides(), ", v ", v.strides());
  CHECK_ARG(!share_memory(w, m) && !share_memory(w, v) && !share_memory(m, v),
            "adamw_: w, m and v of shape ", w.shape(), " share memory; each needs its own");
  const AdamWOptions& o = options;
  CHECK_ARG(o.step >= 1, "adamw_: step counts from 1; got ", o.step);
  CHECK_ARG(o.lr >= 0 && std::isfinite(o.lr), "adamw_: lr must be finite and not negative; got ",
            o.lr);
  CHECK_ARG(o.beta1 >= 0 && o.beta1 < 1 && o.beta2 >= 0 && o.beta2 < 1,
            "adamw_: betas must be in [0, 1); got ", o.beta1, ", ", o.beta2);
  CHECK_ARG(o.eps > 0, "adamw_: eps must be positive; got ", o.eps);
  CHECK_ARG(o.weight_decay >= 0, "adamw_: weight_decay must not be negative; got ", o.weight_decay);
  CHECK_ARG(std::isfinite(o.grad_scale), "adamw_: grad_scale must be finite; got ", o.grad_scale);
  LAUNCH(w, adamw, w, m, v, g, w.numel(), o.lr, o.beta1, o.beta2, o.eps, o.weight_decay,
         o.grad_scale, o.step);
}

void sgd_(const Tensor& w, const Tensor& g, const Tensor& m, const SGDOptions& options) {
  const SGDOptions& o = options;
  CHECK_ARG(g.defined(), "sgd_: g is undefined: w of shape ", w.shape(), " got no gradient");
  CHECK_ARG(g.shape() == w.shape() && (!m.defined() || m.shape() == w.shape()),
            "sgd_: g and m must have w's shape; got w ", w.shape(), ", g ", g.shape(), ", m ",
            m.defined() ? m.shape() : Shape{});
  CHECK_ARG(
      is_floating(w.dtype()) && g.dtype() == w.dtype() && (!m.defined() || m.dtype() == w.dtype()),
      "sgd_: one floating dtype wanted; got w ", name(w.dtype()), ", g ", name(g.dtype()), ", m ",
      m.defined() ? name(m.dtype()) : "undefined", "; astype() converts");
  CHECK_ARG(w.is_contiguous() && (!m.defined() || m.is_contiguous()),
            "sgd_: w and m must be contiguous; got strides w ", w.strides(), ", m ",
            m.defined() ? m.strides() : Shape{});
  CHECK_ARG(!m.defined() || !share_memory(w, m), "sgd_: w and m of shape ", w.shape(),
            " share memory; each needs its own");
  CHECK_ARG(o.lr >= 0 && std::isfinite(o.lr), "sgd_: lr must be finite and not negative; got ",
            o.lr);
  CHECK_ARG(o.momentum >= 0 && o.momentum < 1, "sgd_: momentum must be in [0, 1); got ",
            o.momentum);
  CHECK_ARG(m.defined() || o.momentum == 0, "sgd_: momentum ", o.momentum,
            " needs m, its memory; got an undefined tensor");
  CHECK_ARG(o.weight_decay >= 0, "sgd_: weight_decay must not be negative; got ", o.weight_decay);
  CHECK_ARG(std::isfinite(o.grad_scale), "sgd_: grad_scale must be finite; got ", o.grad_scale);
  LAUNCH(w, sgd, w, maybe(m), g, w.numel(), o.lr, o.momentum, o.nesterov, o.weight_decay,
         o.grad_scale);
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
    CHECK_ARG(grads[i].defined() && is_floating(grads[i].dtype()), "grad_norm: gradient ", i,
              " must be float32 or float64; it is ",
              grads[i].defined() ? name(grads[i].dtype()) : "undefined");

  // Squares of floats neither overflow in double nor vanish. Those of doubles may: then scale
  // first.
  const double norm = scaled_norm(grads, 1);
  if (std::isinf(norm)) return scaled_norm(grads, 0x1p-600);
  if (norm < 1e-140) return scaled_norm(grads, 0x1p600);
  return norm;
}

}  // namespace pellucid
