#include "kernels/matmul.h"

#include "kernels/gemm.h"

namespace pellucid::cpu {

template <class T>
void matmul(T* y, Strided<const T> a, Strided<const T> b, const T* bias) {
  const int d = a.dim - 2;
  const int64_t M = a.sizes[d], K = a.sizes[d + 1], N = b.sizes[d + 1];

  // Fold the last leading dimensions into one batch, as far as one stride in a and one in b reach
  // all of it. The stride of a size 1 is free.
  int64_t batch = 1, a_batch = 0, b_batch = 0;
  int first = d;  // dimensions [first, d) are the batch
  for (; first > 0; --first) {
    const int64_t size = a.sizes[first - 1];
    const int64_t a_stride = a.strides[first - 1], b_stride = b.strides[first - 1];
    if (size == 1) continue;
    if (batch == 1) {
      a_batch = a_stride, b_batch = b_stride;
    } else if (a_stride != batch * a_batch || b_stride != batch * b_batch) {
      break;
    }
    batch *= size;
  }
  int64_t outer = 1;
  for (int i = 0; i < first; ++i) outer *= a.sizes[i];

  // One call for each place in the other leading dimensions.
  for (int64_t o = 0; o < outer; ++o) {
    const T *from_a = a.data, *from_b = b.data;
    int64_t rest = o;
    for (int i = first - 1; i >= 0; --i) {
      from_a += rest % a.sizes[i] * a.strides[i];
      from_b += rest % a.sizes[i] * b.strides[i];
      rest /= a.sizes[i];
    }
    T* to = y + o * batch * M * N;
    const auto add_bias = [&](int64_t s, int64_t i0, int64_t i1, int64_t j0, int64_t j1) {
      for (int64_t i = i0; i < i1; ++i) {
        T* row = to + (s * M + i) * N;
        for (int64_t j = j0; j < j1; ++j) row[j] += bias[j];
      }
    };
    gemm<T>({to, N, 1, M * N}, {from_a, a.strides[d], a.strides[d + 1], a_batch},
            {from_b, b.strides[d], b.strides[d + 1], b_batch}, M, N, K, batch, false,
            bias ? Epilogue(add_bias) : nullptr);
  }
}
INSTANTIATE(matmul);

}  // namespace pellucid::cpu
