// The three products of y = x w^T in small GPTs, x (tokens, in), w (out, in), by our own kernel and
// by OpenBLAS: y, dx = dy w, dw = dy^T x.
#include "bench.h"
#include "kernels/gemm.h"

using namespace pellucid;

static void products(benchmark::State& state, GemmBackend backend, int pass) {
  const int64_t T = state.range(0), K = state.range(1), N = state.range(2);
  const GemmBackend before = gemm_backend();
  set_gemm_backend(backend);
  std::vector<float> y(std::size_t(T * N), 0.5f), x(std::size_t(T * K), 0.5f),
      w(std::size_t(N * K), 0.5f);
  for (auto _ : state) {
    if (pass == 0) gemm<float>({y.data(), N, 1}, {x.data(), K, 1}, {w.data(), 1, K}, T, N, K);
    if (pass == 1) gemm<float>({x.data(), K, 1}, {y.data(), N, 1}, {w.data(), K, 1}, T, K, N);
    if (pass == 2) gemm<float>({w.data(), K, 1}, {y.data(), 1, N}, {x.data(), K, 1}, N, K, T);
    benchmark::ClobberMemory();
  }
  set_flop(state, 2.0 * double(T * K * N));
  set_gemm_backend(before);
}

int main(int argc, char** argv) {
  const char* const passes[] = {"y", "dx", "dw"};
  for (GemmBackend backend : {GemmBackend::kNative, GemmBackend::kOpenBlas}) {
    const bool native = backend == GemmBackend::kNative;
    if (!native && !openblas_config()) continue;
    for (int pass = 0; pass < 3; ++pass)
      for (const auto& [T, C] : {std::pair<int64_t, int64_t>{2048, 128}, {2048, 384}, {512, 768}})
        benchmark::RegisterBenchmark(
            (std::string(native ? "native/" : "openblas/") + passes[pass]).c_str(), products,
            backend, pass)
            ->Args({T, C, 3 * C})
            ->Args({T, C, C})
            ->Args({T, C, 4 * C})
            ->Args({T, 4 * C, C})
            ->ArgNames({"tokens", "in", "out"})
            ->UseRealTime();
  }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
