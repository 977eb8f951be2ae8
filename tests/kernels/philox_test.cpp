// Philox against the known answers of its authors' reference (Random123, kat_vectors), the numbers
// of a stream in bulk against one at a time, and the conversions at the extreme integers.
#include "kernels/philox.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "kernels/random.h"
#include "kernels/thread_pool.h"

using namespace pellucid;

TEST_CASE("known answers") {
  const struct {
    uint32_t counter[4], key[2], answer[4];
  } known[] = {{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
               {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
                {0xffffffff, 0xffffffff},
                {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
               {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                {0xa4093822, 0x299f31d0},
                {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}};
  for (const auto& k : known) {
    const Philox block(k.counter, k.key);
    for (int i = 0; i < 4; ++i) CHECK(block.c[i] == k.answer[i]);
    // The same block as numbers of a stream, except where the index would overflow.
    const uint64_t seed = k.key[0] | uint64_t{k.key[1]} << 32;
    const uint64_t stream = k.counter[2] | uint64_t{k.counter[3]} << 32;
    const uint64_t index = k.counter[0] | uint64_t{k.counter[1]} << 32;
    if (index < UINT64_MAX / 4) {
      for (uint64_t i = 0; i < 4; ++i)
        CHECK(philox_number(seed, stream, 4 * index + i) == k.answer[i]);
    }
  }
}

TEST_CASE("in bulk as one at a time: any first, any length, beyond 2^32 blocks") {
  for (uint64_t first : {uint64_t{0}, uint64_t{1}, uint64_t{6}, uint64_t{31}, uint64_t{1} << 20,
                         (uint64_t{1} << 34) - 21}) {
    for (int64_t n = 0; n <= 130; ++n) {
      std::vector<uint32_t> numbers(size_t(n) + 2, 77);
      cpu::philox_numbers(numbers.data() + 1, n, 0x123456789abcdef0, 0xfedcba9876543210, first);
      int64_t wrong = numbers.front() != 77 || numbers.back() != 77;
      for (int64_t i = 0; i < n; ++i)
        wrong += numbers[size_t(i) + 1] !=
                 philox_number(0x123456789abcdef0, 0xfedcba9876543210, first + uint64_t(i));
      INFO("first ", first, ", n ", n);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("streams and seeds differ") {
  CHECK(philox_number(1, 0, 0) != philox_number(0, 1, 0));
  CHECK(philox_number(1, 0, 0) != philox_number(1 | uint64_t{1} << 32, 0, 0));
  CHECK(philox_number(0, 1, 0) != philox_number(0, 1 | uint64_t{1} << 32, 0));
}

TEST_CASE("conversions of the extreme integers stay in their intervals") {
  const uint32_t least = 0, most = 0xffffffff;
  CHECK(uniform_from<float>(least, least) == 0.0f);
  CHECK(uniform_from<float>(most, most) == 1 - 0x1p-24f);
  CHECK(uniform_from<double>(least, least) == 0.0);
  CHECK(uniform_from<double>(most, most) == 1 - 0x1p-53);
  CHECK(uniform_from<double>(least, most) == double(0x1fffff) * 0x1p-53);
  CHECK(unit_from_zero(least) == 0.0);
  CHECK(unit_from_zero(most) == 1 - 0x1p-32);
  CHECK(unit_above_zero(least) == 0x1p-32);
  CHECK(unit_above_zero(most) == 1.0);
  // Hence a normal number is at most sqrt(2 * 32 log 2) = 6.66 in size.
  CHECK(std::sqrt(-2 * std::log(unit_above_zero(least))) < 6.67);
}

TEST_CASE("uniform and normal: element by element, the same bytes on any threads") {
  const int64_t N = 100001;
  const int before = num_threads();
  std::vector<float> first_u, first_n;
  for (int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    std::vector<float> u(N), n(N);
    cpu::uniform<float>(u.data(), N, 5, 6, 7);
    cpu::normal<float>(n.data(), N, 5, 6, 7);
    if (first_u.empty()) first_u = u, first_n = n;
    CHECK(std::memcmp(u.data(), first_u.data(), 4 * N) == 0);
    CHECK(std::memcmp(n.data(), first_n.data(), 4 * N) == 0);
  }
  set_num_threads(before);
  for (int64_t i : {int64_t{0}, int64_t{1}, int64_t{1023}, int64_t{1024}, int64_t{65536}, N - 1}) {
    CHECK(first_u[size_t(i)] == uniform_from<float>(philox_number(5, 6, 7 + uint64_t(i)), 0));
    const uint64_t pair = 7 + uint64_t(i / 2 * 2);
    const double r = std::sqrt(-2 * std::log(unit_above_zero(philox_number(5, 6, pair))));
    const double angle = 2 * std::acos(-1.0) * unit_from_zero(philox_number(5, 6, pair + 1));
    CHECK(first_n[size_t(i)] == float(r * (i % 2 ? std::sin(angle) : std::cos(angle))));
  }
  std::vector<double> d(1001);
  cpu::uniform<double>(d.data(), 1001, 5, 6, 7);
  CHECK(d[1000] == uniform_from<double>(philox_number(5, 6, 2007), philox_number(5, 6, 2008)));
}

// With n = 2^20 draws a mean within 5 standard errors fails once in 1.7 million seeds; the seed is
// fixed, so it fails never or always.
TEST_CASE("moments") {
  const int64_t N = 1 << 20;
  std::vector<double> u(N), n(N);
  cpu::uniform<double>(u.data(), N, 11, 0, 0);
  cpu::normal<double>(n.data(), N, 11, 1, 0);
  double mean_u = 0, mean = 0, second = 0, fourth = 0, neighbours = 0;
  for (size_t i = 0; i < size_t(N); ++i) {
    mean_u += u[i] / N;
    mean += n[i] / N;
    second += n[i] * n[i] / N;
    fourth += n[i] * n[i] * n[i] * n[i] / N;
    neighbours += n[i] * n[i ^ 1] / N;
  }
  const double e = 5 / std::sqrt(double(N));
  CHECK(std::abs(mean_u - 0.5) < e * std::sqrt(1.0 / 12));
  CHECK(std::abs(mean) < e);
  CHECK(std::abs(second - 1) < e * std::sqrt(2.0));
  CHECK(std::abs(fourth - 3) < e * std::sqrt(96.0));
  CHECK(std::abs(neighbours) < e * std::sqrt(2.0));  // each pair counts twice
  std::printf("FIGURE | 2^20 normal numbers: mean, variance, kurtosis | %.5f %.5f %.4f\n", mean,
              second, fourth);
}
