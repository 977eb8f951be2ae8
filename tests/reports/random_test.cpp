// Known faults of random numbers and dropout: the ends of the intervals, probabilities that are
// none, and numbers that depend on who draws them.
#include "kernels/philox.h"
#include "kernels/thread_pool.h"
#include "nn/layers.h"
#include "reports.h"

using namespace pellucid;

TEST_CASE(
    "no conversion of any 32-bit number leaves its interval, and no normal number is infinite "
    "(arrayfire#1610, google-research/dex-lang PR#1016, gpuocean PR#37)") {
  // Both ends, all powers of two with their neighbours, and a sweep.
  std::vector<uint32_t> numbers{0, 0xffffffff};
  for (int bit = 0; bit < 32; ++bit)
    for (const uint32_t off : {0u, 1u, 0xffffffffu}) numbers.push_back((1u << bit) + off);
  for (uint64_t n = 0; n <= 0xffffffff; n += 65521) numbers.push_back(uint32_t(n));
  for (const uint32_t a : numbers) {
    CHECK((unit_from_zero(a) >= 0 && unit_from_zero(a) < 1));
    CHECK((unit_above_zero(a) > 0 && unit_above_zero(a) <= 1));
    CHECK(std::isfinite(std::sqrt(-2 * std::log(unit_above_zero(a)))));
    for (const uint32_t b : {0u, 1u, 0x7fffffffu, 0xffffffffu}) {
      CHECK((uniform_from<float>(a, b) >= 0 && uniform_from<float>(a, b) < 1));
      CHECK((uniform_from<double>(a, b) >= 0 && uniform_from<double>(a, b) < 1));
    }
  }
}

TEST_CASE(
    "dropout at p = 0 keeps every bit, at p = 1 nothing; what is no probability is refused "
    "(pytorch/pytorch PR#1833, google/flax PR#2055, NeuraLegion/shainet PR#106)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const int64_t n : {0, 1, 2, 3, 4, 5, 15, 16, 17, 31, 33, 130, 1000}) {
      Values v;
      const double specials[] = {1, -0.0, kInf, -kInf, kNaN, 1e-40, -3e38};
      for (int64_t i = 0; i < n; ++i) v.push_back(specials[i % 7]);
      const Tensor x = from_vector(v, {n}, dtype).set_requires_grad(true);
      const Tensor dy = from_vector(Values(v.rbegin(), v.rend()), {n}, dtype);
      Generator rng{.seed = uint64_t(n)};
      const Tensor same = dropout(x, 0, rng), none = dropout(x, 1, rng);
      CHECK(same_bits(same, x));
      CHECK(same_bits(grad(same, {x}, dy)[0], dy));
      CHECK(same_bits(none, zeros({n}, dtype)));
      CHECK(same_bits(grad(none, {x}, dy)[0], zeros({n}, dtype)));
      const uint64_t offset = rng.offset;
      for (const double p : {-0.1, 1.5, kNaN, kInf, -kInf, -1e-300, 1 + 0x1p-52}) {
        CHECK(error_of([&] { dropout(x, p, rng); }).rfind("dropout: p must be in [0, 1]; got", 0) ==
              0);
        CHECK_THROWS_AS(nn::Dropout{p}, std::invalid_argument);
      }
      CHECK(rng.offset == offset);
      nn::Dropout layer(0.5);
      layer.eval();
      CHECK(same_bits(layer.forward(x, rng), x));
      CHECK(rng.offset == offset);
    }
}

TEST_CASE(
    "a dropped infinity is 0, a kept one stays: select, not multiply (pytorch/pytorch#59421)") {
  for (const DType dtype : {kFloat32, kFloat64})
    for (const double value : {kInf, -kInf, kNaN, 3e38})
      for (const int64_t n : {1, 7, 16, 33, 1000})
        for (const double p : {0.1, 0.5, 0.9}) {
          const Tensor x = full({n}, value, dtype).set_requires_grad(true);
          Generator rng{.seed = 5}, again = rng;
          const Tensor y = dropout(x, p, rng), mask = dropout(ones({n}, dtype), p, again);
          const Tensor dx = grad(y, {x}, full({n}, value, dtype))[0];
          const Values found = y.to_vector(), kept = mask.to_vector(), back = dx.to_vector();
          int wrong = 0;
          for (std::size_t i = 0; i < found.size(); ++i) {
            const bool zero = kept[i] == 0;
            wrong += zero ? !same_bits(found[i], 0)
                          : std::isnan(value) != std::isnan(found[i]) || found[i] == 0;
            wrong += !same_bits(found[i], back[i]);
          }
          CHECK(wrong == 0);
        }
}

TEST_CASE(
    "a number belongs to its element: not to the thread that draws it, nor to the tensor's size "
    "(NatLabRockies/PRAS PR#3, mlpack PR#4027)") {
  const int before = num_threads();
  const auto draw = [](auto random, int64_t n, DType dtype) {
    Generator rng{.seed = 3, .stream = 4, .offset = 8};
    return random(n, dtype, rng).to_vector();
  };
  const auto uniform = [](int64_t n, DType t, Generator& rng) { return rand({n}, rng, t); };
  const auto gauss = [](int64_t n, DType t, Generator& rng) { return randn({n}, rng, t); };
  const auto dropped = [](int64_t n, DType t, Generator& rng) {
    return dropout(ones({n}, t), 0.3, rng);
  };
  for (const DType dtype : {kFloat32, kFloat64}) {
    Values whole[3];
    for (const int threads : {1, 2, 3, 8}) {
      set_num_threads(threads);
      const Values now[] = {draw(uniform, 70001, dtype), draw(gauss, 70001, dtype),
                            draw(dropped, 70001, dtype)};
      for (int i = 0; i < 3; ++i) {
        if (threads == 1) whole[i] = now[i];
        CHECK(now[i] == whole[i]);
      }
    }
    for (const int64_t n : {1, 2, 3, 15, 16, 17, 1023, 1025, 65537}) {
      const auto begins = [&](const Values& short_one, const Values& long_one) {
        return std::equal(short_one.begin(), short_one.end(), long_one.begin());
      };
      CHECK(begins(draw(uniform, n, dtype), whole[0]));
      CHECK(begins(draw(gauss, n, dtype), whole[1]));
      CHECK(begins(draw(dropped, n, dtype), whole[2]));
    }
  }
  set_num_threads(before);
}
