#include "kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "kernels/philox.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

template <class T>
void dropout(T* y, const T* x, int64_t N, double p, uint64_t seed, uint64_t stream,
             uint64_t first) {
  constexpr int64_t kChunk = 1024;
  if (p == 1) {  // 2^32 is no 32-bit number, and 1 / (1 - p) no number at all
    std::fill(y, y + N, T(0));
    return;
  }
  // With p > 1 - 2^-33 the threshold rounds up to 2^32, which is out of range again.
  const uint32_t threshold = uint32_t(std::min(std::ceil(p * 0x1p32), 0x1p32 - 1));
  const T scale = T(1 / (1 - p));
  parallel_for(N, 16 * kChunk, [=](int64_t begin, int64_t end) {
    uint32_t numbers[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      philox_numbers(numbers, n, seed, stream, first + uint64_t(i));
      // A choice, not a product with 0: what is dropped may be infinite. Nothing is dropped for p =
      // 0.
#pragma omp simd
      for (int64_t j = 0; j < n; ++j) y[i + j] = numbers[j] < threshold ? T(0) : x[i + j] * scale;
    }
  });
}
INSTANTIATE(dropout);

}  // namespace pellucid::cpu
