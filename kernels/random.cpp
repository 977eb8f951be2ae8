#include "kernels/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/philox.h"
#include "kernels/simd.h"
#include "kernels/thread_pool.h"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace pellucid::cpu {
namespace {

constexpr int64_t kChunk = 1024;  // numbers in a buffer
constexpr int64_t kGrain = 16 * kChunk;

using Words = Vector<uint64_t>;
constexpr int kBlocks = kLanes<uint64_t>;  // Philox blocks at once

// The product of the lower half of each lane with m. Written as a product of 64-bit numbers it
// takes twice (AVX-512) to seven times (AVX2) as long: compilers do not see that one instruction
// will do.
inline Words widening_product(Words a, uint32_t m) {
#if defined(__AVX512F__)
  return Words(_mm512_maskz_mul_epu32(0xff, __m512i(a), _mm512_set1_epi64(m)));
#elif defined(__AVX2__)
  return Words(_mm256_mul_epu32(__m256i(a), _mm256_set1_epi64x(m)));
#elif defined(__SSE2__)
  return Words(_mm_mul_epu32(__m128i(a), _mm_set1_epi64x(m)));
#else
  return (a & 0xffffffff) * m;
#endif
}

template <std::size_t... L>
void store_in_turn(uint64_t* to, Words a, Words b, std::index_sequence<L...>) {
  store<uint64_t>(to, __builtin_shufflevector(a, b, (L / 2 + L % 2 * kBlocks)...));
  store<uint64_t>(to + kBlocks,
                  __builtin_shufflevector(a, b, ((L + kBlocks) / 2 + L % 2 * kBlocks)...));
}

// The blocks first .. first + kBlocks - 1, a block a lane. A lane of 64 bits holds a word of 32,
// between the rounds with rubbish above it: the product takes the lower half only.
void philox_blocks(uint64_t* words, uint64_t seed, uint64_t stream, uint64_t first) {
  constexpr uint64_t kLow = 0xffffffff;
  Words c0 = Words() + first;
  for (int l = 0; l < kBlocks; ++l) c0[l] += uint64_t(l);
  Words c1 = c0 >> 32, c2 = Words() + stream, c3 = c2 >> 32;
  uint32_t k0 = uint32_t(seed), k1 = uint32_t(seed >> 32);
#pragma GCC unroll 10
  for (int round = 0; round < 10; ++round, k0 += Philox::kW0, k1 += Philox::kW1) {
    const Words p0 = widening_product(c0, Philox::kM0), p1 = widening_product(c2, Philox::kM1);
    c0 = (p1 >> 32) ^ c1 ^ uint64_t { k0 };
    c1 = p1;
    c2 = (p0 >> 32) ^ c3 ^ uint64_t { k1 };
    c3 = p0;
  }
  store_in_turn(words, (c0 & kLow) | c1 << 32, (c2 & kLow) | c3 << 32,
                std::make_index_sequence<kBlocks>());
}

}  // namespace

void philox_numbers(uint32_t* numbers, int64_t n, uint64_t seed, uint64_t stream, uint64_t first) {
  constexpr int64_t kBatch = 4 * kBlocks;
  uint64_t words[2 * kBlocks];
  for (int64_t skip = int64_t(first % 4), block = 0; n > 0; skip = 0, block += kBlocks) {
    philox_blocks(words, seed, stream, first / 4 + uint64_t(block));
    const int64_t count = std::min(n, kBatch - skip);
    std::memcpy(numbers, reinterpret_cast<const char*>(words) + 4 * skip, 4 * std::size_t(count));
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
