// The models that the lesson trains, on stories from the demo's grammar, letter by letter.
#pragma once
#include "nn/gpt.h"
#include "nn/optim.h"
#include "tutorials/demos/stories.h"

namespace pellucid::lesson {

// n stories as ids: the place of each letter in the grammar's alphabet.
inline std::vector<std::vector<int64_t>> stories_as_ids(int n, uint64_t seed) {
  Generator rng{.seed = seed};
  const std::string alphabet = demos::story_alphabet();
  std::vector<std::vector<int64_t>> all(static_cast<std::size_t>(n));
  for (auto& ids : all)
    for (const char letter : demos::sample_story(rng))
      ids.push_back(static_cast<int64_t>(alphabet.find(letter)));
  return all;
}

// B windows of T letters out of fresh stories, and for each letter the one that follows.
struct Letters {
  Tensor ids, next;  // (B, T)
};
inline Letters draw_letters(int64_t B, int64_t T, uint64_t seed) {
  std::vector<int64_t> all;
  const auto enough = static_cast<std::size_t>(B * (T + 1));
  for (const auto& story : stories_as_ids(static_cast<int>(B * T / 60 + 2), seed))
    all.insert(all.end(), story.begin(), story.end());
  while (all.size() < enough) all.insert(all.end(), all.begin(), all.end());
  all.resize(enough);
  const Tensor windows = from_vector(all, {B, T + 1});
  return {contiguous(slice(windows, 1, 0, T)), contiguous(slice(windows, 1, 1, T + 1))};
}

// A GPT of three layers after so many steps.
inline nn::GPT train_on_stories(const std::string& attention, int steps) {
  nn::GPTConfig config;
  config.vocab_size = static_cast<int64_t>(demos::story_alphabet().size());
  config.block_size = 256, config.n_layer = 3, config.n_head = 4, config.n_embd = 96;
  config.attention = attention;
  nn::GPT model(config, 1);
  nn::AdamW optimizer(nn::decay_matrices(model.named_parameters(), 0.1), {.beta2 = 0.99});
  const nn::Schedule schedule{.peak = 3e-3, .min_lr = 3e-4, .warmup = 20, .total = steps};
  for (int step = 0; step < steps; ++step) {
    const Letters letters = draw_letters(8, 192, static_cast<uint64_t>(step) + 100);
    model.loss(letters.ids, letters.next).backward();
    optimizer.clip_grad_norm(1);
    optimizer.step(nn::learning_rate(schedule, step));
    optimizer.zero_grad();
  }
  return model;
}

// One layer of attention whose projection is an argument, small enough to train many times.
struct Reader : nn::Module {
  using Projection = std::function<Tensor(const Tensor& y, const Tensor& v)>;
  static constexpr int64_t H = 2, D = 16, C = H * D, T = 64;

  explicit Reader(Projection projection) : project(std::move(projection)) {
    nn::init_normal(*this, 0.1, 1);
  }
  void visit(nn::Visitor& v) override {
    v("letters", letters), v("places", places), v("norm", norm), v("qkv", qkv), v("out", out);
    v("hidden", hidden), v("last_norm", last_norm), v("head", head);
  }
  Tensor forward(const Tensor& ids) const {
    const int64_t B = ids.size(0);
    Tensor x = letters.forward(ids) + places.weight;     // (B, T, C)
    const Tensor packed = qkv.forward(norm.forward(x));  // (B, T, 3 H D)
    const Tensor y = attention(packed, {}, H, H, {.kind = AttentionKind::kSA});
    const Tensor v = slice(packed, 2, 2 * C, 3 * C);  // (B, T, H D)
    const Tensor z = project(reshape(y, {B, T, H, D}), reshape(v, {B, T, H, D}));
    x = x + out.forward(reshape(z, {B, T, C}));          // (B, T, C)
    x = x + relu(hidden.forward(last_norm.forward(x)));  // (B, T, C)
    return head.forward(x);                              // (B, T, V)
  }

  int64_t V = static_cast<int64_t>(demos::story_alphabet().size());
  Projection project;
  nn::Embedding letters{V, C}, places{T, C};
  nn::LayerNorm norm{C}, last_norm{C};
  nn::Linear qkv{C, 3 * C}, out{C, C}, hidden{C, C}, head{C, V};
};

// The loss after so many steps, a mean over the last fifty, in nats a letter.
inline double train_reader(const Reader::Projection& projection, int steps) {
  Reader model(projection);
  nn::AdamW optimizer(nn::decay_matrices(model.named_parameters(), 0.0), {.beta2 = 0.99});
  double sum = 0;
  for (int step = 0; step < steps; ++step) {
    const Letters batch = draw_letters(16, Reader::T, static_cast<uint64_t>(step) + 100);
    const Tensor loss = cross_entropy(model.forward(batch.ids), batch.next);
    loss.backward();
    optimizer.clip_grad_norm(1);
    optimizer.step(3e-3);
    optimizer.zero_grad();
    if (step >= steps - 50) sum += loss.item() / 50;
  }
  return sum;
}

}  // namespace pellucid::lesson
