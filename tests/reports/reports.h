// What the tests of known faults share: messages of errors, tensors to test with, exact comparison.
#pragma once
#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "autograd/gradcheck.h"
#include "tensor/allocator.h"

namespace pellucid {

using Values = std::vector<double>;
using Ids = std::vector<int64_t>;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();

// What an argument check says; "" if the call is accepted. Any other exception goes through.
template <class Call>
std::string error_of(Call call) {
  try {
    call();
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "";
}
// Is the call refused, by an error that begins with the op's own name?
template <class Call>
bool refused_by(const std::string& op, Call call) {
  return error_of(call).rfind(op + ": ", 0) == 0;
}

// 1, 2, 3, ... in row-major order.
inline Tensor counted(const Shape& shape, DType dtype = kFloat64) {
  return reshape(arange(1, shape.numel() + 1, 1, dtype), shape);
}
inline Tensor ids_of(const Ids& ids) { return from_vector(ids, {std::ssize(ids)}); }
inline Tensor normal(const Shape& shape, uint64_t seed, DType dtype = kFloat64) {
  Generator rng{.seed = seed};
  return randn(shape, rng, dtype);
}

// Equal to the last bit: -0 is not 0, and a NaN equals a NaN.
inline bool same_bits(double a, double b) {
  return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0;
}
inline bool same_bits(const Tensor& a, const Tensor& b) {
  if (!(a.shape() == b.shape()) || a.dtype() != b.dtype()) return false;
  const Values x = a.to_vector(), y = b.to_vector();
  for (std::size_t i = 0; i < x.size(); ++i)
    if (!same_bits(x[i], y[i])) return false;
  return true;
}

// All shapes of exactly dim dimensions with sizes 0 .. largest.
inline std::vector<Shape> all_shapes(int dim, int64_t largest) {
  std::vector<Shape> shapes{Shape{}};
  for (int d = 0; d < dim; ++d) {
    std::vector<Shape> longer;
    for (const Shape& shape : shapes)
      for (int64_t size = 0; size <= largest; ++size) {
        longer.push_back(shape);
        longer.back().push_back(size);
      }
    shapes = longer;
  }
  return shapes;
}

// New memory is NaN for the length of a scope: what is read before it is written shows.
struct PoisonGuard {
  PoisonGuard() { set_poison(true); }
  ~PoisonGuard() { set_poison(false); }
  PoisonGuard(const PoisonGuard&) = delete;
  PoisonGuard& operator=(const PoisonGuard&) = delete;
};

}  // namespace pellucid
