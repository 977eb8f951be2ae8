// The optimizers' state and the order of their checks; the arithmetic is in the ops adamw_ and
// sgd_, but for Muon's products of matrices.
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

std::vector<ParameterGroup> muon_groups(const NamedTensors& parameters, double weight_decay,
                                        double lr_scale) {
  ParameterGroup hidden{{}, weight_decay, lr_scale, true};
  NamedTensors others;
  for (const auto& parameter : parameters) {
    const bool inside = parameter.first.starts_with("h.") && parameter.second.dim() == 2;
    (inside ? hidden.parameters : others).push_back(parameter);
  }
  std::vector<ParameterGroup> groups = decay_matrices(others, weight_decay);
  groups.insert(groups.begin(), hidden);
  return groups;
}

// ---- what all share ----

Optimizer::Optimizer(const char* name, const std::vector<ParameterGroup>& groups) : name_(name) {
  std::set<std::string> names;
  for (const ParameterGroup& group : groups) {
    CHECK_ARG(group.weight_decay >= 0, name_, ": weight_decay must not be negative; got ",
              group.weight_decay);
    CHECK_ARG(group.lr_scale >= 0 && std::isfinite(group.lr_scale), name_,
              ": lr_scale must be finite and not negative; got ", group.lr_scale);
    for (const auto& [key, x] : group.parameters) {
      CHECK_ARG(names.insert(key).second, name_, ": two parameters are named ", key);
      if (!x.requires_grad()) continue;
      slots_.push_back({key, x, group.weight_decay, group.lr_scale, group.orthogonalize, {}, {}});
    }
  }
}

void Optimizer::add_state(Slot& slot, const std::vector<std::string>& names) {
  slot.state_names = names;
  for (std::size_t i = 0; i < names.size(); ++i)
    slot.state.push_back(full_like(slot.parameter, slot.parameter.shape(), 0));
}

void Optimizer::check_gradients(const std::string& who) const {
  std::string missing;
  for (const Slot& slot : slots_)
    if (!slot.parameter.grad().defined()) missing += (missing.empty() ? "" : ", ") + slot.name;
  CHECK_ARG(missing.empty(), who, ": no gradient has come to ", missing,
            "; call backward() first, and see that the loss depends on it");
}

double Optimizer::clip_grad_norm(double max_norm) {
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

void Optimizer::step(double lr) {
  CHECK_ARG(lr >= 0 && std::isfinite(lr), name_, ": lr must be finite and not negative; got ", lr);
  check_gradients(name_);
  NoGradGuard no_grad;
  ++steps_;
  const double grad_scale = std::exchange(grad_scale_, 1);
  for (const Slot& slot : slots_) update(slot, lr * slot.lr_scale, grad_scale);
}

void Optimizer::zero_grad() {
  for (const Slot& slot : slots_) slot.parameter.grad() = Tensor();
}

StateDict Optimizer::state_dict() const {
  StateDict state;
  state["step"] = from_vector(std::vector<int64_t>{steps_}, {});
  for (const Slot& slot : slots_)
    for (std::size_t i = 0; i < slot.state.size(); ++i)
      state[slot.name + "." + slot.state_names[i]] = slot.state[i];
  return state;
}

void Optimizer::load_state_dict(const StateDict& state) {
  const StateDict target = state_dict();
  const auto step = state.find("step");
  CHECK_ARG(step == state.end() || step->second.numel() != 1 || step->second.item() >= 0, name_,
            ": the state's step must not be negative; got ", step->second.item());
  copy_state(name_.c_str(), target, state);
  steps_ = static_cast<int64_t>(target.at("step").item());
}

// ---- each ----

SGD::SGD(const std::vector<ParameterGroup>& groups, const SGDOptions& options)
    : Optimizer("SGD", groups), options_(options) {
  CHECK_ARG(options.momentum >= 0 && options.momentum < 1, "SGD: momentum must be in [0, 1); got ",
            options.momentum);
  CHECK_ARG(options.momentum > 0 || !options.nesterov, "SGD: nesterov needs a momentum above 0");
  if (options.momentum > 0)
    for (Slot& slot : slots_) add_state(slot, {"momentum_buffer"});
}

void SGD::update(const Slot& slot, double lr, double grad_scale) {
  SGDOptions options = options_;
  options.lr = lr, options.weight_decay = slot.weight_decay, options.grad_scale = grad_scale;
  sgd_(slot.parameter, slot.parameter.grad(), slot.state.empty() ? Tensor() : slot.state[0],
       options);
}

static void check_options(const char* name, const AdamWOptions& options) {
  CHECK_ARG(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1,
            name, ": betas must be in [0, 1); got ", options.beta1, ", ", options.beta2);
  CHECK_ARG(options.eps > 0, name, ": eps must be positive; got ", options.eps);
}

static AdamWOptions with(AdamWOptions options, double lr, double decay, double grad_scale,
                         int64_t step) {
  options.lr = lr, options.weight_decay = decay, options.grad_scale = grad_scale;
  options.step = step;
  return options;
}

AdamW::AdamW(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : Optimizer("AdamW", groups), options_(options) {
  check_options("AdamW", options);
  for (Slot& slot : slots_) add_state(slot, {"exp_avg", "exp_avg_sq"});
}

void AdamW::update(const Slot& s, double lr, double grad_scale) {
  adamw_(s.parameter, s.parameter.grad(), s.state[0], s.state[1],
         with(options_, lr, s.weight_decay, grad_scale, steps_));
}

Adam::Adam(const std::vector<ParameterGroup>& groups, const AdamWOptions& options)
    : Optimizer("Adam", groups), options_(options) {
  check_options("Adam", options);
  for (Slot& slot : slots_) add_state(slot, {"exp_avg", "exp_avg_sq"});
}

void Adam::update(const Slot& s, double lr, double grad_scale) {
  Tensor g = s.parameter.grad();
  if (s.weight_decay > 0)
    g = g * grad_scale + s.parameter * s.weight_decay, grad_scale = 1;  // w's shape
  adamw_(s.parameter, g, s.state[0], s.state[1], with(options_, lr, 0, grad_scale, steps_));
}

Muon::Muon(const std::vector<ParameterGroup>& groups, double momentum, const AdamWOptions& options)
    : Optimizer("Muon", groups), momentum_(momentum), options_(options) {
  check_options("Muon", options);
  CHECK_ARG(momentum >= 0 && momentum < 1, "Muon: momentum must be in [0, 1); got ", momentum);
  for (Slot& slot : slots_) {
    if (slot.orthogonalize) {
      CHECK_ARG(slot.parameter.dim() == 2, "Muon: only matrices can be orthogonalised; ", slot.name,
                " has shape ", slot.parameter.shape());
      add_state(slot, {"momentum_buffer"});
    } else {
      add_state(slot, {"exp_avg", "exp_avg_sq"});
    }
  }
}

void Muon::update(const Slot& s, double lr, double grad_scale) {
  const Tensor &w = s.parameter, g = w.grad(), &m = s.state[0];
  if (!s.orthogonalize)
    return adamw_(w, g, m, s.state[1], with(options_, lr, s.weight_decay, grad_scale, steps_));
  const double rows = static_cast<double>(w.size(0)), columns = static_cast<double>(w.size(1));
  copy_(m, m * momentum_ + g * grad_scale);                        // (out, in)
  const Tensor u = orthogonalize(g * grad_scale + m * momentum_);  // (out, in)
  const double rate = lr * std::sqrt(std::max(1.0, rows / columns));
  copy_(w, w * (1 - lr * s.weight_decay) - u * rate);
}

Tensor orthogonalize(const Tensor& x) {
  CHECK_ARG(x.dim() == 2, "orthogonalize: wanted a matrix; got x ", x.shape());
  const NoGradGuard no_grad;
  constexpr double a = 3.4445, b = -4.7750, c = 2.0315;
  const bool tall = x.size(0) > x.size(1);   // then A would be the larger of the two products
  Tensor u = tall ? transpose(x, 0, 1) : x;  // (m, n), m <= n
  u = u / (grad_norm({u}) + 1e-7);           // no singular value is above the root of all squares
  for (int i = 0; i < 5; ++i) {
    const Tensor A = matmul(u, transpose(u, 0, 1));   // (m, m)
    u = u * a + matmul(A * b + matmul(A, A) * c, u);  // (m, n)
  }
  return tall ? transpose(u, 0, 1) : u;
}

// ---- the learning rate ----

double learning_rate(const Schedule& s, int64_t step) {
  if (step < s.warmup)
    return s.peak * static_cast<double>(step + 1) / static_cast<double>(s.warmup + 1);
  if (s.kind == Schedule::Kind::kConstant) return s.peak;
  if (step >= s.total)
    return s.min_lr;  // also where warmup >= total: nothing is left to decay over
  const auto share = [&](int64_t begin) {  // of the way from begin to total
    return static_cast<double>(step - begin) / static_cast<double>(s.total - begin);
  };
  if (s.kind == Schedule::Kind::kCosine) {
    const double t = share(s.warmup);
    return s.min_lr + (s.peak - s.min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * t));
  }
  const double stable = (1 - s.decay) * static_cast<double>(s.total);
  const int64_t begin = std::max(s.warmup, static_cast<int64_t>(std::llround(stable)));
  return step < begin ? s.peak : s.peak + (s.min_lr - s.peak) * share(begin);
}

}  // namespace pellucid::nn
