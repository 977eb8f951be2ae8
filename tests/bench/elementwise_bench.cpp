// Elementwise ops and reductions on the activations of model M, (2048, 1536), and a broadcast.
#include "bench.h"

using namespace pellucid;

static const Shape kShape{2048, 1536};
static const double kBytes = 4.0 * 2048 * 1536;  // of one tensor

static void forward(benchmark::State& state, Tensor (*op)(const Tensor&)) {
  const Tensor x = random_tensor(kShape);
  run_forward(state, [&] { return op(x); });
  set_bytes(state, 2 * kBytes);
}
static void backward(benchmark::State& state, Tensor (*op)(const Tensor&)) {
  const Tensor x = random_tensor(kShape, true);
  run_backward(state, [&] { return op(x); }, {x});
  set_bytes(state, 3 * kBytes);
}
BENCHMARK_CAPTURE(forward, exp, exp)->UseRealTime();
BENCHMARK_CAPTURE(forward, tanh, tanh)->UseRealTime();
BENCHMARK_CAPTURE(forward, erf, erf)->UseRealTime();
BENCHMARK_CAPTURE(forward, relu, relu)->UseRealTime();
BENCHMARK_CAPTURE(backward, relu, relu)->UseRealTime();
BENCHMARK_CAPTURE(forward, sigmoid, sigmoid)->UseRealTime();
BENCHMARK_CAPTURE(forward, softplus, softplus)->UseRealTime();
BENCHMARK_CAPTURE(forward, silu, silu)->UseRealTime();
BENCHMARK_CAPTURE(backward, silu, silu)->UseRealTime();
BENCHMARK_CAPTURE(forward, gelu, gelu)->UseRealTime();
BENCHMARK_CAPTURE(backward, gelu, gelu)->UseRealTime();
BENCHMARK_CAPTURE(forward, gelu_tanh, gelu_tanh)->UseRealTime();
BENCHMARK_CAPTURE(backward, gelu_tanh, gelu_tanh)->UseRealTime();

static void add_same(benchmark::State& state) {
  const Tensor a = random_tensor(kShape), b = random_tensor(kShape);
  run_forward(state, [&] { return a + b; });
  set_bytes(state, 3 * kBytes);
}
static void add_row(benchmark::State& state) {
  const Tensor a = random_tensor(kShape), b = random_tensor({kShape[1]});
  run_forward(state, [&] { return a + b; });
  set_bytes(state, 2 * kBytes);
}
static void copy_transposed(benchmark::State& state) {
  const Tensor x = random_tensor(kShape);
  run_forward(state, [&] { return contiguous(transpose(x, 0, 1)); });
  set_bytes(state, 2 * kBytes);
}
static void sum_rows(benchmark::State& state, int dim) {
  const Tensor x = random_tensor(kShape);
  run_forward(state, [&] { return sum(x, dim); });
  set_bytes(state, kBytes);
}
BENCHMARK(add_same)->UseRealTime();
BENCHMARK(add_row)->UseRealTime();
BENCHMARK(copy_transposed)->UseRealTime();
BENCHMARK_CAPTURE(sum_rows, over_columns, 1)->UseRealTime();
BENCHMARK_CAPTURE(sum_rows, over_rows, 0)->UseRealTime();
