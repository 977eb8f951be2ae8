// AdamW over modules: reference numbers, groups, clipping, accumulation, state, and a model that
// learns 64 tokens by heart.
#include "nn/optim.h"

#include <doctest/doctest.h>

#include <cmath>
#include <iostream>
#include <limits>

#include "kernels/thread_pool.h"
#include "tensor/allocator.h"
#include "train_steps.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

struct Vector : Module {
  Tensor theta = parameter({3}, 0, kFloat64);
  void visit(Visitor& v) override { v("theta", theta); }
};

void set_grad(const Tensor& x, const std::vector<double>& g) {
  x.grad() = from_vector(g, x.shape(), x.dtype());
}

std::vector<double> all_grads(GPT& model) {
  std::vector<double> all;
  for (const auto& [key, x] : model.named_parameters())
    for (const double g : x.grad().to_vector()) all.push_back(g);
  return all;
}

const double kInf = std::numeric_limits<double>::infinity();

}  // namespace

TEST_CASE("AdamW's reference numbers") {
  struct Row {
    double lr, beta2, decay;
    double theta[3][3];
  };
  const Row rows[] = {{1e-2,
                       0.999,
                       0.1,
                       {{0.989000001000000, -1.988000000500000, 0.499500000000000},
                        {0.978833190219559, -1.976690204701037, 0.495917732836928},
                        {0.975275319097760, -1.976777084690346, 0.493316364286982}}},
                      {1e-2,
                       0.999,
                       0,
                       {{0.990000001000000, -1.990000000500000, 0.500000000000000},
                        {0.980822190220559, -1.980678204701537, 0.496917232836928},
                        {0.978243152288979, -1.982741774895547, 0.494811782019819}}},
                      {1e-4,
                       0.95,
                       0.1,
                       {{0.999890000010000, -1.999880000005000, 0.499995000000000},
                        {0.999789131900050, -1.999766071904158, 0.499959331019772},
                        {0.999753476235489, -1.999766416244832, 0.499933273541219}}}};
  const std::vector<double> g[] = {{.1, -.2, 0}, {.3, -.1, 1e-8}, {-.2, .4, 0}};
  for (const Row& row : rows) {
    Vector net;
    net.load_state_dict({{"theta", from_vector({1, -2, 0.5}, {3}, kFloat64)}});
    AdamWOptions options;
    options.beta2 = row.beta2;
    AdamW optimizer({{net.named_parameters(), row.decay}}, options);
    for (int step = 0; step < 3; ++step) {
      set_grad(net.theta, g[step]);
      optimizer.step(row.lr);
      for (int i = 0; i < 3; ++i)
        CHECK(std::abs(net.theta.to_vector()[i] - row.theta[step][i]) < 1e-15);
    }
    CHECK(optimizer.steps() == 3);
  }
}

TEST_CASE("only matrices decay") {
  GPTConfig config = tiny_configs()["xsa, gate"];
  GPT model(config, 1, kFloat64);
  for (const ParameterGroup& group : decay_matrices(model.named_parameters(), 0.1))
    for (const auto& [key, x] : group.parameters)
      CHECK(group.weight_decay == (x.dim() >= 2 ? 0.1 : 0));
  {
    NoGradGuard no_grad;
    for (const Block& block : model.h) copy_(block.attn.gate, full({2}, 1, kFloat64));
  }
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.5));
  for (const auto& [key, x] : model.named_parameters()) x.grad() = full_like(x, x.shape(), 0);
  std::map<std::string, std::vector<double>> before;
  for (const auto& [key, x] : model.named_parameters()) before[key] = x.to_vector();
  optimizer.step(0.1);  // no gradient moves anything: what changes has decayed, by 1 - 0.1 * 0.5
  for (const auto& [key, x] : model.named_parameters()) {
    CAPTURE(key);
    std::vector<double> wanted = before[key];
    if (x.dim() >= 2)
      for (double& w : wanted) w *= 1 - 0.1 * 0.5;
    CHECK(max_difference(x.to_vector(), wanted) < 1e-17);
  }
}

TEST_CASE("clipping returns the norm and scales the step, not the gradients") {
  Vector a, b;
  AdamWOptions options;
  options.eps = 1;  // then the size of a gradient matters
  AdamW clipped({{a.named_parameters(), 0}}, options), scaled({{b.named_parameters(), 0}}, options);
  set_grad(a.theta, {3, 0, 4});
  CHECK(clipped.clip_grad_norm(10) == 5);
  CHECK(clipped.clip_grad_norm(4) == 5);
  CHECK(clipped.clip_grad_norm(2) == 4);
  CHECK(a.theta.grad().to_vector() == std::vector<double>{3, 0, 4});
  clipped.step(0.1);
  set_grad(b.theta, {3 * 0.4, 0, 4 * 0.4});
  scaled.step(0.1);
  CHECK(max_difference(a.theta.to_vector(), b.theta.to_vector()) < 1e-16);
  // The next step is not scaled any more.
  set_grad(a.theta, {1, 2, 3});
  set_grad(b.theta, {1, 2, 3});
  clipped.step(0.1);
  scaled.step(0.1);
  CHECK(max_difference(a.theta.to_vector(), b.theta.to_vector()) < 1e-16);
  // Accumulation's scale counts in the norm.
  set_grad(a.theta, {3, 0, 4});
  clipped.scale_grads(0.5);
  CHECK(clipped.clip_grad_norm(10) == 2.5);
}

TEST_CASE("a norm that is not finite names the first bad parameter and changes nothing") {
  GPT model = tiny_gpt(tiny_configs()["xsa"]);
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
  const Tensor ids = random_ids(1, 4, 7, 1);
  model.loss(ids, ids).backward();
  const auto before = all_weights(model);
  set_grad(model.ln_f.bias, {0, 0, kInf, 0, 0, 0, 0, 0});
  CHECK_THROWS_AS(optimizer.clip_grad_norm(1), std::runtime_error);
  CHECK_THROWS_WITH(optimizer.clip_grad_norm(1),
                    "clip_grad_norm: the gradient of ln_f.bias is not finite");
  set_grad(model.ln_f.bias, {0, 0, NAN, 0, 0, 0, 0, 0});
  CHECK_THROWS_WITH(optimizer.clip_grad_norm(1),
                    "clip_grad_norm: the gradient of ln_f.bias is not finite");
  CHECK(all_weights(model) == before);
  CHECK(optimizer.steps() == 0);
  for (const double bad : {0.0, -1.0, kInf, double(NAN)})
    CHECK_THROWS(optimizer.clip_grad_norm(bad));
  CHECK_THROWS_WITH(optimizer.clip_grad_norm(0),
                    "clip_grad_norm: max_norm must be positive and finite; got 0");
}

TEST_CASE("a huge norm does not overflow") {
  Vector net;
  AdamW optimizer({{net.named_parameters(), 0}});
  set_grad(net.theta, {3e200, 0, 4e200});
  CHECK(optimizer.clip_grad_norm(1) == doctest::Approx(5e200).epsilon(1e-15));
}

TEST_CASE("a parameter without a gradient is named before anything changes") {
  GPT model = tiny_gpt(tiny_configs()["sa, untied, gelu_tanh"]);
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
  const Tensor ids = random_ids(1, 4, 7, 1);
  sum(model.hidden(ids)).backward();  // does not reach the head
  const auto before = all_weights(model);
  CHECK_THROWS_WITH(optimizer.step(0.1),
                    "AdamW: no gradient has come to lm_head.weight; call backward() first, and "
                    "see that the loss depends on it");
  CHECK_THROWS_WITH(optimizer.clip_grad_norm(1),
                    "clip_grad_norm: no gradient has come to lm_head.weight; call backward() "
                    "first, and see that the loss depends on it");
  CHECK(all_weights(model) == before);
  CHECK(optimizer.steps() == 0);
  // A frozen one needs none.
  model.lm_head.weight.set_requires_grad(false);
  AdamW without(decay_matrices(model.named_parameters(), 0.1));
  without.step(0.1);
  CHECK(model.lm_head.weight.to_vector() !=
        std::vector<double>(static_cast<std::size_t>(model.lm_head.weight.numel()), 0));
  optimizer.zero_grad();
  for (const auto& [key, x] : model.named_parameters()) CHECK(!x.grad().defined());
}

TEST_CASE("what AdamW refuses") {
  Vector net;
  CHECK_THROWS_WITH(AdamW({{net.named_parameters(), -1}}),
                    "AdamW: weight_decay must not be negative; got -1");
  CHECK_THROWS_WITH(AdamW({{net.named_parameters(), 0}, {net.named_parameters(), 0}}),
                    "AdamW: two parameters are named theta");
  AdamWOptions options;
  options.beta2 = 1;
  CHECK_THROWS_WITH(AdamW({{net.named_parameters(), 0}}, options),
                    "AdamW: betas must be in [0, 1); got 0.9, 1");
  AdamW optimizer({{net.named_parameters(), 0}});
  set_grad(net.theta, {1, 2, 3});
  CHECK_THROWS_WITH(optimizer.step(-1), "AdamW: lr must be finite and not negative; got -1");
  CHECK_THROWS(optimizer.step(NAN));
}

TEST_CASE("micro-batches add up to the batch") {
  GPT model = tiny_gpt(tiny_configs()["xsa"]);
  const Tensor ids = random_ids(4, 6, 7, 1), targets = random_ids(4, 6, 7, 2);
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
  model.loss(ids, targets).backward();
  const auto whole = all_grads(model);
  const double norm = optimizer.clip_grad_norm(1e9);
  model.zero_grad();
  for (int64_t i = 0; i < 4; ++i) {
    model.loss(slice(ids, 0, i, i + 1), slice(targets, 0, i, i + 1)).backward();
  }
  auto sum_of_parts = all_grads(model);
  for (double& g : sum_of_parts) g /= 4;
  // Gradients are below 1 in size, each a sum of some hundred float64 terms: 1e-14 is ample, and
  // the last part alone, which `=` in place of `+=` would leave, is far away.
  CHECK(max_difference(whole, sum_of_parts) < 1e-14);
  model.zero_grad();
  model.loss(slice(ids, 0, 3, 4), slice(targets, 0, 3, 4)).backward();
  auto last = all_grads(model);
  for (double& g : last) g /= 4;
  CHECK(max_difference(whole, last) > 1e-3);

  // The optimizer's scale gives the same norm.
  model.zero_grad();
  for (int64_t i = 0; i < 4; ++i)
    model.loss(slice(ids, 0, i, i + 1), slice(targets, 0, i, i + 1)).backward();
  optimizer.scale_grads(0.25);
  CHECK(optimizer.clip_grad_norm(1e9) == doctest::Approx(norm).epsilon(1e-13));
}

TEST_CASE("the state comes back: the run goes on with the same bytes") {
  const GPTConfig config = tiny_configs()["xsa, gate"];
  GPT a(config, 3), b(config, 4);
  AdamW first(decay_matrices(a.named_parameters(), 0.1));
  AdamW second(decay_matrices(b.named_parameters(), 0.1));
  train(a, first, 0, 5);
  const StateDict weights = copy_of(a.state_dict()), moments = copy_of(first.state_dict());
  CHECK(moments.contains("h.0.attn.c_attn.weight.exp_avg"));
  CHECK(moments.contains("ln_f.bias.exp_avg_sq"));
  CHECK(moments.at("step").item() == 5);
  CHECK(moments.size() == 2 * a.named_parameters().size() + 1);
  train(a, first, 5, 10);
  b.load_state_dict(weights);
  second.load_state_dict(moments);
  train(b, second, 5, 10);
  CHECK(all_weights(a) == all_weights(b));
  CHECK(second.steps() == 10);

  StateDict other = moments;
  other.erase("ln_f.bias.exp_avg");
  CHECK_THROWS_WITH(
      second.load_state_dict(other),
      "AdamW: the state does not fit, nothing was loaded; missing: ln_f.bias.exp_avg");
  other = moments;
  other["step"] = scalar(-1, kInt64);
  CHECK_THROWS_WITH(second.load_state_dict(other),
                    "AdamW: the state's step must not be negative; got -1");
  CHECK(second.steps() == 10);
}

TEST_CASE("from its second step on, training takes no memory from the system and keeps none") {
  GPTConfig config = tiny_configs()["xsa, gate"];
  config.dropout = 0.1;
  set_poison(true);  // what is read before it is written becomes NaN
  GPT model(config, 1);
  AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
  const Tensor ids = random_ids(3, 6, 7, 1);
  double norm = 0;
  auto step = [&] {
    model.loss(ids, ids).backward();
    norm = optimizer.clip_grad_norm(1);
    optimizer.step(1e-3);
    optimizer.zero_grad();
  };
  step();
  const MemoryStats first = memory_stats();
  const int64_t nodes = Node::alive;
  for (int i = 0; i < 3; ++i) {
    step();
    CHECK(memory_stats().system_allocations == first.system_allocations);
    CHECK(memory_stats().bytes_in_use == first.bytes_in_use);
    CHECK(Node::alive == nodes);
    CHECK(std::isfinite(norm));
  }
  set_poison(false);
  std::cout << "FIGURE | system allocations in training steps 2 to 4 | "
            << memory_stats().system_allocations - first.system_allocations << std::endl;
}

TEST_CASE("graph_stats goes back to what it was: after backward, after the step, at the end") {
  const GraphStats before = graph_stats();
  const auto alive = [&] {
    const GraphStats now = graph_stats();
    return std::pair(now.nodes - before.nodes, now.saved_bytes - before.saved_bytes);
  };
  const std::pair<int64_t, int64_t> nothing{0, 0};
  const Tensor ids = random_ids(3, 6, 7, 1);
  for (const auto& [key, config] : tiny_configs()) {
    INFO(key);
    GPTConfig with_dropout = config;
    with_dropout.dropout = 0.1;
    {
      GPT model(with_dropout, 1);
      AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
      CHECK(alive() == nothing);
      for (int step = 0; step < 2; ++step) {
        {
          // Each weight that the loss reaches is a node of the graph.
          const Tensor loss = model.loss(ids, ids);
          CHECK(alive().first > int64_t(model.named_parameters().size()));
          CHECK(alive().second > 0);
          // backward lets go of what was saved; the nodes live as long as the loss.
          loss.backward();
          CHECK(alive().second == 0);
        }
        CHECK(alive() == nothing);
        optimizer.clip_grad_norm(1);
        optimizer.step(1e-3);
        CHECK(alive() == nothing);
        optimizer.zero_grad();
        CHECK(alive() == nothing);
      }
      // A graph that backward never walks goes with its loss; so does one that outlives the model.
      { const Tensor loss = model.loss(ids, ids); }
      CHECK(alive() == nothing);
    }
    Tensor loss;
    {
      GPT model(with_dropout, 1);
      loss = model.loss(ids, ids);
    }
    CHECK(alive().second > 0);
    loss = {};
    CHECK(alive() == nothing);
  }
}

TEST_CASE("training gives the same bytes for 1, 2, 3 and 7 threads, dropout on") {
  GPTConfig config;
  config.vocab_size = 65, config.block_size = 67, config.n_layer = 2, config.n_head = 4;
  config.n_kv_head = 2, config.n_embd = 72, config.dropout = 0.1;
  std::vector<double> reference;
  const int before = num_threads();
  for (const int threads : {1, 2, 3, 7}) {
    set_num_threads(threads);
    GPT model(config, 1);
    AdamW optimizer(decay_matrices(model.named_parameters(), 0.1));
    for (uint64_t i = 0; i < 4; ++i) {
      model.loss(random_ids(5, 67, 65, i), random_ids(5, 67, 65, i + 9)).backward();
      optimizer.clip_grad_norm(0.5);
      optimizer.step(1e-2);
      optimizer.zero_grad();
    }
    if (threads == 1) reference = all_weights(model);
    CHECK(all_weights(model) == reference);
  }
  set_num_threads(before);
}

TEST_CASE("SA and XSA learn 64 tokens by heart") {
  for (const char* kind : {"sa", "xsa"}) {
    GPTConfig config;
    config.vocab_size = 16, config.block_size = 64, config.n_layer = 2, config.n_head = 2;
    config.n_embd = 32, config.attention = kind;
    GPT model(config, 1);
    const Tensor text = random_ids(1, 65, 16, 9);
    const Tensor ids = contiguous(slice(text, 1, 0, 64)),
                 targets = contiguous(slice(text, 1, 1, 65));
    AdamW optimizer(decay_matrices(model.named_parameters(), 0));
    const Schedule schedule{.peak = 1e-2, .min_lr = 1e-3, .warmup = 10, .total = 150};
    for (int64_t step = 0; step < schedule.total; ++step) {
      model.loss(ids, targets).backward();
      optimizer.clip_grad_norm(1);
      optimizer.step(learning_rate(schedule, step));
      optimizer.zero_grad();
    }
    const double loss = model.loss(ids, targets).item();
    std::cout << "FIGURE | loss after learning 64 tokens by heart, " << kind << " | " << loss
              << std::endl;
    CHECK(loss < 0.05);
  }
}
