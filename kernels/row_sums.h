// Sums along rows and over rows, each in one fixed order, for the kernels that work row by row.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/rows.h"
#include "kernels/thread_pool.h"

namespace pellucid {

// f(0) + ... + f(n - 1): four streams of vector lanes hide the latency of the adder, and a double
// takes over every 2048 terms, so that no lane adds more than 32 to 128 of them in T.
template <class T, class F>
inline double sum_row(int64_t n, const F& f) {
  double total = 0;
  for (int64_t begin = 0; begin < n; begin += 2048) {
    const int64_t quarter = std::min<int64_t>(n - begin, 2048) / 4;
    const int64_t i1 = begin + quarter, i2 = i1 + quarter, i3 = i2 + quarter;
    T a = 0, b = 0, c = 0, d = 0, rest = 0;
#pragma omp simd reduction(+ : a, b, c, d)
    for (int64_t i = 0; i < quarter; ++i) {
      a += f(begin + i);
      b += f(i1 + i);
      c += f(i2 + i);
      d += f(i3 + i);
    }
    for (int64_t i = i3 + quarter; i < std::min(n, begin + 2048); ++i) rest += f(i);
    total += static_cast<double>(((a + b) + (c + d)) + rest);
  }
  return total;
}

// The largest of x[0 .. n); a NaN may be passed over.
template <class T>
inline T max_row(const T* x, int64_t n) {
  T top = x[0];
#pragma omp simd reduction(max : top)
  for (int64_t i = 0; i < n; ++i) top = x[i] > top ? x[i] : top;
  return top;
}

// out[c] = sum_b partials[b, c], in double; width is the distance of two rows of partials.
template <class T>
inline void add_partials(T* out, const T* partials, int64_t blocks, int64_t C, int64_t width) {
  constexpr int64_t kColumns = 64;
  parallel_for(C, kColumns, [=](int64_t begin, int64_t end) {
    double sum[kColumns] = {};
    for (int64_t b = 0; b < blocks; ++b)
      for (int64_t c = begin; c < end; ++c) sum[c - begin] += double(partials[b * width + c]);
    for (int64_t c = begin; c < end; ++c) out[c] = T(sum[c - begin]);
  });
}

}  // namespace pellucid
