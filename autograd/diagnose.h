// Which classic mistake a wrong gradient shows.
#pragma once
#include "tensor/tensor.h"

namespace pellucid {

// The wrong gradient of L = sum(y c) by x, and the right one. Everything is row-major.
struct WrongGradient {
  const Tensor &x, &y, &c;
  std::vector<double> analytic, numeric;  // by x; a NaN in numeric: unknown there
  std::vector<double> jacobian;           // dy[o] / dx[k] at [k * y.numel() + o]; may be empty
  double absolute = 0, relative = 0;      // |analytic - numeric| beyond these is wrong
};

// One sentence, of a mistake that explains every element; or nothing: two mistakes at once, a
// mistake that has no name here, a single element that any factor would explain.
std::string diagnose(const WrongGradient& g);

}  // namespace pellucid
