// Walking a module's members by name, and what follows from it.
#include "nn/module.h"

#include <set>

namespace pellucid::nn {

void Visitor::operator()(const std::string& name, Tensor& parameter) {
  if (parameter.defined() && on_parameter_) on_parameter_(prefix_ + name, parameter);
}

void Visitor::operator()(const std::string& name, Module& child) {
  const std::size_t outside = prefix_.size();
  prefix_ += name + ".";
  (*this)(child);
  prefix_.resize(outside);
}

void Visitor::operator()(Module& root) {
  if (on_module_) on_module_(root);
  root.visit(*this);
}

NamedTensors Module::named_parameters() {
  NamedTensors list;
  std::set<const TensorImpl*> seen;
  Visitor visitor([&](const std::string& name, Tensor& x) {
    if (seen.insert(x.impl().get()).second) list.emplace_back(name, x);
  });
  visitor(*this);
  return list;
}

int64_t Module::num_parameters() {
  int64_t n = 0;
  for (const auto& [name, x] : named_parameters()) n += x.numel();
  return n;
}

void Module::zero_grad() {
  for (const auto& [name, x] : named_parameters()) x.grad() = Tensor();
}

void Module::train(bool on) {
  Visitor visitor({}, [&](Module& module) { module.training_ = on; });
  visitor(*this);
}

StateDict Module::state_dict() {
  StateDict state;
  for (const auto& [name, x] : named_parameters()) {
    CHECK_ARG(state.emplace(name, x).second, "state_dict: two parameters are named ", name);
  }
  return state;
}

void Module::load_state_dict(const StateDict& state) {
  copy_state("load_state_dict", state_dict(), state);
}

void copy_state(const char* who, const StateDict& target, const StateDict& state) {
  // Find everything that does not fit.
  std::ostringstream faults;
  for (const auto& [key, x] : target) {
    const auto found = state.find(key);
    if (found == state.end()) {
      faults << "; missing: " << key;
    } else if (!found->second.defined()) {
      faults << "; undefined: " << key;
    } else if (const Tensor& y = found->second; y.shape() != x.shape() || y.dtype() != x.dtype()) {
      faults << "; " << key << ": wanted " << x.shape() << " " << name(x.dtype()) << ", got "
             << y.shape() << " " << name(y.dtype());
    }
  }
  for (const auto& [key, y] : state)
    if (!target.contains(key)) faults << "; unexpected: " << key;
  CHECK_ARG(faults.str().empty(), who, ": the state does not fit, nothing was loaded",
            faults.str());

  // Copy.
  NoGradGuard no_grad;
  for (const auto& [key, x] : target) copy_(x, state.at(key));
}

Tensor parameter(const Shape& shape, double value, DType dtype) {
  return full(shape, value, dtype).set_requires_grad(true);
}

uint64_t stream_of(const std::string& name) {
  uint64_t hash = 0xcbf29ce484222325;
  for (unsigned char c : name) hash = (hash ^ c) * 0x100000001b3;
  return hash;
}

void init_normal(const std::string& name, const Tensor& x, double std, uint64_t seed) {
  NoGradGuard no_grad;
  Generator rng{.seed = seed, .stream = stream_of(name)};
  copy_(x, mul_(randn(x.shape(), rng, x.dtype()), std));
}

void init_normal(Module& module, double std, uint64_t seed) {
  for (const auto& [name, x] : module.named_parameters())
    if (x.dim() >= 2) init_normal(name, x, std, seed);
}

}  // namespace pellucid::nn
