#include "tensor/random.h"

#include <numeric>

#include "kernels/philox.h"
#include "kernels/random.h"
#include "tensor/launch.h"

namespace pellucid {

uint32_t Generator::next() { return philox_number(seed, stream, offset++); }

double Generator::uniform() {
  const uint32_t high = next();
  return uniform_from<double>(high, next());
}

// The first 2^64 - 2^64 mod n numbers fall on each result equally often; the rest is drawn again.
int64_t Generator::below(int64_t n) {
  CHECK_ARG(n >= 1, "Generator::below: n must be at least 1; got ", n);
  const auto size = static_cast<uint64_t>(n);
  for (;;) {
    const uint64_t high = next(), number = high << 32 | next();
    if (number <= UINT64_MAX - (UINT64_MAX % size + 1) % size)
      return static_cast<int64_t>(number % size);
  }
}

// The next draw begins at a whole Philox block.
static void advance(Generator& rng, int64_t numbers) {
  rng.offset += static_cast<uint64_t>((numbers + 3) / 4 * 4);
}

Tensor rand(const Shape& shape, Generator& rng, DType dtype) {
  Tensor y = empty(shape, dtype);
  LAUNCH(y, uniform, y, y.numel(), rng.seed, rng.stream, rng.offset);
  advance(rng, dtype == kFloat64 ? 2 * y.numel() : y.numel());
  return y;
}

Tensor randn(const Shape& shape, Generator& rng, DType dtype) {
  Tensor y = empty(shape, dtype);
  LAUNCH(y, normal, y, y.numel(), rng.seed, rng.stream, rng.offset);
  advance(rng, y.numel());
  return y;
}

// Fisher and Yates: each of the n! orders equally often.
std::vector<int64_t> permutation(int64_t n, Generator& rng) {
  CHECK_ARG(n >= 0, "permutation: n must not be negative; got ", n);
  std::vector<int64_t> order(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t i = n - 1; i > 0; --i)
    std::swap(order[static_cast<std::size_t>(i)],
              order[static_cast<std::size_t>(rng.below(i + 1))]);
  return order;
}

}  // namespace pellucid
