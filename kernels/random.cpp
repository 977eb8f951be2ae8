#include "kernels/random.h"

#include <algorithm>
#include <cmath>

#include "kernels/philox.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {
namespace {

constexpr int kBatch = 16;        // blocks at once
constexpr int64_t kChunk = 1024;  // numbers in a buffer
constexpr int64_t kGrain = 16 * kChunk;

// The blocks first .. first + kBatch - 1. A 64-bit lane holds a 32-bit word, with rubbish above it
// between the rounds: the multiplication reads the lower half only.
void philox_batch(uint64_t* words, uint64_t seed, uint64_t stream, uint64_t first) {
  constexpr uint64_t kLow = 0xffffffff;
  uint64_t c0[kBatch], c1[kBatch], c2[kBatch], c3[kBatch];
  for (int l = 0; l < kBatch; ++l) {
    c0[l] = first + l;
    c1[l] = (first + l) >> 32;
    c2[l] = stream & kLow;
    c3[l] = stream >> 32;
  }
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
  for (int round = 0; round < 10; ++round, k0 += Philox::kW0, k1 += Philox::kW1) {
    for (int l = 0; l < kBatch; ++l) {
      const uint64_t p0 = (c0[l] & kLow) * Philox::kM0, p1 = (c2[l] & kLow) * Philox::kM1;
      c0[l] = (p1 >> 32) ^ c1[l] ^ k0;
      c1[l] = p1;
      c2[l] = (p0 >> 32) ^ c3[l] ^ k1;
      c3[l] = p0;
    }
  }
  for (int l = 0; l < kBatch; ++l) {
    words[2 * l] = (c0[l] & kLow) | c1[l] << 32;
    words[2 * l + 1] = (c2[l] & kLow) | c3[l] << 32;
  }
}

}  // namespace

void philox_numbers(uint32_t* numbers, int64_t n, uint64_t seed, uint64_t stream, uint64_t first) {
  uint64_t words[2 * kBatch];
  for (uint64_t block = first / 4, skip = first % 4; n > 0; block += kBatch, skip = 0) {
    philox_batch(words, seed, stream, block);
    const int64_t count = std::min<int64_t>(n, 4 * kBatch - int64_t(skip));
    for (int64_t i = 0, at = int64_t(skip); i < count; ++i, ++at)
      numbers[i] = uint32_t(words[at / 2] >> (at % 2 * 32));
    numbers += count;
    n -= count;
  }
}

template <class T>
void uniform(T* y, int64_t N, uint64_t seed, uint64_t stream, uint64_t first) {
  constexpr int64_t kTake = sizeof(T) / 4;  // numbers an element
  parallel_for(N, kGrain, [=](int64_t begin, int64_t end) {
    uint32_t numbers[kChunk];
    for (int64_t i = begin; i < end; i += kChunk / kTake) {
      const int64_t n = std::min(kChunk / kTake, end - i);
      philox_numbers(numbers, n * kTake, seed, stream, first + uint64_t(i * kTake));
      for (int64_t j = 0; j < n; ++j)
        y[i + j] = uniform_from<T>(numbers[j * kTake], numbers[j * kTake + kTake - 1]);
    }
  });
}
INSTANTIATE(uniform);

template <class T>
void normal(T* y, int64_t N, uint64_t seed, uint64_t stream, uint64_t first) {
  parallel_for(N, kGrain, [=](int64_t begin, int64_t end) {
    uint32_t numbers[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      philox_numbers(numbers, n + n % 2, seed, stream, first + uint64_t(i));
      for (int64_t j = 0; j < n; j += 2) {
        const double radius = std::sqrt(-2 * std::log(unit_above_zero(numbers[j])));
        const double angle = 6.283185307179586 * unit_from_zero(numbers[j + 1]);
        y[i + j] = T(radius * std::cos(angle));
        if (j + 1 < n) y[i + j + 1] = T(radius * std::sin(angle));
      }
    }
  });
}
INSTANTIATE(normal);

}  // namespace pellucid::cpu
