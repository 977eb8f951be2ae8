// Generator, rand, randn, permutation: each draw is a function of (seed, stream, offset) alone, and
// the offset says where the next one begins.
#include "tensor/random.h"

#include <doctest/doctest.h>

#include <cmath>
#include <map>
#include <vector>

#include "kernels/philox.h"

using namespace pellucid;

TEST_CASE("the state is the whole state") {
  Generator rng{1, 2, 3};
  CHECK(rng.next() == philox_number(1, 2, 3));
  CHECK(rng.offset == 4);
  const Generator kept = rng;
  const double u = rng.uniform();
  CHECK(rng.offset == 6);
  CHECK(u == uniform_from<double>(philox_number(1, 2, 4), philox_number(1, 2, 5)));
  Generator again = kept;
  CHECK(again.uniform() == u);
}

TEST_CASE("below: the range, each number equally often, errors") {
  Generator rng{5};
  std::vector<double> count(7);
  const int draws = 70000;
  for (int i = 0; i < draws; ++i) {
    const int64_t k = rng.below(7);
    REQUIRE((k >= 0 && k < 7));
    ++count[size_t(k)];
  }
  double chi = 0;
  for (double c : count) chi += (c - 1e4) * (c - 1e4) / 1e4;
  CHECK(chi < 35);  // 6 degrees of freedom: once in 230,000 seeds
  CHECK(rng.below(1) == 0);
  for (int i = 0; i < 100; ++i) CHECK(rng.below(INT64_MAX) >= 0);
  CHECK_THROWS_WITH_AS(rng.below(0), "Generator::below: n must be at least 1; got 0",
                       std::invalid_argument);
}

TEST_CASE("rand and randn advance by whole Philox blocks") {
  Generator rng{9, 1};
  const Tensor a = rand({2, 3}, rng);
  CHECK(rng.offset == 8);
  const Tensor b = rand({5}, rng, kFloat64);
  CHECK(rng.offset == 20);
  const Tensor c = randn({5}, rng);
  CHECK(rng.offset == 28);
  const Tensor none = randn({0, 3}, rng), one = randn({}, rng, kFloat64);
  CHECK(rng.offset == 32);
  CHECK(none.shape() == Shape{0, 3});
  CHECK(one.dtype() == kFloat64);
  Generator from{9, 1, 20};
  CHECK(randn({5}, from).to_vector() == c.to_vector());
  for (double u : a.to_vector()) CHECK((u >= 0 && u < 1));
  CHECK(b.to_vector()[1] == uniform_from<double>(philox_number(9, 1, 10), philox_number(9, 1, 11)));
  CHECK_THROWS_WITH_AS(rand({2}, rng, kInt64),
                       "uniform: wanted float32 or float64; got int64; use astype()",
                       std::invalid_argument);
}

TEST_CASE("permutation: all orders equally often") {
  Generator rng{3};
  CHECK(permutation(0, rng).empty());
  CHECK(permutation(1, rng) == std::vector<int64_t>{0});
  std::map<std::vector<int64_t>, double> count;
  for (int i = 0; i < 24000; ++i) ++count[permutation(4, rng)];
  CHECK(count.size() == 24);
  double chi = 0;
  for (const auto& [order, c] : count) chi += (c - 1000) * (c - 1000) / 1000;
  CHECK(chi < 70);  // 23 degrees of freedom: once in 800,000 seeds
  std::vector<bool> seen(1000);
  for (int64_t k : permutation(1000, rng)) seen[size_t(k)] = true;
  for (bool s : seen) CHECK(s);
  CHECK_THROWS_WITH_AS(permutation(-1, rng), "permutation: n must not be negative; got -1",
                       std::invalid_argument);
}
