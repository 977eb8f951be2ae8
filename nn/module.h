// Module: a layer or model whose parameters are found by name, with the names of PyTorch's
// state_dict ("h.0.attn.c_attn.weight").
//
// A module is a value. It holds tensors and other modules as members and lists them in visit();
// nothing points back into it, so a copy is safe: it shares the tensors (a Tensor is a handle).
//
//   struct TwoLayers : nn::Module {
//     nn::Linear first{2, 16}, second{16, 1};
//     void visit(nn::Visitor& v) override { v("first", first), v("second", second); }
//     Tensor forward(const Tensor& x) const { return second.forward(tanh(first.forward(x))); }
//   };
#pragma once
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "autograd/ops.h"

namespace pellucid::nn {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
using StateDict = std::map<std::string, Tensor>;

class Module;

// What visit() is handed: it meets each parameter under its full name, and each module.
class Visitor {
 public:
  using OnParameter = std::function<void(const std::string& name, Tensor& parameter)>;
  using OnModule = std::function<void(Module& module)>;
  explicit Visitor(OnParameter on_parameter, OnModule on_module = {})
      : on_parameter_(std::move(on_parameter)), on_module_(std::move(on_module)) {}

  void operator()(const std::string& name, Tensor& parameter);  // an undefined one is passed over
  void operator()(const std::string& name, Module& child);
  void operator()(Module& root);

 private:
  OnParameter on_parameter_;
  OnModule on_module_;
  std::string prefix_;  // "h.0.attn."
};

class Module {
 public:
  virtual ~Module() = default;

  // Calls v("name", member) for each parameter and each module among the members.
  virtual void visit(Visitor& v) = 0;

  // In the order of visit(). A tensor with two names (a tied head) is listed once, under the first.
  NamedTensors named_parameters();
  int64_t num_parameters();
  void zero_grad();  // leaves no gradient at all, so that a missing one can be told

  // Dropout acts while training only. A module starts in training mode.
  void train(bool on = true);
  void eval() { train(false); }
  bool training() const { return training_; }

  // The parameters by name: the tensors themselves, not copies; a tied one once.
  StateDict state_dict();
  // Copies values into the parameters. Missing or unexpected names, other shapes or dtypes are an
  // error that lists them all, and then nothing has changed.
  void load_state_dict(const StateDict& state);

 private:
  bool training_ = true;
};

// module.forward(args...), its nodes named as its parameters are: named("attn", attn, x).
template <class M, class... Args>
Tensor named(const std::string& name, M& module, Args&&... args) {
  const NameScope scope(name);
  return module.forward(std::forward<Args>(args)...);
}

// Copies the values of state into the tensors of target, all or nothing: names, shapes and dtypes
// that do not fit are one error, which lists them and begins with who.
void copy_state(const char* who, const StateDict& target, const StateDict& state);

// A leaf that requires a gradient, filled with value.
Tensor parameter(const Shape& shape, double value, DType dtype);
// The random stream that belongs to a name (FNV-1a): numbers for one name depend on no other.
uint64_t stream_of(const std::string& name);
// Fills x with draws from N(0, std^2), taken from the stream of its name: they depend on seed and
// name only, not on what else is initialised, nor in which order.
void init_normal(const std::string& name, const Tensor& x, double std, uint64_t seed);
// Every matrix of the module (two dimensions or more) from N(0, std^2); vectors keep what their
// constructors gave: weights of norms 1, biases and gates 0.
void init_normal(Module& module, double std, uint64_t seed);

}  // namespace pellucid::nn
