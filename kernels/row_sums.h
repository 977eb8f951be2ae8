// Sums along rows and over rows, each in one fixed order, for the kernels that work row by row.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernels/rows.h"
#include "kernels/thread_pool.h"

namespace pellucid {

// Fold 2 half lanes as a tree: the two halves, then their halves. A constant each time, so that it
// compiles to a few vector instructions.
template <int half, class T, class Op>
inline T fold_lanes(T* lanes, const Op& op) {
  if constexpr (half > 0) {
    for (int l = 0; l < half; ++l) lanes[l] = op(lanes[l], lanes[l + half]);
    return fold_lanes<half / 2>(lanes, op);
  }
  return lanes[0];
}

// Fold the terms 0 .. n - 1 with op into 64 lanes that start at `start`, then the lanes as a tree.
// The lanes are an array and not an omp simd reduction: GCC 12 makes scalar code of the latter once
// f is a lambda (10 times slower), and here the order is the same for every vector width.
template <class T, class F, class Op>
inline T fold_row(int64_t n, T start, const F& f, const Op& op) {
  constexpr int kLanes = 64;
  T lanes[kLanes];
  for (int64_t l = 0; l < kLanes; ++l) lanes[l] = start;
  int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes)
    for (int64_t l = 0; l < kLanes; ++l) lanes[l] = op(lanes[l], f(i + l));
  for (int64_t l = 0; l < n - i; ++l) lanes[l] = op(lanes[l], f(i + l));
  return fold_lanes<kLanes / 2>(lanes, op);
}

// f(0) + ... + f(n - 1). A double takes over every 2048 terms, so that no lane adds more than 32.
template <class T, class F>
inline double sum_row(int64_t n, const F& f) {
  constexpr int64_t kRun = 2048;
  double total = 0;
  for (int64_t i = 0; i < n; i += kRun) {
    const auto shifted = [&f, i](int64_t j) { return f(i + j); };
    total += double(fold_row(std::min(kRun, n - i), T(0), shifted, [](T a, T b) { return a + b; }));
  }
  return total;
}

// The largest of x[0 .. n), n > 0; a NaN may be passed over.
template <class T>
inline T max_row(const T* x, int64_t n) {
  return fold_row(
      n, x[0], [x](int64_t i) { return x[i]; }, [](T a, T b) { return b > a ? b : a; });
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
