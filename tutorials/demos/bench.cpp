#include "tutorials/demos/bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kernels/gemm.h"
#include "kernels/machine.h"
#include "kernels/simd.h"
#include "kernels/thread_pool.h"
#include "nn/gpt.h"
#include "nn/optim.h"

namespace pellucid::demos {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_of(const std::function<void()>& run) {
  const auto start = Clock::now();
  run();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> x) {
  std::sort(x.begin(), x.end());
  return x[x.size() / 2];
}

// Says what is being measured, on the line that the result will take; on a terminal only.
void announce(const std::string& what) {
  if (!isatty(STDOUT_FILENO)) return;
  std::printf("\r%-64.64s", ("... " + what).c_str());
  std::fflush(stdout);
}
void clear_line() {
  if (isatty(STDOUT_FILENO)) std::printf("\r%-64s\r", "");
}

struct Limits {
  double fma, copy;  // operations and bytes a second
};

Limits measure_limits() {
  announce("measuring the machine");
  const Limits limits{measure_fma_peak(), measure_copy_bandwidth()};
  clear_line();
  std::printf("machine: %d threads, %d float32 lanes\n", num_threads(), kLanes<float>);
  std::printf("  FMA peak, float32      %8.1f GFLOP/s\n", limits.fma / 1e9);
  std::printf("  copy, read and written %8.1f GB/s\n\n", limits.copy / 1e9);
  return limits;
}

// The three products of y = x w^T with x (tokens, in), w (out, in): y, dx = dy w, dw = dy^T x.
struct Linear {
  const char* model;
  int64_t tokens, in, out;
};
enum Pass { kForward, kInputGradient, kWeightGradient, kPasses };

void multiply(const Linear& s, Pass pass, float* y, float* x, float* w) {
  const int64_t T = s.tokens, K = s.in, N = s.out;
  if (pass == kForward) gemm<float>({y, N, 1}, {x, K, 1}, {w, 1, K}, T, N, K);
  if (pass == kInputGradient) gemm<float>({x, K, 1}, {y, N, 1}, {w, K, 1}, T, K, N);
  if (pass == kWeightGradient) gemm<float>({w, K, 1}, {y, 1, N}, {x, K, 1}, N, K, T);
}

// GFLOP/s of a turn of at least `slice` seconds.
double speed(const Linear& s, Pass pass, float* y, float* x, float* w, double slice) {
  const double flop = 2.0 * double(s.tokens * s.in * s.out);
  multiply(s, pass, y, x, w);
  double seconds = 0, done = 0;
  for (; seconds < slice; done += flop) seconds += seconds_of([&] { multiply(s, pass, y, x, w); });
  return done / seconds / 1e9;
}

// OpenBLAS's threads go on spinning for some 30 ms after a product, on our cores.
void let_threads_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(40)); }

void bench_products(const Limits& limits, bool quick) {
  const GemmBackend chosen = gemm_backend();
  std::vector<GemmBackend> backends{GemmBackend::kNative};
  if (openblas_config()) backends.push_back(GemmBackend::kOpenBlas);
  std::printf(
      "matrix products, float32: share of the FMA peak (y = x w^T, dx = dy w, dw = dy^T x)\n");
  if (openblas_config())
    std::printf("  OpenBLAS is %s, running its %s kernels\n", openblas_config(),
                openblas_corename());
  std::printf("  %-6s %6s %5s %5s", "model", "tokens", "in", "out");
  for (GemmBackend b : backends)
    std::printf("   %s y    dx    dw", b == GemmBackend::kNative ? "native  " : "openblas");
  std::printf("\n");

  for (const Linear& s : {Linear{"S", 2048, 128, 384},
                          {"S", 2048, 128, 512},
                          {"S", 2048, 512, 128},
                          {"M", 2048, 384, 1152},
                          {"M", 2048, 384, 384},
                          {"M", 2048, 384, 1536},
                          {"M", 2048, 1536, 384}}) {
    announce(std::string("multiplying for model ") + s.model);
    std::vector<float> y(std::size_t(s.tokens * s.out)), x(std::size_t(s.tokens * s.in), 0.5f),
        w(std::size_t(s.in * s.out), 0.25f);
    // The libraries take turns, so that a disturbance meets them all.
    std::vector<double> turns[2][kPasses];
    for (int round = 0; round < (quick ? 3 : 7); ++round)
      for (std::size_t b = 0; b < backends.size(); ++b) {
        set_gemm_backend(backends[b]);
        let_threads_rest();
        for (int pass = 0; pass < kPasses; ++pass)
          turns[b][pass].push_back(speed(s, Pass(pass), y.data(), x.data(), w.data(), 0.01));
      }
    clear_line();
    std::printf("  %-6s %6ld %5ld %5ld", s.model, long(s.tokens), long(s.in), long(s.out));
    for (std::size_t b = 0; b < backends.size(); ++b) {
      std::printf("     ");
      for (const std::vector<double>& t : turns[b])
        std::printf(" %4.0f %%", 100 * median(t) * 1e9 / limits.fma);
    }
    std::printf("\n");
  }
  set_gemm_backend(chosen);
  let_threads_rest();
  std::printf("\n");
}

// A model, its optimizer and one batch, for whole training steps.
class Training {
 public:
  Training(nn::GPTConfig config, int64_t B, const char* attention)
      : config_(with_attention(config, attention)),
        model_(config_, 1),
        optimizer_(nn::decay_matrices(model_.named_parameters(), 0.1), {.beta2 = 0.99}),
        B_(B) {
    std::vector<double> ids;
    uint64_t state = 1;
    for (int64_t i = 0; i < 2 * tokens(); ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      ids.push_back(double((state >> 33) % uint64_t(config_.vocab_size)));
    }
    const auto middle = ids.begin() + tokens();
    ids_ = from_vector({ids.begin(), middle}, {B_, config_.block_size}, kInt64);
    targets_ = from_vector({middle, ids.end()}, {B_, config_.block_size}, kInt64);
  }

  void step() {
    model_.loss(ids_, targets_).backward();
    optimizer_.clip_grad_norm(1.0);
    optimizer_.step(1e-3);
    optimizer_.zero_grad();
  }
  int64_t tokens() const { return B_ * config_.block_size; }

  // Operations of a step: 6 for each token and each number in a matrix that it is multiplied by (2
  // forward, 4 backward), and 6 L C (T + 1) a token for attention, whose query at position t meets
  // t + 1 keys: 2 D (t + 1) for the scores and as much for the values, and twice that backward.
  // Everything else counts as nothing, attention's second computation of the scores included.
  double flop() {
    double matrices = double(config_.vocab_size * config_.n_embd);  // the head
    for (const auto& [name, x] : model_.named_parameters())
      if (name.starts_with("h.") && x.dim() == 2) matrices += double(x.numel());
    const double T = double(config_.block_size);
    const double attention = double(config_.n_layer * config_.n_embd) * (T + 1);
    return 6 * double(tokens()) * (matrices + attention);
  }

 private:
  static nn::GPTConfig with_attention(nn::GPTConfig config, const char* attention) {
    config.attention = attention;
    return config;
  }

  nn::GPTConfig config_;
  nn::GPT model_;
  nn::AdamW optimizer_;
  int64_t B_;
  Tensor ids_, targets_;
};

void bench_training(const Limits& limits, const char* name, const nn::GPTConfig& config, int64_t B,
                    int steps) {
  Training sa(config, B, "sa"), xsa(config, B, "xsa");
  std::vector<double> sa_seconds, xsa_seconds, ratios;
  for (int i = -2; i < steps; ++i) {  // two to warm up
    announce(std::string("training model ") + name + ", step " + std::to_string(std::max(i, 0)) +
             " of " + std::to_string(steps));
    // Each goes first half of the time.
    double a = 0, b = 0;
    if (i % 2) a = seconds_of([&] { sa.step(); });
    b = seconds_of([&] { xsa.step(); });
    if (i % 2 == 0) a = seconds_of([&] { sa.step(); });
    if (i < 0) continue;
    sa_seconds.push_back(a), xsa_seconds.push_back(b), ratios.push_back(b / a);
  }
  clear_line();
  const auto line = [&](const char* attention, Training& training, double seconds) {
    std::printf("  %-6s %-9s %9.1f %9.0f %11.1f %8.1f %%\n", name, attention, 1e3 * seconds,
                double(training.tokens()) / seconds, training.flop() / seconds / 1e9,
                100 * training.flop() / seconds / limits.fma);
  };
  line("sa", sa, median(sa_seconds));
  line("xsa", xsa, median(xsa_seconds));
  std::printf("  %-6s xsa / sa  %9.3f  (median of %d pairs)\n", name, median(ratios), steps);
}

}  // namespace

int run_bench(bool quick) {
  const Limits limits = measure_limits();
  bench_products(limits, quick);

  std::printf("training, float32, %s matrix product: forward, backward, clipping, AdamW; medians\n",
              gemm_backend_name());
  std::printf("  %-6s %-9s %9s %9s %11s %10s\n", "model", "attention", "ms/step", "tokens/s",
              "GFLOP/s", "of peak");
  const nn::GPTConfig small{
      .vocab_size = 96, .block_size = 128, .n_layer = 4, .n_head = 4, .n_embd = 128};
  const nn::GPTConfig medium{
      .vocab_size = 96, .block_size = 256, .n_layer = 6, .n_head = 6, .n_embd = 384};
  bench_training(limits, "S", small, 16, quick ? 8 : 32);
  bench_training(limits, "M", medium, 8, quick ? 4 : 12);
  std::printf(
      "\nModel S: 4 layers, width 128, 4 heads, T 128, B 16; M: 6, 384, 6, 256, 8; vocabulary 96.\n"
      "Operations counted: 6 a token for each number in a matrix of the model (2 forward, 4\n"
      "backward), and 6 L C (T + 1) a token for causal attention. Nothing else counts.\n");
  return 0;
}

}  // namespace pellucid::demos
