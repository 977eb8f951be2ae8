// The learning rate: warm-up, cosine, end, and their edges.
#include <doctest/doctest.h>

#include <cmath>

#include "nn/optim.h"

using namespace pellucid::nn;

TEST_CASE("warm-up begins above 0, meets the cosine without a jump, and ends at min_lr") {
  const Schedule s{.peak = 1, .min_lr = 0.1, .warmup = 4, .total = 14};
  CHECK(learning_rate(s, 0) == 1.0 / 5);
  CHECK(learning_rate(s, 3) == 4.0 / 5);
  CHECK(learning_rate(s, 4) == 1.0);
  CHECK(learning_rate(s, 9) == doctest::Approx(0.55).epsilon(1e-14));  // halfway: (1 + 0.1) / 2
  for (int64_t i = 5; i < 14; ++i) {
    CHECK(learning_rate(s, i) < learning_rate(s, i - 1));
    CHECK(learning_rate(s, i) > 0.1);
    const double t = static_cast<double>(i - 4) / 10;
    CHECK(std::abs(learning_rate(s, i) - (0.1 + 0.45 * (1 + std::cos(std::acos(-1.0) * t)))) <
          1e-15);
  }
  CHECK(learning_rate(s, 14) == 0.1);
  CHECK(learning_rate(s, 1000000) == 0.1);
}

TEST_CASE("schedules without warm-up, without decay, with a warm-up past the end") {
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 0, .total = 10}, 0) == 1);
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 0, .total = 0}, 0) == 0.1);
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 5, .total = 5}, 4) == 5.0 / 6);
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 5, .total = 5}, 5) == 0.1);
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 9, .total = 5}, 7) == 0.8);
  CHECK(learning_rate({.peak = 1, .min_lr = 0.1, .warmup = 9, .total = 5}, 9) == 0.1);
}
