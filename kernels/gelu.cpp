#include "kernels/gelu.h"

#include "kernels/math.h"
#include "kernels/thread_pool.h"

namespace pellucid::cpu {

namespace {

constexpr int64_t kGrain = 16384;

// Beyond 40 Phi(x) is 0 or 1 and x phi(x) is 0 in every dtype; with x held back there, neither
// -inf * 0 nor inf * 0 arises. The comparisons let NaN through.
template <class T>
inline T hold_below(T x) {
  return x < T(-40) ? T(-40) : x;
}
template <class T>
inline T hold(T x) {
  return x > T(40) ? T(40) : hold_below(x);
}

template <class T>
inline T normal_cdf(T x) {
  return T(0.5) + T(0.5) * math::erf(x * T(0.70710678118654752));
}

// s(x) of the tanh form. e^(-2u) overflows to inf for large -x, which gives the right 0.
template <class T>
inline T tanh_cdf(T x) {
  constexpr T kMinus2Root = T(-1.5957691216057308);  // -2 sqrt(2/pi)
  return T(1) / (T(1) + math::exp(kMinus2Root * x * (T(1) + T(0.044715) * x * x)));
}

template <class T, class F>
inline void each(T* out, const T* x, int64_t n, const F& f) {
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(x[i]);
  });
}
template <class T, class F>
inline void each(T* out, const T* dy, const T* x, int64_t n, const F& f) {
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = dy[i] * f(x[i]);
  });
}

}  // namespace

template <class T>
void gelu_forward(T* y, const T* x, int64_t n) {
  each(y, x, n, [](T a) {
    const T z = hold_below(a);
    return z * normal_cdf(z);
  });
}
INSTANTIATE(gelu_forward);

template <class T>
void gelu_backward(T* dx, const T* dy, const T* x, int64_t n) {
  constexpr T kRoot = T(0.39894228040143268);  // 1 / sqrt(2 pi)
  each(dx, dy, x, n, [](T a) {
    const T z = hold(a);
    return normal_cdf(z) + z * (kRoot * math::exp_fast(T(-0.5) * z * z));
  });
}
INSTANTIATE(gelu_backward);

template <class T>
void gelu_tanh_forward(T* y, const T* x, int64_t n) {
  each(y, x, n, [](T a) {
    const T z = hold_below(a);
    return z * tanh_cdf(z);
  });
}
INSTANTIATE(gelu_tanh_forward);

template <class T>
void gelu_tanh_backward(T* dx, const T* dy, const T* x, int64_t n) {
  constexpr T k2Root = T(1.5957691216057308);  // 2 sqrt(2/pi)
  each(dx, dy, x, n, [](T a) {
    const T z = hold(a), s = tanh_cdf(z);
    const T slope = k2Root * (T(1) + T(3 * 0.044715) * z * z);  // 2 u'
    return s + z * slope * (s * (T(1) - s));
  });
}
INSTANTIATE(gelu_tanh_backward);

}  // namespace pellucid::cpu
