// Sampling a token and the loop around it.
#include "nn/generate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace pellucid::nn {
namespace {

// Eval mode for a scope; the mode before comes back even after an error.
struct EvalGuard {
  explicit EvalGuard(Module& m) : module(m), before(m.training()) { module.eval(); }
  ~EvalGuard() { module.train(before); }
  EvalGuard(const EvalGuard&) = delete;
  EvalGuard& operator=(const EvalGuard&) = delete;
  Module& module;
  bool before;
};

// The logits after the last of tokens, whose first `seen` the caches hold already.
std::vector<double> next_logits(GPT& model, const std::vector<int64_t>& tokens, std::size_t seen,
                                std::vector<KVCache>* caches) {
  const std::vector<int64_t> ids(tokens.begin() + static_cast<std::ptrdiff_t>(seen), tokens.end());
  const auto T = static_cast<int64_t>(ids.size());
  Tensor x = model.hidden(from_vector(ids, {1, T}), caches);        // (1, T, C)
  return model.lm_head.forward(slice(x, 1, T - 1, T)).to_vector();  // (1, 1, V)
}

}  // namespace

int64_t sample_token(const std::vector<double>& logits, double temperature, int64_t top_k,
                     Generator& rng, double top_p) {
  CHECK_ARG(temperature >= 0 && std::isfinite(temperature),
            "sample: temperature must be 0 or more; got ", temperature);
  CHECK_ARG(top_p > 0 && top_p <= 1, "sample: top_p must be above 0 and at most 1; got ", top_p);
  CHECK_ARG(top_k >= 0, "sample: top_k must be 0 (all) or more; got ", top_k);
  double max = -std::numeric_limits<double>::infinity();
  for (double logit : logits) {
    CHECK_ARG(logit < std::numeric_limits<double>::infinity(),  // false for NaN
              "sample: logits must be below infinity; got ", logit);
    max = std::max(max, logit);
  }
  CHECK_ARG(std::isfinite(max), "sample: no token has non-zero probability");
  if (temperature == 0) return std::max_element(logits.begin(), logits.end()) - logits.begin();

  // Keep the top_k likeliest, of equals the lowest ids.
  std::vector<int64_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  if (top_k > 0 && top_k < std::ssize(ids)) {
    std::nth_element(ids.begin(), ids.begin() + top_k, ids.end(), [&](int64_t a, int64_t b) {
      return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
    });
    ids.resize(top_k);
    std::sort(ids.begin(), ids.end());
  }

  // Walk through the weights until the sum passes a uniform share of their total.
  std::vector<double> weights;
  double total = 0, sum = 0;
  for (int64_t id : ids) {
    weights.push_back(std::exp((logits[id] - max) / temperature));
    total += weights.back();
  }
  if (top_p < 1) {
    // The likeliest first, of equals the lowest ids, until they have the share.
    std::vector<std::size_t> order(ids.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return weights[a] > weights[b]; });
    double kept = 0;
    for (const std::size_t i : order) {
      if (kept >= top_p * total) weights[i] = 0;
      kept += weights[i];
    }
    total = kept;
  }
  const double share = rng.uniform() * total;
  int64_t last = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (weights[i] == 0) continue;
    last = ids[i];  // where rounding leaves the sum at the share itself, the last possible one
    if ((sum += weights[i]) > share) break;
  }
  return last;
}

std::vector<int64_t> generate(GPT& model, const std::vector<int64_t>& prompt,
                              const GenerateOptions& options, Generator& rng,
                              const OnToken& on_token) {
  CHECK_ARG(!prompt.empty(), "generate: the prompt is empty; give it one token or more");
  CHECK_ARG(options.max_new_tokens >= 0, "generate: max_new_tokens must not be negative; got ",
            options.max_new_tokens);
  NoGradGuard no_grad;
  EvalGuard eval(model);
  const auto block_size = static_cast<std::size_t>(model.config.block_size);
  std::vector<int64_t> window = prompt, text;
  std::vector<KVCache> caches;
  if (options.use_cache) caches = model.make_caches(1);
  std::size_t seen = 0;

  for (int64_t i = 0; i < options.max_new_tokens; ++i) {
    // Once tokens leave the window, every other one's position moves: the cache is of no more use.
    const bool cached = options.use_cache && window.size() <= block_size;
    if (window.size() > block_size) {
      window.erase(window.begin(), window.end() - static_cast<std::ptrdiff_t>(block_size));
    }
    const auto logits = next_logits(model, window, cached ? seen : 0, cached ? &caches : nullptr);
    seen = window.size();

    const int64_t token =
        sample_token(logits, options.temperature, options.top_k, rng, options.top_p);
    text.push_back(token);
    window.push_back(token);
    if (on_token && !on_token(token)) break;
  }
  return text;
}

}  // namespace pellucid::nn
