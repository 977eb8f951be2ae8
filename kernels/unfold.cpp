#include "kernels/unfold.h"

#include <algorithm>
#include <cmath>

#include "kernels/rows.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

// The windows q of [0, count) with q stride + shift inside [0, size).
struct Inside {
  int64_t begin, end;
  Inside(int64_t size, int64_t count, int64_t stride, int64_t shift) {
    begin = std::min(count, shift < 0 ? (stride - 1 - shift) / stride : 0);
    end = std::max(begin, shift < size ? std::min(count, (size - 1 - shift) / stride + 1) : 0);
  }
};

template <class T>
void unfold2d(T* y, const T* x, int64_t N, Windows w) {
  const int64_t L = w.OH * w.OW;
  parallel_for(N * w.C * w.kh * w.kw, row_grain(L), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {  // a row of y: one (n, c, i, j)
      const int64_t j = r % w.kw, i = r / w.kw % w.kh;
      const T* image = x + r / (w.kw * w.kh) * w.H * w.W;
      const int64_t shift = j * w.dw - w.pw;
      const Inside q(w.W, w.OW, w.sw, shift);
      for (int64_t p = 0; p < w.OH; ++p) {
        T* to = y + r * L + p * w.OW;
        const int64_t h = p * w.sh - w.ph + i * w.dh;
        if (h < 0 || h >= w.H || q.begin == q.end) {
          std::fill_n(to, w.OW, T(0));
          continue;
        }
        const T* from = image + h * w.W + (q.begin * w.sw + shift);
        std::fill_n(to, q.begin, T(0));
        if (w.sw == 1)
          std::copy_n(from, q.end - q.begin, to + q.begin);
        else
          for (int64_t k = q.begin; k < q.end; ++k) to[k] = from[(k - q.begin) * w.sw];
        std::fill_n(to + q.end, w.OW - q.end, T(0));
      }
    }
  });
}
INSTANTIATE(unfold2d);

// to[k step] += from[k]
template <class T>
static void add(T* to, int64_t step, const T* from, int64_t n) {
  if (step == 1) {
#pragma omp simd
    for (int64_t k = 0; k < n; ++k) to[k] += from[k];
  } else {
    for (int64_t k = 0; k < n; ++k) to[k * step] += from[k];
  }
}

template <class T>
void fold2d(T* x, const T* y, int64_t N, Windows w) {
  parallel_for(N * w.C * w.H, row_grain(w.W * w.kh * w.kw), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {  // a row of x: one (n, c, h)
      T* to = x + r * w.W;
      std::fill_n(to, w.W, T(0));
      for (int64_t i = 0; i < w.kh; ++i) {
        const int64_t down = r % w.H + w.ph - i * w.dh, p = down / w.sh;
        if (down < 0 || down % w.sh != 0 || p >= w.OH) continue;
        for (int64_t j = 0; j < w.kw; ++j) {
          const int64_t shift = j * w.dw - w.pw;
          const Inside q(w.W, w.OW, w.sw, shift);
          const T* from = y + (((r / w.H * w.kh + i) * w.kw + j) * w.OH + p) * w.OW;
          if (q.begin < q.end)
            add(to + (q.begin * w.sw + shift), w.sw, from + q.begin, q.end - q.begin);
        }
      }
    }
  });
}
INSTANTIATE(fold2d);

// A NaN is larger than every number, and nothing is larger than a NaN.
template <class T>
static bool larger(T a, T b) {
  return a > b || (std::isnan(a) && !std::isnan(b));
}

template <class T>
void max_pool2d_index(int64_t* index, const T* x, int64_t N, Windows w) {
  parallel_for(N * w.C * w.OH, row_grain(w.OW * w.kh * w.kw), [=](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; ++r) {  // a row of index: one (n, c, p)
      const T* image = x + r / w.OH * w.H * w.W;
      const int64_t top = r % w.OH * w.sh - w.ph;
      for (int64_t q = 0; q < w.OW; ++q) {
        const int64_t left = q * w.sw - w.pw;
        int64_t best = -1;
        for (int64_t h = std::max<int64_t>(top, 0); h < std::min(top + w.kh, w.H); ++h)
          for (int64_t v = std::max<int64_t>(left, 0); v < std::min(left + w.kw, w.W); ++v) {
            const int64_t at = h * w.W + v;
            if (best < 0 || larger(image[at], image[best])) best = at;
          }
        index[r * w.OW + q] = best;
      }
    }
  });
}
INSTANTIATE(max_pool2d_index);

}  // namespace pellucid::cpu
