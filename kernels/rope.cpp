#include "kernels/rope.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/thread_pool.h"

namespace pellucid::cpu {
namespace {

// Turn one head: its pairs are x[i * step], x[i * step + apart].
template <class T>
void turn(T* y, const T* x, const T* cosine, const T* sine, int64_t pairs, int64_t step,
          int64_t apart) {
#pragma omp simd
  for (int64_t i = 0; i < pairs; ++i) {
    const T a = x[i * step], b = x[i * step + apart];
    y[i * step] = a * cosine[i] - b * sine[i];
    y[i * step + apart] = a * sine[i] + b * cosine[i];
  }
}

}  // namespace

template <class T>
void rope(T* y, const T* x, int64_t B, int64_t length, int64_t W, int64_t heads, int64_t D,
          bool adjacent, double base, int64_t position, bool inverse) {
  if (B * length * W == 0) return;
  const int64_t pairs = D / 2;
  std::vector<double> frequency(pairs);
  for (int64_t i = 0; i < pairs; ++i) frequency[i] = std::pow(base, -2.0 * double(i) / double(D));

  // One task, some positions of every batch: the angles, in double so that position 1e6 is as good
  // as position 1, are computed once a position and serve all heads and batches.
  const int64_t grain = std::max<int64_t>(1, (1 << 15) / (B * W + 16 * D + 1));
  parallel_for(length, grain, [&](int64_t t0, int64_t t1) {
    std::vector<T> table(D);
    T *cosine = table.data(), *sine = cosine + pairs;
    for (int64_t t = t0; t < t1; ++t) {
      for (int64_t i = 0; i < pairs; ++i) {
        const double angle = double(position + t) * frequency[i];
        cosine[i] = T(std::cos(angle));
        sine[i] = T(inverse ? -std::sin(angle) : std::sin(angle));
      }
      for (int64_t b = 0; b < B; ++b) {
        const int64_t row = (b * length + t) * W;
        for (int64_t h = 0; h < heads; ++h)
          adjacent ? turn(y + row + h * D, x + row + h * D, cosine, sine, pairs, 2, 1)
                   : turn(y + row + h * D, x + row + h * D, cosine, sine, pairs, 1, pairs);
        if (x != y) std::copy(x + row + heads * D, x + row + W, y + row + heads * D);
      }
    }
  });
}
INSTANTIATE(rope);

}  // namespace pellucid::cpu
