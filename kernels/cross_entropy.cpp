// Speed beside a memcpy that moves the same bytes, in turns with it, medians of 25 pairs, one
// thread of an AVX-512 CPU whose L3 holds (2048, 384) floats. (2048, 96): forward 0.07, backward
// 0.33; (256, 50304): 0.40 and 0.92.
#include "kernels/cross_entropy.h"

#include <cmath>

#include "kernels/math.h"
#include "kernels/row_sums.h"

namespace pellucid::cpu {

template <class T>
void cross_entropy_forward(T* loss, double* row_loss, Acc<T>* lse, const T* x,
                           const int64_t* targets, int64_t N, int64_t V, int64_t ignore_index,
                           double smoothing, double divisor) {
  parallel_for(N, row_grain(V), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      row_loss[n] = 0;
      if (targets[n] == ignore_index) continue;
      const T* xn = x + n * V;
      const T top = max_row(xn, V);
      const double log_sum =
          std::log(sum_row<T>(V, [=](int64_t v) { return math::exp_fast(xn[v] - top); }));
      lse[2 * n] = top, lse[2 * n + 1] = T(log_sum);
      double gap = double(top) - double(xn[targets[n]]);
      if (smoothing > 0) {  // a logit of -inf, which it makes an infinite loss, is else no matter
        const double gaps = sum_row<T>(V, [=](int64_t v) { return top - xn[v]; });
        gap = (1 - smoothing) * gap + smoothing * gaps / double(V);
      }
      row_loss[n] = gap + log_sum;
    }
  });
  if (divisor == 0) {
    for (int64_t n = 0; n < N; ++n) loss[n] = T(row_loss[n]);
    return;
  }
  double total = 0;
  for (int64_t n = 0; n < N; ++n) total += row_loss[n];
  *loss = T(total / divisor);
}
INSTANTIATE(cross_entropy_forward);

template <class T>
void cross_entropy_backward(T* dx, const T* dy, const T* x, const int64_t* targets,
                            const Acc<T>* lse, int64_t N, int64_t V, int64_t ignore_index,
                            double smoothing, double divisor) {
  const T even = T(smoothing / double(V)), hit = T(1 - smoothing);
  parallel_for(N, row_grain(V), [=](int64_t begin, int64_t end) {
    for (int64_t n = begin; n < end; ++n) {
      const T* xn = x + n * V;
      T* dxn = dx + n * V;
      if (targets[n] == ignore_index) {
        std::fill(dxn, dxn + V, T(0));
        continue;
      }
      const T scale = divisor == 0 ? dy[n] : T(double(*dy) / divisor);
      const T top = lse[2 * n], log_sum = lse[2 * n + 1];
      for (int64_t v = 0; v < V; ++v)
        dxn[v] = scale * (math::exp_fast((xn[v] - top) - log_sum) - even);
      dxn[targets[n]] -= scale * hit;
    }
  });
}
INSTANTIATE(cross_entropy_backward);

}  // namespace pellucid::cpu
