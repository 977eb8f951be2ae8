// Fused causal attention of models S and M, SA and XSA. Operations counted: 2 D for each score and
// 2 D for its value, of the T (T + 1) / 2 pairs that the mask leaves; twice that backward.
#include "bench.h"

using namespace pellucid;

static void causal(benchmark::State& state, AttentionKind kind, bool backward) {
  const int64_t B = state.range(0), T = state.range(1), H = state.range(2), D = state.range(3);
  const Tensor qkv = random_tensor({B, T, 3 * H * D}, backward);
  AttentionOptions options;
  options.kind = kind;
  const auto f = [&] { return attention(qkv, {}, H, H, options); };
  backward ? run_backward(state, f, {qkv}) : run_forward(state, f);
  set_flop(state, (backward ? 4.0 : 2.0) * double(B * H * T * (T + 1) * D));
}

#define ATTENTION(name, kind, backward)           \
  BENCHMARK_CAPTURE(causal, name, kind, backward) \
      ->Args({16, 128, 4, 32})                    \
      ->Args({8, 256, 6, 64})                     \
      ->Args({1, 1024, 12, 64})                   \
      ->ArgNames({"B", "T", "H", "D"})            \
      ->UseRealTime()
ATTENTION(sa_forward, AttentionKind::kSA, false);
ATTENTION(xsa_forward, AttentionKind::kXSA, false);
ATTENTION(sa_backward, AttentionKind::kSA, true);
ATTENTION(xsa_backward, AttentionKind::kXSA, true);
