// Fused causal attention of models S and M and of longer rows, SA and XSA. Operations counted: 2 D
// for each of the T (T + 1) / 2 pairs that the mask leaves, in each product: 2 forward, 5 backward
// (the scores are computed again instead of stored), as FlashAttention counts. What a tile computes
// beyond the diagonal does not count.
#include "bench.h"

using namespace pellucid;

static void causal(benchmark::State& state, AttentionKind kind, bool backward) {
  const int64_t B = state.range(0), T = state.range(1), H = state.range(2), D = state.range(3);
  const Tensor qkv = random_tensor({B, T, 3 * H * D}, backward);
  AttentionOptions options;
  options.kind = kind;
  const auto f = [&] { return attention(qkv, {}, H, H, options); };
  backward ? run_backward(state, f, {qkv}) : run_forward(state, f);
  set_flop(state, (backward ? 5.0 : 2.0) * double(B * H * T * (T + 1) * D));
}

#define ATTENTION(name, kind, backward)           \
  BENCHMARK_CAPTURE(causal, name, kind, backward) \
      ->Args({16, 128, 4, 32})                    \
      ->Args({8, 256, 6, 64})                     \
      ->Args({4, 1024, 6, 64})                    \
      ->Args({2, 2048, 6, 64})                    \
      ->ArgNames({"B", "T", "H", "D"})            \
      ->UseRealTime()
ATTENTION(sa_forward, AttentionKind::kSA, false);
ATTENTION(xsa_forward, AttentionKind::kXSA, false);
ATTENTION(sa_backward, AttentionKind::kSA, true);
ATTENTION(xsa_backward, AttentionKind::kXSA, true);
