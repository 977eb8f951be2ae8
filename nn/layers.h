// The layers without attention: Linear, Embedding, LayerNorm, RMSNorm, Dropout, MLP.
//
// A matrix is NaN until it is initialised (init_normal, or a loaded state), so that a forgotten
// initialisation shows in the first loss instead of training badly.
#pragma once
#include "nn/module.h"

namespace pellucid::nn {

// y = x weight^T + bias: x (..., in) -> (..., out)
struct Linear : Module {
  Linear() = default;
  Linear(int64_t in, int64_t out, bool with_bias = true, DType dtype = kFloat32);
  void visit(Visitor& v) override { v("weight", weight), v("bias", bias); }
  Tensor forward(const Tensor& x) const { return linear(x, weight, bias); }

  Tensor weight;  // (out, in)
  Tensor bias;    // (out) or undefined
};

// y = weight[ids]: ids (...) int64 -> (..., C)
struct Embedding : Module {
  Embedding() = default;
  Embedding(int64_t V, int64_t C, DType dtype = kFloat32);
  void visit(Visitor& v) override { v("weight", weight); }
  Tensor forward(const Tensor& ids) const { return embedding(weight, ids); }

  Tensor weight;  // (V, C)
};

// The norms share their members, so that a model can hold either as a Norm.
struct Norm : Module {
  enum class Kind { kLayerNorm, kRMSNorm };
  Norm() = default;
  Norm(Kind norm_kind, int64_t C, bool with_bias, double norm_eps, DType dtype);
  void visit(Visitor& v) override { v("weight", weight), v("bias", bias); }
  Tensor forward(const Tensor& x) const {
    return kind == Kind::kRMSNorm ? rms_norm(x, weight, eps) : layer_norm(x, weight, bias, eps);
  }

  Kind kind = Kind::kLayerNorm;
  double eps = 1e-5;
  Tensor weight;  // (C)
  Tensor bias;    // (C) or undefined; RMSNorm has none
};
struct LayerNorm : Norm {
  explicit LayerNorm(int64_t C, bool with_bias = true, double norm_eps = 1e-5,
                     DType dtype = kFloat32)
      : Norm(Kind::kLayerNorm, C, with_bias, norm_eps, dtype) {}
};
struct RMSNorm : Norm {
  explicit RMSNorm(int64_t C, double norm_eps = 1e-5, DType dtype = kFloat32)
      : Norm(Kind::kRMSNorm, C, false, norm_eps, dtype) {}
};

// Each element is 0 with probability p, else x / (1 - p); the identity after eval(). All dropout
// layers of a model draw from the one generator that its forward hands down: its three numbers are
// all that resuming needs.
struct Dropout : Module {
  explicit Dropout(double drop_p = 0);
  void visit(Visitor&) override {}
  Tensor forward(const Tensor& x, Generator& rng) const {
    return training() && p > 0 ? dropout(x, p, rng) : x;
  }

  double p;
};

// y = dropout(c_proj(inside)): x (..., C), inside (..., hidden). With gelu, inside is
// gelu(c_fc(x)); with SwiGLU it is silu(c_gate(x)) c_fc(x) (Shazeer 2020): in Llama's files c_gate,
// c_fc and c_proj are w1, w3 and w2, or gate_proj, up_proj and down_proj.
enum class Activation { kGelu, kGeluTanh, kSwiGLU };

struct MLP : Module {
  MLP(int64_t C, int64_t hidden, bool bias = true, double dropout = 0,
      Activation activation_kind = Activation::kGelu, DType dtype = kFloat32);
  void visit(Visitor& v) override {
    v("c_gate", c_gate), v("c_fc", c_fc), v("c_proj", c_proj), v("dropout", drop);
  }
  Tensor forward(const Tensor& x, Generator& rng) const;

  Linear c_gate, c_fc, c_proj;  // c_gate is SwiGLU's only
  Dropout drop;
  Activation activation;
};

}  // namespace pellucid::nn
