// cross_entropy as an op, beyond the table of ops: no row that counts, an ignore_index that is also
// a class, targets changed before backward, and the memory that backward takes.
#include <doctest/doctest.h>

#include <cmath>

#include "autograd/ops.h"
#include "tensor/allocator.h"

using namespace pellucid;

static Tensor logits_of(const Shape& shape) {
  Generator rng{.seed = 7};
  return randn(shape, rng, kFloat64).set_requires_grad(true);
}

TEST_CASE("cross_entropy with every target ignored is 0 with zero gradients, fused and plain") {
  const Tensor ignored = full({2, 3}, -1, kInt64);
  for (auto* loss_of : {&cross_entropy, &plain::cross_entropy}) {
    const Tensor x = logits_of({2, 3, 5});
    const Tensor loss = (*loss_of)(x, ignored, -1);
    CHECK(loss.item() == 0);
    loss.backward();
    for (double dx : x.grad().to_vector()) CHECK(dx == 0);
  }
}

TEST_CASE("an ignored row may hold anything, fused and under create_graph") {
  const Tensor x = from_vector({1, 2, NAN, 0, -HUGE_VAL, -HUGE_VAL}, {3, 2}, kFloat64);
  x.set_requires_grad(true);
  for (const bool create_graph : {false, true}) {
    const Tensor loss = cross_entropy(x, from_vector({0, -100, -100}, {3}, kInt64));
    const auto dx = grad(loss, {x}, {}, {.create_graph = create_graph})[0].to_vector();
    CHECK(dx[0] == doctest::Approx(-dx[1]));
    CHECK(dx[0] < -0.5);
    for (std::size_t i = 2; i < 6; ++i) CHECK(dx[i] == 0);
  }
}

TEST_CASE("ignore_index may be a class, or lie anywhere else") {
  for (int64_t ignore : {int64_t{2}, int64_t{-100}, int64_t{5}, INT64_MIN, INT64_MAX}) {
    const Tensor x = logits_of({4, 5});
    const Tensor targets = full({4}, 0, kInt64);
    static_cast<int64_t*>(targets.data())[1] = ignore;
    const Tensor loss = cross_entropy(x, targets, ignore);
    CHECK(std::abs(loss.item() - plain::cross_entropy(x, targets, ignore).item()) < 1e-14);
    loss.backward();
    for (int64_t v = 0; v < 5; ++v) CHECK(x.grad().to_vector()[std::size_t(5 + v)] == 0);
  }
}

TEST_CASE("targets changed after the loss are noticed, not followed out of bounds") {
  const Tensor x = logits_of({2, 3}), targets = full({2}, 1, kInt64);
  const Tensor loss = cross_entropy(x, targets);
  copy_(targets, full({2}, 1000, kInt64));
  CHECK_THROWS_WITH(loss.backward(),
                    "cross_entropy: needs for its backward a tensor of shape (2) that copy_ has "
                    "changed in place since (version 2, saved at 1); change a copy of it, as x * "
                    "1.0 is, or use an op that is not in place");
}

TEST_CASE("cross_entropy's backward takes memory for the gradient only") {
  NoGradGuard no_grad;
  const Tensor x = logits_of({1000, 64}), targets = full({1000}, 3, kInt64);
  Tensor loss;
  {
    const GradModeGuard on(true);
    loss = cross_entropy(x, targets);
  }
  reset_peak();
  const int64_t before = int64_t(memory_stats().bytes_in_use);
  loss.backward();
  const int64_t taken = int64_t(memory_stats().peak_bytes_in_use) - before;
  CHECK(taken >= int64_t(1000 * 64 * sizeof(double)));
  CHECK(taken <= int64_t(1000 * 64 * sizeof(double)) * 5 / 4 + 4096);  // a size class, and the seed
}
