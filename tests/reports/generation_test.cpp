// Known faults of generation and of tokenizers, tested as kinds: every place of the largest logit,
// temperatures and top_k at their ends, prompts around the context's length, all bytes.
#include <chrono>

#include "nn/generate.h"
#include "nn/tiny_gpt.h"
#include "nn/tokenizer.h"
#include "reports.h"

using namespace pellucid;
using namespace pellucid::nn;

TEST_CASE(
    "temperature 0 is the largest logit, the first of equals, at every place; near 0 the same; "
    "below, or none: refused (karpathy/nanoGPT#738, ggml-org/ggml#37, google-deepmind/gemma#562)") {
  for (const std::size_t n : {1, 2, 3, 16, 17, 33, 65})
    for (std::size_t at = 0; at < n; ++at) {
      Values logits(n, -1);
      for (std::size_t i = 0; i < n; i += 3) logits[i] = -kInf;
      logits[at] = 2;
      Generator rng;
      const auto token = int64_t(at);
      for (const int64_t top_k : {0, 1, 2, 1000}) {
        CHECK(sample_token(logits, 0, top_k, rng) == token);
        CHECK(rng.offset == 0);
      }
      for (const double temperature : {1e-30, 1e-300, 5e-324, 1e-3})
        CHECK(sample_token(logits, temperature, 0, rng) == token);
      Values tied = logits;
      for (std::size_t i = at; i < n; ++i) tied[i] = 2;
      CHECK(sample_token(tied, 0, 0, rng) == token);
    }
  Generator rng;
  for (const double bad : {-1.0, -1e-300, kNaN, kInf, -kInf})
    CHECK(error_of([&] {
            sample_token({1, 2}, bad, 0, rng);
          }).rfind("sample: temperature must be 0 or more; got", 0) == 0);
  CHECK(rng.offset == 0);
}

TEST_CASE(
    "top_k: 0 is off, 1 the likeliest, more than there are is all, negative is refused "
    "(huggingface/transformers#23688, vllm#1623)") {
  const Values logits{0.5, 2, -kInf, 2, 1, -1};  // by rank: 1, 3, 4, 0, 5; never 2
  const int64_t rank[] = {1, 3, 4, 0, 5};
  for (const int64_t top_k : {0, 1, 2, 3, 4, 5, 6, 7, 1000000}) {
    Generator rng{.seed = uint64_t(top_k)};
    std::vector<bool> seen(logits.size());
    for (int i = 0; i < 2000; ++i) seen[std::size_t(sample_token(logits, 1, top_k, rng))] = true;
    const int64_t kept = top_k == 0 ? 5 : std::min<int64_t>(top_k, 5);
    for (int64_t i = 0; i < 5; ++i) CHECK(seen[std::size_t(rank[i])] == (i < kept));
    CHECK_FALSE(seen[2]);
  }
  Generator rng;
  for (const int64_t bad : {int64_t{-1}, INT64_MIN})
    CHECK(error_of([&] {
            sample_token(logits, 1, bad, rng);
          }).rfind("sample: top_k must be 0 (all) or more; got", 0) == 0);
}

TEST_CASE(
    "logits without a possible token are an error, at every temperature; one is always found "
    "(howervoo/speechturn#14, facebookresearch/metaseq PR#674)") {
  for (const std::size_t n : {1, 2, 17, 33})
    for (const double temperature : {0.0, 1e-3, 1.0, 1e300})
      for (const int64_t top_k : {0, 1, 5}) {
        Generator rng{.seed = n};
        CHECK(error_of([&] { sample_token(Values(n, -kInf), temperature, top_k, rng); }) ==
              "sample: no token has non-zero probability");
        for (const double bad : {kNaN, kInf})
          for (std::size_t at = 0; at < n; ++at) {
            Values logits(n, -kInf);
            logits[at] = bad;
            CHECK(error_of([&] {
                    sample_token(logits, temperature, top_k, rng);
                  }).rfind("sample: logits must be below infinity; got", 0) == 0);
          }
        for (std::size_t at = 0; at < n; ++at) {
          Values logits(n, -kInf);
          logits[at] = -1e300;
          for (int i = 0; i < 5; ++i)
            CHECK(sample_token(logits, temperature, top_k, rng) == int64_t(at));
        }
      }
}

TEST_CASE(
    "prompts and texts past the context keep its last tokens, cached or not "
    "(karpathy/llama2.c PR#348, ggml-org/llama.cpp#411, microsoft/antares#378)") {
  for (const char* key : {"xsa", "sa, GQA, rope"}) {
    const GPTConfig config = tiny_configs()[key];
    GPT model = tiny_gpt(config);
    const int64_t context = config.block_size;
    for (const int64_t length : {context - 1, context, context + 1, 3 * context})
      for (const int64_t n : {int64_t{1}, int64_t{5}, context, context + 5}) {
        Ids prompt;
        for (int64_t i = 0; i < length; ++i) prompt.push_back((5 * i + 1) % config.vocab_size);
        GenerateOptions options{.max_new_tokens = n, .temperature = 0};
        Generator rng;
        const Ids text = generate(model, prompt, options, rng);
        options.use_cache = false;
        CHECK(std::ssize(text) == n);
        CHECK(generate(model, prompt, options, rng) == text);
        const Ids last(prompt.end() - std::min(length, context), prompt.end());
        CHECK(generate(model, last, options, rng) == text);
        for (const int64_t token : text) CHECK((token >= 0 && token < config.vocab_size));
      }
    CHECK(refused_by("GPT", [&] { model.forward(zeros({1, context + 1}, kInt64)); }));
  }
}

TEST_CASE(
    "one letter a million times takes time in proportion, and no stack (openai/tiktoken#195, "
    "coder/ai-tokenizer#6, openai/tiktoken#15, openai/tiktoken#245, openai/tiktoken#327)") {
  for (const char letter : {'a', '^', '_', ' ', '\0', '\xff'}) {
    const std::string text(1'000'000, letter);
    const auto start = std::chrono::steady_clock::now();
    const CharTokenizer tokenizer(text);
    const Ids ids = tokenizer.encode(text);
    CHECK(tokenizer.decode(ids) == text);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    CHECK(took.count() < 2);
    CHECK(tokenizer.vocab_size() == 1);
    CHECK(ids == Ids(1'000'000, 0));
  }
}

TEST_CASE("training text without anything to learn from is no crash (karpathy/minbpe#114)") {
  CHECK(CharTokenizer("").vocab_size() == 0);
  CHECK(CharTokenizer("").encode("").empty());
  CHECK(CharTokenizer("a").encode("aa") == Ids{0, 0});
  CHECK(CharTokenizer("ab").vocab_size() == 2);
  CHECK_THROWS_AS(CharTokenizer("").encode("a"), std::invalid_argument);
  CHECK_THROWS_AS(CharTokenizer("").decode(0), std::invalid_argument);
}

TEST_CASE(
    "every token is one byte, also those that are no UTF-8, and comes back as it was "
    "(karpathy/minbpe#96, openai/tiktoken#176, karpathy/nanochat PR#693)") {
  std::string all;
  for (int b = 0; b < 256; ++b) all.push_back(char(b));
  const CharTokenizer tokenizer(all);
  for (int64_t id = 0; id < 256; ++id) {
    CHECK(tokenizer.decode(id).size() == 1);
    CHECK(tokenizer.decode(id) == std::string(1, char(id)));
    CHECK(tokenizer.encode(tokenizer.decode(id)) == Ids{id});
  }
  Generator rng{.seed = 1};
  for (int repeat = 0; repeat < 200; ++repeat) {
    std::string text;
    for (int64_t n = rng.below(100); n > 0; --n) text.push_back(char(rng.below(256)));
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
  }
}

TEST_CASE(
    "text that looks like a control token is text; ids that are none are refused "
    "(huggingface/tokenizers#52, rasbt/LLMs-from-scratch PR#616)") {
  for (const std::string text :
       {"<|endoftext|>", "<s>", "[PAD]", "a<|endoftext|>b", "<|im_start|>"}) {
    const CharTokenizer tokenizer(text);
    CHECK(tokenizer.encode(text).size() == text.size());
    CHECK(tokenizer.decode(tokenizer.encode(text)) == text);
    for (const int64_t bad : {int64_t{-1}, tokenizer.vocab_size(), int64_t{50256}, INT64_MIN})
      CHECK(refused_by("decode", [&] { tokenizer.decode(Ids{0, bad}); }));
  }
}
