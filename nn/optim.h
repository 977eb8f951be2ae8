// AdamW with decoupled weight decay (arXiv:1711.05101), clipping by the global norm, and the
// learning rate's warm-up and cosine.
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
};
// Two groups: tensors of two dimensions or more (embeddings too) decay; biases, norms' weights and
// gates do not.
std::vector<ParameterGroup> decay_matrices(const NamedTensors& parameters, double weight_decay);

// A loss or gradient that is not finite.
struct NotFinite : std::runtime_error {
  using std::runtime_error::runtime_error;
};

class AdamW {
 public:
  // Of options, beta1, beta2 and eps count: decay is the group's, lr comes with each step. A
  // parameter that requires no gradient is left out, for good.
  explicit AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options = {});

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
  // "NAME.exp_avg", "NAME.exp_avg_sq" for each parameter NAME (the tensors themselves), and "step",
  // () int64.
  StateDict state_dict() const;
  // As Module::load_state_dict: refuses whole what does not fit.
  void load_state_dict(const StateDict& state);

 private:
  struct Slot {
    std::string name;
    Tensor parameter, exp_avg, exp_avg_sq;
    double weight_decay;
  };
  void check_gradients(const char* who) const;

  std::vector<Slot> slots_;
  AdamWOptions options_;
  int64_t steps_ = 0;
  double grad_scale_ = 1;
};

// peak (step + 1) / (warmup + 1) while step < warmup; then a cosine from peak, reached at warmup
// itself, to min_lr at total and after. Steps count from 0.
struct Schedule {
  double peak = 1e-3, min_lr = 1e-4;
  int64_t warmup = 100, total = 1000;
};
double learning_rate(const Schedule& schedule, int64_t step);

}  // namespace pellucid::nn
