// What a model's attention does with a text: who reads whom, and how much of what a head gives is
// the token's own value. For SA and XSA alike, of y before XSA takes its part along v_i:
//
//   p_ij = e^s_ij / (e^sink + sum_{k <= i} e^s_ik),  s_ij = q_i . k_j / sqrt(D)    (no sink: 0)
//   y_i = sum_{j <= i} p_ij v_j
//   similarity = mean of cos(y_i, v_i)       baseline = mean of cos(y_i, v_r), r != i at random
//   diagonal   = mean of p_ii
//
// The means leave out position 0, which sees only itself: cos and weight are 1 there, whatever was
// learned. The similarity is what arXiv:2603.09078 calls the attention similarity bias.
#pragma once
#include "nn/gpt.h"

namespace pellucid::report {

// One layer's, on one text.
struct AttentionView {
  Tensor p;     // (H, T, T)
  Tensor y, v;  // (H, T, D); heads of a group show the same v
};

// Of qkv (1, T, (H + 2 Hkv) D) as attention reads it; sink (H) or undefined.
AttentionView view_attention(const Tensor& qkv, int64_t H, int64_t Hkv, const Tensor& sink = {});

// Runs the model on ids, 1 .. block_size of them: one view a layer.
std::vector<AttentionView> view_attention(nn::GPT& model, const std::vector<int64_t>& ids);

struct Similarity {
  double similarity = 0, baseline = 0, diagonal = 0;
};
struct LayerSimilarity {
  std::vector<Similarity> heads;
  Similarity mean;  // of the heads
};

// One entry a layer: means over all texts, each of 2 tokens or more. The baseline's positions
// depend on the seed alone.
std::vector<LayerSimilarity> measure_similarity(nn::GPT& model,
                                                const std::vector<std::vector<int64_t>>& texts,
                                                uint64_t seed = 1);

}  // namespace pellucid::report
