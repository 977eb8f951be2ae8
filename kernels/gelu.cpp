// Speed beside a memcpy that moves the same bytes, in turns with it, medians of 25 pairs, one
// thread of an AVX-512 CPU whose L3 holds (2048, 384) floats. (2048, 1536): gelu 0.45 and 0.63
// forward and backward, gelu_tanh 0.59 and 0.64.
#include "kernels/gelu.h"

#include <cmath>
#include <type_traits>

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

// Phi(x) and phi(x) from one exponential: Phi(-t) = e^(-t^2/2) G(t), t >= 0. For floats a
// polynomial stands for G on [0, 5], a minimax fit with the error weighed as it comes out of x
// Phi(x): below 2^-26 of it for t < 1, below 2^-25 beyond, where G(5) serves from 5 on. erf and exp
// apart take 1.4 times as long.
template <class T>
struct Normal {
  T cdf, pdf;
};
template <class T>
inline Normal<T> normal(T x) {
  constexpr T kRoot = T(0.39894228040143268);  // 1 / sqrt(2 pi)
  if constexpr (std::is_same_v<T, double>) {
    return {0.5 * std::erfc(x * -0.70710678118654752), kRoot * math::exp(-0.5 * x * x)};
  } else {
    const T e = math::exp_fast(T(-0.5) * x * x), t = std::abs(x), size = t > T(5) ? T(5) : t;
    T g = size * T(6.544237152e-08) + T(-1.758651820e-06);
    g = g * size + T(2.139177741e-05);
    g = g * size + T(-1.579776290e-04);
    g = g * size + T(8.074914804e-04);
    g = g * size + T(-3.116437234e-03);
    g = g * size + T(9.747147560e-03);
    g = g * size + T(-2.614931390e-02);
    g = g * size + T(6.230789796e-02);
    g = g * size + T(-1.329319328e-01);
    g = g * size + T(2.499937117e-01);
    g = g * size + T(-3.989419937e-01);
    g = g * size + T(5.000000000e-01);
    const T tail = e * g;
    return {x > T(0) ? T(1) - tail : tail, kRoot * e};
  }
}

// s = (1 + tanh(u)) / 2 = 1 / (1 + e^(-2u)) = e^(2u) / (1 + e^(2u)), and s (1 - s), both from
// e^(-2|u|), which cannot overflow; 1 - s would lose its digits where s is near 1.
template <class T>
struct Logistic {
  T s, s_rest;
};
template <class T>
inline Logistic<T> logistic(T x) {
  constexpr T k2Root = T(1.5957691216057308);  // 2 sqrt(2/pi)
  const T e = math::exp_fast(-std::abs(x * (k2Root + T(0.071354816272600248) * (x * x))));
  const T r = T(1) / (T(1) + e);
  return {(x > T(0) ? T(1) : e) * r, e * r * r};
}

template <class T, class F>
inline void each(T* out, int64_t n, const F& f) {
  parallel_for(n, kGrain, [=](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) out[i] = f(i);
  });
}

}  // namespace

template <class T>
void gelu_forward(T* y, const T* x, int64_t n) {
  each(y, n, [=](int64_t i) {
    const T z = hold_below(x[i]);
    return z * normal(z).cdf;
  });
}
INSTANTIATE(gelu_forward);

template <class T>
void gelu_backward(T* dx, const T* dy, const T* x, int64_t n) {
  each(dx, n, [=](int64_t i) {
    const T z = hold(x[i]);
    const Normal<T> at = normal(z);
    return dy[i] * (at.cdf + z * at.pdf);
  });
}
INSTANTIATE(gelu_backward);

template <class T>
void gelu_tanh_forward(T* y, const T* x, int64_t n) {
  each(y, n, [=](int64_t i) {
    const T z = hold_below(x[i]);
    return z * logistic(z).s;
  });
}
INSTANTIATE(gelu_tanh_forward);

template <class T>
void gelu_tanh_backward(T* dx, const T* dy, const T* x, int64_t n) {
  constexpr T k2Root = T(1.5957691216057308);  // 2 sqrt(2/pi)
  each(dx, n, [=](int64_t i) {
    const T z = hold(x[i]);
    const Logistic<T> at = logistic(z);
    const T slope = k2Root * (T(1) + T(3 * 0.044715) * z * z);  // 2 u'
    return dy[i] * (at.s + z * slope * at.s_rest);
  });
}
INSTANTIATE(gelu_tanh_backward);

}  // namespace pellucid::cpu
