// Numbers for the tests of attention, and how far two results are apart.
#pragma once
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "autograd/gradcheck.h"

namespace pellucid {

inline Tensor random(const Shape& shape, uint64_t seed, DType dtype = kFloat64) {
  return random_leaf(shape, seed, dtype).detach();
}
inline Tensor leaf(const Tensor& x) {
  Tensor y = x.detach();
  y.set_requires_grad(true);
  return y;
}

// The largest difference over the largest number, which is about 1 unless all are rounding errors.
inline double difference(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape() == b.shape());
  const std::vector<double> x = a.to_vector(), y = b.to_vector();
  double most = 0, size = 0.01;
  for (size_t i = 0; i < x.size(); ++i) {
    most = std::max(most, std::isnan(x[i] - y[i]) ? INFINITY : std::abs(x[i] - y[i]));
    size = std::max(size, std::abs(y[i]));
  }
  return most / size;
}

}  // namespace pellucid
