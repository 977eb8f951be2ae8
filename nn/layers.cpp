// What the layers are made of.
#include "nn/layers.h"

#include <limits>

namespace pellucid::nn {
namespace {

constexpr double kUninitialised = std::numeric_limits<double>::quiet_NaN();

}  // namespace

Linear::Linear(int64_t in, int64_t out, bool with_bias, DType dtype) {
  CHECK_ARG(in > 0 && out > 0, "Linear: wanted positive sizes; got in ", in, ", out ", out);
  weight = parameter({out, in}, kUninitialised, dtype);
  if (with_bias) bias = parameter({out}, 0, dtype);
}

Embedding::Embedding(int64_t V, int64_t C, DType dtype) {
  CHECK_ARG(V > 0 && C > 0, "Embedding: wanted positive sizes; got V ", V, ", C ", C);
  weight = parameter({V, C}, kUninitialised, dtype);
}

Norm::Norm(Kind norm_kind, int64_t C, bool with_bias, double norm_eps, DType dtype)
    : kind(norm_kind), eps(norm_eps) {
  CHECK_ARG(C > 0, "Norm: wanted a positive size; got ", C);
  weight = parameter({C}, 1, dtype);
  if (with_bias && kind == Kind::kLayerNorm) bias = parameter({C}, 0, dtype);
}

Dropout::Dropout(double drop_p) : p(drop_p) {
  CHECK_ARG(p >= 0 && p <= 1, "Dropout: wanted a probability from 0 to 1; got ", p);
}

MLP::MLP(int64_t C, int64_t hidden, bool bias, double dropout, Activation activation_kind,
         DType dtype)
    : c_fc(C, hidden, bias, dtype),
      c_proj(hidden, C, bias, dtype),
      drop(dropout),
      activation(activation_kind) {
  if (activation == Activation::kSwiGLU) c_gate = Linear(C, hidden, bias, dtype);
}

Tensor MLP::forward(const Tensor& x, Generator& rng) const {
  Tensor inside = named("c_fc", c_fc, x);  // (..., hidden)
  inside = activation == Activation::kSwiGLU ? swiglu(named("c_gate", c_gate, x), inside)
           : activation == Activation::kGelu ? gelu(inside)
                                             : gelu_tanh(inside);
  return named("dropout", drop, named("c_proj", c_proj, inside), rng);  // (..., C)
}

}  // namespace pellucid::nn
