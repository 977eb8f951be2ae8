// An op of your own: x^3, with a kernel and a backward, and its check.
#include <iostream>

#include "autograd/gradcheck.h"

using namespace pellucid;

Tensor cube(const Tensor& x) {
  Tensor y = empty_like(x);
  double *to = y.data<double>(), *from = x.data<double>();
  for (int64_t i = 0; i < x.numel(); ++i) to[i] = from[i] * from[i] * from[i];
  // dx = 3 x^2 dy. Written in ops, so that it can be differentiated again.
  return record("cube", y, {x}, [x = SavedTensor(x)](const Tensor& dy) {
    return TensorList{dy * 3.0 * x() * x()};
  });
}

int main() {
  const auto f = [](const TensorList& in) { return cube(in[0]); };
  const GradcheckResult result = gradcheck(f, {random_leaf({3, 4}, 1)});
  std::cout << result.message() << "\n";
  return result ? 0 : 1;
}
