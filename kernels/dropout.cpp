#include "kernels/dropout.h"

#include <algorithm>
#include <cmath>

#include "kernels/philox.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

// By value: what a closure captures could be what y points to, and would be read again each time.
// A choice, not a product with 0: what is dropped may be infinite.
template <class T>
static void drop(T* y, const T* x, const uint32_t* numbers, int64_t n, uint32_t threshold,
                 T scale) {
#pragma omp simd
  for (int64_t i = 0; i < n; ++i) y[i] = numbers[i] < threshold ? T(0) : x[i] * scale;
}

template <class T>
void dropout(T* y, const T* x, int64_t N, double p, uint64_t seed, uint64_t stream,
             uint64_t first) {
  constexpr int64_t kChunk = 1024;
  if (p == 1) {  // 1 / (1 - p) would be infinite
    std::fill(y, y + N, T(0));
    return;
  }
  // Rounded up: no number is below 2^32 p unless it is below this. For p = 0 none is.
  const uint32_t threshold = uint32_t(std::min(std::ceil(p * 0x1p32), 0x1p32 - 1));
  const T scale = T(1 / (1 - p));
  parallel_for(N, 16 * kChunk, [=](int64_t begin, int64_t end) {
    uint32_t numbers[kChunk];
    for (int64_t i = begin; i < end; i += kChunk) {
      const int64_t n = std::min(kChunk, end - i);
      philox_numbers(numbers, n, seed, stream, first + uint64_t(i));
      drop(y + i, x + i, numbers, n, threshold, scale);
    }
  });
}
INSTANTIATE(dropout);

}  // namespace pellucid::cpu
