#include "kernels/silu.h"

#include <cmath>

#include "kernels/math.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

namespace {

constexpr int64_t kGrain = 16384;

// s + x s (1 - s), from e = e^-|x|: 1 - s would lose its digits where s is near 1. Of s and 1 - s
// one is r = 1 / (1 + e), the other e r.
template <class T>
inline T slope(T x) {
  const T z = x > T(1000) ? T(1000) : math::hold_below(x);
  const T e = math::exp(-std::abs(z)), r = T(1) / (T(1) + e);
  return (z > T(0) ? r : e * r) + z * (e * r * r);
}

template <class F>
inline void each(int64_t n, const F& f) {
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
#pragma omp simd
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}

}  // namespace

template <class T>
void silu_forward(T* y, const T* x, int64_t n) {
  each(n, [=](int64_t i) { y[i] = math::silu(x[i]); });
}
INSTANTIATE(silu_forward);

template <class T>
void silu_backward(T* dx, const T* dy, const T* x, int64_t n) {
  each(n, [=](int64_t i) { dx[i] = dy[i] * slope(x[i]); });
}
INSTANTIATE(silu_backward);

template <class T>
void swiglu_backward(T* dgate, T* dup, const T* dy, const T* gate, const T* up, int64_t n) {
  each(n, [=](int64_t i) {
    dgate[i] = dy[i] * up[i] * slope(gate[i]);
    dup[i] = dy[i] * math::silu(gate[i]);
  });
}
INSTANTIATE(swiglu_backward);

}  // namespace pellucid::cpu
