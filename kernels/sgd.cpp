#include "kernels/sgd.h"

#include "kernels/thread_pool.h"

namespace pellucid::cpu {

template <class T>
void sgd(T* w, T* m, const T* g, int64_t n, double lr, double momentum, bool nesterov, double decay,
         double scale) {
  const T rate = T(lr), mu = T(momentum), l2 = T(decay), gain = T(scale);
  // What m has of the new step: w - lr (g' + mu m) looks one step ahead.
  const T ahead = nesterov ? mu : T(1), now = nesterov ? T(1) : T(0);
  parallel_for(n, 8192, [=](int64_t begin, int64_t end) {
    if (!m) {
#pragma omp simd
      for (int64_t i = begin; i < end; ++i) w[i] -= rate * (gain * g[i] + l2 * w[i]);
      return;
    }
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) {
      const T gi = gain * g[i] + l2 * w[i];
      m[i] = mu * m[i] + gi;
      w[i] -= rate * (now * gi + ahead * m[i]);
    }
  });
}
INSTANTIATE(sgd);

}  // namespace pellucid::cpu
