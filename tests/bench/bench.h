// What the benchmarks share: tensors of random numbers, and speeds as shares of what this machine
// can do at most, measured once a program. More than 100 % of a copy means: it was in the cache.
#pragma once
#include <benchmark/benchmark.h>

#include <vector>

#include "autograd/ops.h"
#include "kernels/machine.h"

namespace pellucid {

inline Tensor random_tensor(const Shape& shape, bool requires_grad = false) {
  std::vector<double> values(std::size_t(shape.numel()));
  uint64_t state = 1;
  for (double& v : values) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    v = double(int64_t(state >> 11)) / double(int64_t{1} << 52) - 1;
  }
  return from_vector(values, shape).set_requires_grad(requires_grad);
}

inline void set_rate(benchmark::State& state, const char* rate, const char* share, double done,
                     double limit) {
  const double all = done * double(state.iterations());
  state.counters[rate] = benchmark::Counter(all / 1e9, benchmark::Counter::kIsRate);
  state.counters[share] = benchmark::Counter(100 * all / limit, benchmark::Counter::kIsRate);
}
// One iteration did so many floating-point operations.
inline void set_flop(benchmark::State& state, double flop) {
  static const double peak = measure_fma_peak();
  set_rate(state, "GFLOP/s", "%_of_FMA_peak", flop, peak);
}
// One iteration must read and write so many bytes.
inline void set_bytes(benchmark::State& state, double bytes) {
  static const double bandwidth = measure_copy_bandwidth();
  set_rate(state, "GB/s", "%_of_copy", bytes, bandwidth);
}

// Times f() without a tape, or the backward of f() alone.
template <class F>
void run_forward(benchmark::State& state, const F& f) {
  NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(f());
}
template <class F>
void run_backward(benchmark::State& state, const F& f, const TensorList& inputs) {
  const Tensor y = f(), dy = random_tensor(y.shape());
  for (auto _ : state) benchmark::DoNotOptimize(grad(y, inputs, dy, {.retain_graph = true}));
}

}  // namespace pellucid
