// The learning rate: warm-up, cosine, constant, warm-up-stable-decay, and their edges.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

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

TEST_CASE("constant: warm-up, then the peak for ever") {
  const Schedule s{.peak = 1, .warmup = 3, .total = 10, .kind = Schedule::Kind::kConstant};
  CHECK(learning_rate(s, 0) == 0.25);
  CHECK(learning_rate(s, 3) == 1);
  CHECK(learning_rate(s, 10) == 1);
  CHECK(learning_rate(s, 1000000) == 1);
}

TEST_CASE("warm-up, stable, decay: a line over the last share, without a jump") {
  Schedule s{.peak = 1, .min_lr = 0.1, .warmup = 4, .total = 20, .kind = Schedule::Kind::kWSD};
  s.decay = 0.25;
  CHECK(learning_rate(s, 3) == 0.8);
  for (int64_t step = 4; step <= 15; ++step) CHECK(learning_rate(s, step) == 1);
  for (int64_t step = 15; step <= 20; ++step)
    CHECK(learning_rate(s, step) ==
          doctest::Approx(1 - 0.9 * static_cast<double>(step - 15) / 5).epsilon(1e-14));
  CHECK(learning_rate(s, 20) == 0.1);
  CHECK(learning_rate(s, 21) == 0.1);
  s.decay = 0;  // then it drops at the end
  CHECK(learning_rate(s, 19) == 1);
  CHECK(learning_rate(s, 20) == 0.1);
  s.decay = 1;  // then no step is stable, and the line begins where the warm-up ends
  CHECK(learning_rate(s, 4) == 1);
  CHECK(learning_rate(s, 12) == doctest::Approx(0.55).epsilon(1e-14));
  s.total = 0;
  CHECK(learning_rate(s, 4) == 0.1);
  s.decay = 0.25;
  s.total = std::numeric_limits<int64_t>::max() / 2;  // a run that does not know its end yet
  CHECK(learning_rate(s, 1000000) == 1);
}
