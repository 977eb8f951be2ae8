// A recurrent network reads brackets, one character a step, and learns which one must close next:
// it has to remember what is open. Prints how often it is right on text it has not seen.
#include <iostream>

#include "nn/layers.h"
#include "nn/optim.h"

using namespace pellucid;

// Random text of three kinds of brackets, nested up to three deep. ids: "([{" 0 1 2, ")]}" 3 4 5.
Tensor brackets(int64_t B, int64_t T, Generator& rng) {
  std::vector<int64_t> ids;
  for (int64_t b = 0; b < B; ++b) {
    std::vector<int64_t> open;
    for (int64_t t = 0; t < T; ++t) {
      const bool opens = open.empty() || (open.size() < 3 && rng.below(2) == 0);
      if (opens) open.push_back(rng.below(3));
      ids.push_back(opens ? open.back() : open.back() + 3);
      if (!opens) open.pop_back();
    }
  }
  return from_vector(ids, {B, T});
}

struct RNN : nn::Module {
  nn::Embedding wte{6, 64};
  nn::Linear recurrent{64, 64}, head{64, 6};
  void visit(nn::Visitor& v) override { v("wte", wte), v("recurrent", recurrent), v("head", head); }
  Tensor forward(const Tensor& ids) const {  // (B, T) -> (B, T, 6)
    const Tensor x = wte.forward(ids);       // (B, T, 64)
    Tensor h = zeros({ids.size(0), 64});     // (B, 64)
    TensorList states;
    for (int64_t t = 0; t < ids.size(1); ++t)
      states.push_back(h = tanh(select(x, 1, t) + recurrent.forward(h)));
    return head.forward(stack(states, 1));
  }
};

int main() {
  constexpr int64_t T = 32;
  Generator rng{.seed = 1};
  RNN model;
  nn::init_normal(model, 0.15, 2);  // standard deviation, seed
  nn::AdamW optimizer(nn::decay_matrices(model.named_parameters(), 0.01));
  for (int step = 0; step < 600; ++step) {
    const Tensor text = brackets(32, T + 1, rng);
    cross_entropy(model.forward(slice(text, 1, 0, T)), slice(text, 1, 1, T + 1)).backward();
    optimizer.clip_grad_norm(1);
    optimizer.step(0.004);
    optimizer.zero_grad();
  }
  // Of the three that close, is the likeliest the right one, wherever one closes?
  const NoGradGuard no_grad;
  const Tensor text = brackets(100, T + 1, rng), next = slice(text, 1, 1, T + 1);  // (100, T)
  const Tensor logits = slice(model.forward(slice(text, 1, 0, T)), 2, 3, 6);       // (100, T, 3)
  const Tensor closes = astype(greater(next, scalar(2, kInt64)), kFloat64);        // (100, T)
  const Tensor guess = astype(argmax(logits, -1), kFloat64) + 3;                   // (100, T)
  const Tensor right = astype(equal(guess, astype(next, kFloat64)), kFloat64) * closes;
  std::cout << "right closing brackets: " << sum(right).item() / sum(closes).item() << "\n";
}
