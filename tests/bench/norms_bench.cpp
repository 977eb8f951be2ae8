// Row ops: layer_norm, rms_norm, softmax, cross_entropy, rows of width C.
#include "bench.h"

using namespace pellucid;

template <class Op>
static void rows(benchmark::State& state, const Op& op, bool backward) {
  const int64_t N = state.range(0), C = state.range(1);
  const Tensor x = random_tensor({N, C}, backward), w = random_tensor({C}, backward),
               b = random_tensor({C}, backward);
  const auto f = [&] { return op(x, w, b); };
  backward ? run_backward(state, f, {x, w, b}) : run_forward(state, f);
  set_bytes(state, (backward ? 3.0 : 2.0) * 4.0 * double(N * C));
}

static void layer_norm_rows(benchmark::State& state, bool backward) {
  const auto op = [](const Tensor& x, const Tensor& w, const Tensor& b) {
    return layer_norm(x, w, b, 1e-5);
  };
  rows(state, op, backward);
}
static void rms_norm_rows(benchmark::State& state, bool backward) {
  const auto op = [](const Tensor& x, const Tensor& w, const Tensor&) {
    return rms_norm(x, w, 1e-5);
  };
  rows(state, op, backward);
}
static void softmax_rows(benchmark::State& state, bool backward) {
  const auto op = [](const Tensor& x, const Tensor&, const Tensor&) { return softmax(x); };
  rows(state, op, backward);
}
static void cross_entropy_rows(benchmark::State& state, bool backward) {
  const Tensor targets = full({state.range(0)}, 1, kInt64);
  const auto op = [&](const Tensor& x, const Tensor&, const Tensor&) {
    return cross_entropy(x, targets);
  };
  rows(state, op, backward);
}

#define ROWS(name)                                                                              \
  BENCHMARK_CAPTURE(name, forward, false)->Args({2048, 128})->Args({2048, 384})->UseRealTime(); \
  BENCHMARK_CAPTURE(name, backward, true)->Args({2048, 128})->Args({2048, 384})->UseRealTime()
ROWS(layer_norm_rows);
ROWS(rms_norm_rows);
ROWS(softmax_rows);
ROWS(cross_entropy_rows);
