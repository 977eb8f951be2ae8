// What every kernel file shares: one declaration for both devices, and the strided view.
#pragma once
#include <cstdint>

#ifdef __CUDACC__
#define HOST_DEVICE __host__ __device__
#else
#define HOST_DEVICE
#endif

// KERNEL(name, parameters) declares the template cpu::name<T> and its sibling cuda::name<T>.
#define KERNEL(name, ...) \
  namespace cpu {         \
  template <class T>      \
  void name(__VA_ARGS__); \
  }                       \
  namespace cuda {        \
  template <class T>      \
  void name(__VA_ARGS__); \
  }                       \
  static_assert(true)

// Explicit instantiation without writing the signature again.
#define INSTANTIATE(name)                     \
  template decltype(name<float>) name<float>; \
  template decltype(name<double>) name<double>
// For the few kernels that LAUNCH_ANY calls: those that move elements without computing.
#define INSTANTIATE_ANY(name)                     \
  INSTANTIATE(name);                              \
  template decltype(name<int64_t>) name<int64_t>; \
  template decltype(name<bool>) name<bool>

namespace pellucid {

constexpr int kMaxDim = 8;

// The type of a statistic (a norm's rstd, a softmax's log-sum-exp): wide enough for sums of T.
template <class T>
using Acc = T;

// A tensor of any layout as a kernel sees it; s[i] is its element i in row-major order.
template <class T>
struct Strided {
  T* data;
  int64_t numel;
  int64_t sizes[kMaxDim], strides[kMaxDim];
  int dim;
  bool contiguous;

  HOST_DEVICE T& operator[](int64_t i) const {
    if (contiguous) return data[i];
    int64_t offset = 0;
    for (int d = dim - 1; d >= 0; --d) {
      offset += i % sizes[d] * strides[d];
      i /= sizes[d];
    }
    return data[offset];
  }
};

}  // namespace pellucid
