// Generation: one token after the other, each drawn from softmax(logits / temperature) over the
// top_k likeliest tokens, or over the fewest that have a share of top_p of the probability.
//
// With the cache, a new token costs one row of the model. Past block_size tokens the context is the
// last block_size of them: every position moves by one, so that keys and values change and each
// token costs a whole window again, as without the cache. Both ways give the same text.
#pragma once
#include "nn/gpt.h"

namespace pellucid::nn {

struct GenerateOptions {
  int64_t max_new_tokens = 100;
  double temperature = 1;  // 0: the likeliest token, the lowest id of equals
  int64_t top_k = 0;       // 0: all; more than the vocabulary: all
  double top_p = 1;        // of these the likeliest that together have this share; 1: all
  bool use_cache = true;
};

// Is called with each new token; returning false ends the text after it.
using OnToken = std::function<bool(int64_t token)>;

// The new tokens. The prompt is any number of tokens from 1 on; of a longer one than block_size the
// last block_size count. The model is in eval mode meanwhile.
std::vector<int64_t> generate(GPT& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options, Generator& rng,
                              const OnToken& on_token = {});

// Draws an id by its logits. Of equal logits at the edge of top_k, the lower ids stay. A NaN, a
// +inf, or nothing but -inf is an error.
int64_t sample_token(const std::vector<double>& logits, double temperature, int64_t top_k,
                     Generator& rng, double top_p = 1);

}  // namespace pellucid::nn
