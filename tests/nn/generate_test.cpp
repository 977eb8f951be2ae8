// Generation: sampling's rules, the window, the cache, streaming.
#include "nn/generate.h"

#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

const double kInf = std::numeric_limits<double>::infinity();

// How often each id comes in n draws.
std::vector<double> shares(const std::vector<double>& logits, double temperature, int64_t top_k,
                           int n) {
  Generator rng{.seed = 5};
  std::vector<double> count(logits.size());
  for (int i = 0; i < n; ++i) ++count[sample_token(logits, temperature, top_k, rng)];
  for (double& c : count) c /= n;
  return count;
}

}  // namespace

TEST_CASE("temperature 0 is the likeliest token, the lowest of equals, and takes no number") {
  Generator rng;
  CHECK(sample_token({1, 2}, 0, 0, rng) == 1);
  CHECK(sample_token({1, 2, 2, 0}, 0, 0, rng) == 1);
  CHECK(sample_token({-kInf, -5}, 0, 1, rng) == 1);
  CHECK(rng.offset == 0);
  CHECK(sample_token({1, 2}, 1e-30, 0, rng) == 1);
}

TEST_CASE("draws follow softmax(logits / temperature) among the top k") {
  const std::vector<double> logits{0, 1, -1, 1};
  const int n = 20000;
  for (const double temperature : {0.5, 1.0, 2.0}) {
    for (const int64_t k : {0, 1, 2, 3, 4, 99}) {
      // Rank by logit, then by id: 1, 3, 0, 2.
      std::vector<double> p(4);
      double total = 0;
      const int order[] = {1, 3, 0, 2};
      const int64_t kept = k == 0 || k > 4 ? 4 : k;
      for (int i = 0; i < kept; ++i)
        total += p[order[i]] = std::exp(logits[order[i]] / temperature);
      const auto found = shares(logits, temperature, k, n);
      for (int i = 0; i < 4; ++i) {
        const double wanted = p[i] / total;
        CHECK(std::abs(found[i] - wanted) <= 5 * std::sqrt(wanted * (1 - wanted) / n));
      }
    }
  }
  CHECK(shares({-kInf, 3, -kInf}, 1, 0, 100) == shares({0, 1, 0}, 0, 0, 100));
}

TEST_CASE("what sampling refuses") {
  Generator rng;
  CHECK_THROWS_WITH(sample_token({1}, -1, 0, rng), "sample: temperature must be 0 or more; got -1");
  CHECK_THROWS_WITH(sample_token({1}, NAN, 0, rng),
                    "sample: temperature must be 0 or more; got nan");
  CHECK_THROWS_WITH(sample_token({1}, 1, -2, rng), "sample: top_k must be 0 (all) or more; got -2");
  CHECK_THROWS_WITH(sample_token({-kInf, -kInf}, 1, 0, rng),
                    "sample: no token has non-zero probability");
  CHECK_THROWS_WITH(sample_token({}, 0, 0, rng), "sample: no token has non-zero probability");
  CHECK_THROWS_WITH(sample_token({1, NAN}, 0, 0, rng),
                    "sample: logits must be below infinity; got nan");
  CHECK_THROWS_WITH(sample_token({1, kInf}, 1, 0, rng),
                    "sample: logits must be below infinity; got inf");
}

TEST_CASE("the cache changes nothing in the text, past the context too") {
  for (const auto& [key, config] : tiny_configs()) {
    CAPTURE(key);
    GPT model = tiny_gpt(config);
    for (const int64_t length : {1, 3, 5, 6, 7, 13}) {  // block_size is 6
      std::vector<int64_t> prompt;
      for (int64_t i = 0; i < length; ++i) prompt.push_back((3 * i + length) % 7);
      for (const double temperature : {0.0, 1.0}) {
        GenerateOptions options{.max_new_tokens = 12, .temperature = temperature};
        Generator a{.seed = 2}, b = a;
        const auto text = generate(model, prompt, options, a);
        options.use_cache = false;
        CHECK(generate(model, prompt, options, b) == text);
        CHECK(text.size() == 12);
        CHECK(a.offset == b.offset);
      }
    }
  }
}

TEST_CASE("each token is drawn from the model's logits after the last block_size tokens") {
  GPT model = tiny_gpt(tiny_configs()["xsa"]);
  std::vector<int64_t> all{1, 4, 2};
  Generator rng;
  const auto text = generate(model, all, {.max_new_tokens = 9, .temperature = 0}, rng);
  for (const int64_t token : text) {
    const std::size_t from = all.size() > 6 ? all.size() - 6 : 0;
    const std::vector<int64_t> window(all.begin() + static_cast<std::ptrdiff_t>(from), all.end());
    const auto T = static_cast<int64_t>(window.size());
    const auto logits = slice(model.forward(from_vector(window, {1, T})), 1, T - 1, T);
    CHECK(sample_token(logits.to_vector(), 0, 0, rng) == token);
    all.push_back(token);
  }
}

TEST_CASE("the seed decides, streaming sees each token and can stop, the mode comes back") {
  GPTConfig config = tiny_configs()["xsa"];
  config.dropout = 0.5;
  GPT model = tiny_gpt(config);
  const GenerateOptions options{.max_new_tokens = 30};
  Generator a{.seed = 1}, b{.seed = 1}, c{.seed = 2};
  const Generator dropout = model.rng;
  const auto text = generate(model, {0}, options, a);
  CHECK(generate(model, {0}, options, b) == text);
  CHECK(generate(model, {0}, options, c) != text);
  CHECK(model.rng.offset == dropout.offset);  // no dropout
  CHECK(model.training());

  std::vector<int64_t> seen;
  b = {.seed = 1};
  const auto begin = generate(model, {0}, options, b, [&](int64_t token) {
    seen.push_back(token);
    return seen.size() < 4;
  });
  CHECK(seen == begin);
  CHECK(begin == std::vector<int64_t>(text.begin(), text.begin() + 4));

  CHECK_THROWS_WITH(generate(model, {}, options, a),
                    "generate: the prompt is empty; give it one token or more");
  CHECK_THROWS_WITH(generate(model, {0}, {.max_new_tokens = -1}, a),
                    "generate: max_new_tokens must not be negative; got -1");
  CHECK_THROWS(generate(model, {7}, options, a));
  CHECK(model.training());
  model.eval();
  generate(model, {0}, options, a);
  CHECK(!model.training());
  CHECK(generate(model, {0}, {.max_new_tokens = 0}, a).empty());
}
