// Optimizers SGD, Adam, AdamW and Muon, clipping by the global norm, and the learning rate's
// schedule.
//
//   AdamW optimizer(decay_matrices(model.named_parameters(), 0.1), {.beta2 = 0.99});
//   for (int64_t step = 0; step < schedule.total; ++step) {
//     model.loss(ids, targets).backward();
//     double norm = optimizer.clip_grad_norm(1.0);
//     optimizer.step(learning_rate(schedule, step));
//     optimizer.zero_grad();
//   }
//
// Gradient accumulation over k batches of one size: k times backward(), then scale_grads(1.0 / k)
// before clip_grad_norm().
#pragma once
#include <stdexcept>

#include "nn/module.h"

namespace pellucid::nn {

struct ParameterGroup {
  NamedTensors parameters;
  double weight_decay = 0;
  double lr_scale = 1;         // the group's learning rate as a share of step()'s
  bool orthogonalize = false;  // Muon: matrices that map activations to activations
};
// Two groups: tensors of two dimensions or more (embeddings too) decay; biases, norms' weights and
// gates do not.
std::vector<ParameterGroup> decay_matrices(const NamedTensors& parameters, double weight_decay);
// Three: a GPT's matrices inside its blocks, orthogonalised, at lr_scale; and the other two.
std::vector<ParameterGroup> muon_groups(const NamedTensors& parameters, double weight_decay,
                                        double lr_scale);

// A loss or gradient that is not finite.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What all optimizers share. A parameter that requires no gradient is left out, for good.
class Optimizer {
 public:
  virtual ~Optimizer() = default;

  // Every later use of the gradients in this step is multiplied by s; no pass over memory.
  void scale_grads(double s) { grad_scale_ *= s; }
  // Returns the norm of all gradients together (after scale_grads). Where it is above max_norm, the
  // step will scale them down to it. A norm that is not finite is an error that names the first bad
  // parameter, and leaves everything as it was.
  double clip_grad_norm(double max_norm);
  // One update. A parameter without a gradient is an error that names it, before anything changes.
  void step(double lr);
  void zero_grad();

  int64_t steps() const { return steps_; }
  // "NAME.exp_avg" and the like for each parameter NAME (the tensors themselves), and "step",
  // () int64.
  StateDict state_dict() const;
  // As Module::load_state_dict: refuses whole what does not fit.
  void load_state_dict(const StateDict& state);

 protected:
  struct Slot {
    std::string name;
    Tensor parameter;
    double weight_decay, lr_scale;
    bool orthogonalize;
    TensorList state;  // in the order of the names that add_state was given
    std::vector<std::string> state_names;
  };
  Optimizer(const char* name, const std::vector<ParameterGroup>& groups);
  Optimizer(const Optimizer&) = default;
  Optimizer& operator=(const Optimizer&) = default;
  static void add_state(Slot& slot, const std::vector<std::string>& names);  // zeros

  // Changes the slot's parameter by its gradient times grad_scale.
  virtual void update(const Slot& slot, double lr, double grad_scale) = 0;

  std::vector<Slot> slots_;
  int64_t steps_ = 0;  // in update: this one included

 private:
  void check_gradients(const std::string& who) const;

  std::string name_;
  double grad_scale_ = 1;
};

// Of options, momentum and nesterov count: decay is the group's, lr comes with each step. Decay is
// added to the gradient, as in PyTorch.
class SGD : public Optimizer {
 public:
  explicit SGD(const std::vector<ParameterGroup>& groups, const SGDOptions& options = {});

 private:
  void update(const Slot& slot, double lr, double grad_scale) override;
  SGDOptions options_;
};

// Decoupled weight decay (arXiv:1711.05101). Of options, beta1, beta2 and eps count.
class AdamW : public Optimizer {
 public:
  explicit AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options = {});

 private:
  void update(const Slot& slot, double lr, double grad_scale) override;
  AdamWOptions options_;
};

// Decay is added to the gradient, as in PyTorch, and so divided by the gradient's size too
// (arXiv:1412.6980).
class Adam : public Optimizer {
 public:
  explicit Adam(const std::vector<ParameterGroup>& groups, const AdamWOptions& options = {});

 private:
  void update(const Slot& slot, double lr, double grad_scale) override;
  AdamWOptions options_;
};

// Momentum whose matrix is orthogonalised, so that every direction moves alike:
//   m <- momentum m + g;  w <- w (1 - lr decay) - lr sqrt(max(1, rows / columns)) U,
//   U = orthogonalize(g + momentum m), w (rows, columns) = (out, in)
// for the groups that say so, and AdamW for all others. Jordan et al. 2024, "Muon: An optimizer for
// hidden layers in neural networks".
class Muon : public Optimizer {
 public:
  explicit Muon(const std::vector<ParameterGroup>& groups, double momentum = 0.95,
                const AdamWOptions& options = {});

 private:
  void update(const Slot& slot, double lr, double grad_scale) override;
  double momentum_;
  AdamWOptions options_;
};

// Nearly U V^T of the singular value decomposition x = U S V^T: x (rows, columns) -> the same
// shape. Each of five Newton-Schulz steps x <- a x + (b A + c A^2) x, A = x x^T, takes a singular
// value s to a s + b s^3 + c s^5. The coefficients 3.4445, -4.7750, 2.0315 lift small ones fastest
// and leave all but the very smallest between 0.68 and 1.14; no gradient.
Tensor orthogonalize(const Tensor& x);

// peak (step + 1) / (warmup + 1) while step < warmup, and peak itself at warmup. Then
//   kCosine:   a cosine down to min_lr at total
//   kConstant: peak for ever
//   kWSD:      warm-up, stable, decay: peak, then a line down to min_lr over the last share `decay`
//              of total
// and min_lr after total, but for kConstant. Steps count from 0.
struct Schedule {
  enum class Kind { kCosine, kConstant, kWSD };
  double peak = 1e-3, min_lr = 1e-4;
  int64_t warmup = 100, total = 1000;
  Kind kind = Kind::kCosine;
  double decay = 0.2;
};
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace pellucid::nn
