#include "kernels/amax.h"

#include <limits>

#include "kernels/rows.h"
#include "kernels/simd.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

// A NaN enters by x != x and stays, since no x is greater than it.
template <class T, int H = kLanes<T> / 2>
static T max_lanes(Vector<T> v) {
  if constexpr (H == 0) {
    return v[0];
  } else {
    const auto other = swap_halves<T, H>(v, std::make_index_sequence<kLanes<T>>());
    return max_lanes<T, H / 2>(((other > v) | (other != other)) ? other : v);
  }
}

template <class T>
static T largest(const T* x, int64_t C) {
  constexpr int W = kLanes<T>;
  Vector<T> tops = Vector<T>() - std::numeric_limits<T>::infinity();
  int64_t c = 0;
  for (; c + W <= C; c += W) {
    const Vector<T> v = load<T>(x + c);
    tops = ((v > tops) | (v != v)) ? v : tops;
  }
  T top = max_lanes<T>(tops);
  for (; c < C; ++c) top = x[c] > top || x[c] != x[c] ? x[c] : top;
  return top;
}

template <class T>
void amax(T* y, const T* x, int64_t N, int64_t C) {
  parallel_for(N, row_grain(C), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) y[n] = largest(x + n * C, C);
  });
}
INSTANTIATE(amax);

template <class T>
void argmax(int64_t* y, const T* x, int64_t N, int64_t C) {
  parallel_for(N, row_grain(C), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* row = x + n * C;
      const T top = largest(row, C);
      int64_t c = 0;
      while (row[c] != top && row[c] == row[c]) ++c;  // a NaN in the row is its top
      y[n] = c;
    }
  });
}
INSTANTIATE(argmax);

}  // namespace pellucid::cpu
