// What an op was given, and what it made of it.
#include "autograd/anomaly.h"

#include <algorithm>
#include <cmath>

#include "autograd/engine.h"
#include "kernels/call_stack.h"

namespace pellucid {

static thread_local Anomaly mode = Anomaly::kOff;
bool anomaly_enabled() { return mode != Anomaly::kOff; }
AnomalyGuard::AnomalyGuard(Anomaly what) : before(mode) { mode = what; }
AnomalyGuard::~AnomalyGuard() { mode = before; }

struct Contents {
  bool nan = false, inf = false;
  void add(const Contents& other) { nan |= other.nan, inf |= other.inf; }
};
static Contents contents(const Tensor& x) {
  Contents found;
  if (!x.defined() || (x.dtype() != kFloat32 && x.dtype() != kFloat64)) return found;
  for (const double v : x.to_vector()) found.add({std::isnan(v), std::isinf(v)});
  return found;
}

struct OpTrace {
  Contents given;
  CallStack stack;
};

// "-inf at (1, 2) of" what x holds and the op was not given, or "".
static std::string made(const Tensor& x, const Contents& given) {
  const Contents now = contents(x);
  const bool nan = now.nan && !given.nan;
  if (!nan && !(now.inf && !given.inf && !given.nan && mode == Anomaly::kNanOrInf)) return "";
  const std::vector<double> values = x.to_vector();
  const auto at = std::find_if(values.begin(), values.end(),
                               [nan](double v) { return nan ? std::isnan(v) : std::isinf(v); });
  std::ostringstream text;
  text << (nan       ? "NaN"
           : *at > 0 ? "inf"
                     : "-inf")
       << " at " << index_of(at - values.begin(), x.shape()) << " of ";
  return text.str();
}

static thread_local Contents written;
void note_before_write(const Tensor& x) { written = contents(x); }

// What a backward calls is judged by what the backward returns.
void check_op(const char* name, const Tensor& y, const TensorList& inputs) {
  const auto trace = std::make_shared<OpTrace>(OpTrace{{}, call_stack()});
  std::ostringstream shapes;
  for (const Tensor& x : inputs) {
    trace->given.add(x.impl() == y.impl() ? written : contents(x));
    if (x.defined()) shapes << " " << x.shape();
  }
  if (grad_enabled() && !is_leaf(y)) y.impl()->autograd->grad_fn->trace = trace;
  const std::string what = current_node() ? "" : made(y, trace->given);
  CHECK_ARG(what.empty(), name, " made ", what, "its result of shape ", y.shape(),
            ", from inputs of shape", shapes.str(), " without", lines_of(trace->stack));
}

void check_gradients(const Node& node, const Tensor& dy, const TensorList& dx) {
  Contents given = contents(dy);
  if (node.trace) given.add(node.trace->given);
  for (std::size_t i = 0; i < dx.size(); ++i) {
    const std::string what = made(dx[i], given);
    CHECK_ARG(what.empty(), "the backward of ", node.name, " made ", what,
              "the gradient of its input ", i, " of shape ", node.input_shapes[i],
              ", from a gradient of shape ", dy.shape(), " without; ",
              node.trace ? "the op was called" + lines_of(node.trace->stack)
                         : "to see who called the op, let the AnomalyGuard begin before it");
  }
}

}  // namespace pellucid
