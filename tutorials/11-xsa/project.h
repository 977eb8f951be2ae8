// Exclusive Self Attention's projection of rows, twice: in plain ops, and with its backward by
// hand.
#pragma once
#include "autograd/ops.h"

namespace pellucid::lesson {

// The dot product of each row: (..., D), (..., D) -> (..., 1).
inline Tensor dot(const Tensor& a, const Tensor& b) { return sum(a * b, -1, true); }

// z = y - c v, c = y.v / v.v: what is left of y when the part along v is taken away.
inline Tensor project(const Tensor& y, const Tensor& v) {
  const Tensor c = dot(y, v) / dot(v, v);  // (..., 1)
  return y - c * v;                        // (..., D)
}

// Without the tape: for an op that brings its own backward.
template <class F>
Tensor off_the_tape(const F& f) {
  const NoGradGuard no_tape;
  return f();
}

// The same, with the gradients that we have derived instead of the tape's.
inline Tensor project_by_hand(const Tensor& y, const Tensor& v) {
  const Tensor z = off_the_tape([&] { return project(y, v); });  // (..., D)
  return record("project_by_hand", z, {y, v},
                [y = SavedTensor(y), v = SavedTensor(v), z = SavedTensor(z)](const Tensor& dz) {
                  const Tensor n = dot(v(), v());  // (..., 1)
                  const Tensor c = dot(y(), v()) / n, u = dot(dz, v()) / n;
                  const Tensor dy = dz - u * v();  // (..., D)
                  return TensorList{dy, neg(c * dy + u * z())};
                });
}

}  // namespace pellucid::lesson
