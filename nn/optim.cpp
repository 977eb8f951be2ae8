// AdamW's state and the order of its checks; the arithmetic is in the op adamw_.
#include "nn/optim.h"

#include <cmath>
#include <numbers>
#include <set>

namespace pellucid::nn {

std::vector<ParameterGroup> decay_matrices(const NamedTensors& parameters, double weight_decay) {
  std::vector<ParameterGroup> groups{{{}, weight_decay}, {{}, 0}};
  for (const auto& parameter : parameters)
    groups[parameter.second.dim() >= 2 ? 0 : 1].parameters.push_back(parameter);
  return groups;
}

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : options_(options) {
  CHECK_ARG(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
            "AdamW: betas must be in [0, 1); got ", options.beta1, ", ", options.beta2);
  CHECK_ARG(options.eps > 0, "AdamW: eps must be positive; got ", options.eps);
  std::set<std::string> names;
  for (const ParameterGroup& group : groups) {
    CHECK_ARG(group.weight_decay >= 0, "AdamW: weight_decay must not be negative; got ",
              group.weight_decay);
    for (const auto& [name, x] : group.parameters) {
      CHECK_ARG(names.insert(name).second, "AdamW: two parameters are named ", name);
      if (!x.requires_grad()) continue;
      slots_.push_back(
          {name, x, full_like(x, x.shape(), 0), full_like(x, x.shape(), 0), group.weight_decay});
    }
  }
}

void AdamW::check_gradients(const char* who) const {
  std::string missing;
  for (const Slot& slot : slots_)
    if (!slot.parameter.grad().defined()) missing += (missing.empty() ? "" : ", ") + slot.name;
  CHECK_ARG(missing.empty(), who, ": no gradient has come to ", missing,
            "; call backward() first, and see that the loss depends on it");
}

double AdamW::clip_grad_norm(double max_norm) {
  CHECK_ARG(max_norm > 0 && std::isfinite(max_norm),
            "clip_grad_norm: max_norm must be positive and finite; got ", max_norm);
  check_gradients("clip_grad_norm");
  TensorList grads;
  for (const Slot& slot : slots_) grads.push_back(slot.parameter.grad());
  const double norm = grad_scale_ * grad_norm(grads);
  if (!std::isfinite(norm)) {
    for (const Slot& slot : slots_) {
      if (std::isfinite(grad_norm({slot.parameter.grad()}))) continue;
      throw NotFinite("clip_grad_norm: the gradient of " + slot.name + " is not finite");
    }
    throw NotFinite("clip_grad_norm: the norm of all gradients is not finite");
  }
  if (norm > max_norm) grad_scale_ *= max_norm / norm;
  return norm;
}

void AdamW::step(double lr) {
  CHECK_ARG(lr >= 0 && std::isfinite(lr), "AdamW: lr must be finite and not negative; got ", lr);
  check_gradients("AdamW");
  NoGradGuard no_grad;
  AdamWOptions options = options_;
  options.lr = lr;
  options.step = ++steps_;
  options.grad_scale = std::exchange(grad_scale_, 1);
  for (const Slot& slot : slots_) {
    options.weight_decay = slot.weight_decay;
    adamw_(slot.parameter, slot.parameter.grad(), slot.exp_avg, slot.exp_avg_sq, options);
  }
}

void AdamW::zero_grad() {
  for (const Slot& slot : slots_) slot.parameter.grad() = Tensor();
}

StateDict AdamW::state_dict() const {
  StateDict state;
  state["step"] = from_vector(std::vector<int64_t>{steps_}, {});
  for (const Slot& slot : slots_) {
    state[slot.name + ".exp_avg"] = slot.exp_avg;
    state[slot.name + ".exp_avg_sq"] = slot.exp_avg_sq;
  }
  return state;
}

void AdamW::load_state_dict(const StateDict& state) {
  const StateDict target = state_dict();
  const auto step = state.find("step");
  CHECK_ARG(step == state.end() || step->second.numel() != 1 || step->second.item() >= 0,
            "AdamW: the state's step must not be negative; got ", step->second.item());
  copy_state("AdamW", target, state);
  steps_ = static_cast<int64_t>(target.at("step").item());
}

double learning_rate(const Schedule& schedule, int64_t step) {
  const auto& [peak, min_lr, warmup, total] = schedule;
  if (step < warmup) {
    return peak * static_cast<double>(step + 1) / static_cast<double>(warmup + 1);
  }
  if (step >= total) return min_lr;  // also where warmup >= total: nothing is left to decay over
  const double t = static_cast<double>(step - warmup) / static_cast<double>(total - warmup);
  return min_lr + (peak - min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * t));
}

}  // namespace pellucid::nn
