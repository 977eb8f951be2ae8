// Modules: names, copies, training mode, states.
#include "nn/module.h"

#include <doctest/doctest.h>

#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

struct TwoLayers : Module {
  Linear first{2, 3}, second{3, 1};
  Dropout drop{0.5};
  Tensor scale = parameter({}, 1, kFloat32), none;
  void visit(Visitor& v) override {
    v("first", first), v("second", second), v("drop", drop), v("scale", scale), v("none", none);
  }
};

std::vector<std::string> names(Module& module) {
  std::vector<std::string> list;
  for (const auto& [key, x] : module.named_parameters()) list.push_back(key);
  return list;
}

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("parameters are listed by name, in order, undefined ones left out") {
  TwoLayers net;
  CHECK(names(net) == std::vector<std::string>{"first.weight", "first.bias", "second.weight",
                                               "second.bias", "scale"});
  CHECK(net.num_parameters() == 6 + 3 + 3 + 1 + 1);
  for (const auto& [key, x] : net.named_parameters()) CHECK(x.requires_grad());
}

TEST_CASE("a copy shares the tensors and outlives the original") {
  auto original = std::make_unique<TwoLayers>();
  init_normal(*original, 1, 3);
  TwoLayers copy = *original;
  NoGradGuard no_grad;
  mul_(original->first.weight, 2);
  const auto values = original->first.weight.to_vector();
  original.reset();
  CHECK(copy.first.weight.to_vector() == values);
  CHECK(copy.named_parameters()[0].second.to_vector() == values);
  CHECK(names(copy).size() == 5);
}

TEST_CASE("a copied GPT computes and trains the same tensors, tied head included") {
  auto original = std::make_unique<GPT>(tiny_gpt(tiny_configs()["xsa"]));
  GPT copy = *original;
  const Tensor ids = random_ids(2, 4, 7, 1);
  CHECK(copy.forward(ids).to_vector() == original->forward(ids).to_vector());
  copy.loss(ids, ids).backward();
  CHECK(original->wte.weight.grad().defined());
  original.reset();
  CHECK(copy.lm_head.weight.impl() == copy.wte.weight.impl());
  copy.zero_grad();
  for (const auto& [key, x] : copy.named_parameters()) CHECK(!x.grad().defined());
}

TEST_CASE("train and eval reach every module, and only the copy they are called on") {
  TwoLayers net, other = net;
  CHECK(net.drop.training());
  net.eval();
  CHECK(!net.training());
  CHECK(!net.drop.training());
  CHECK(!net.first.training());
  CHECK(other.drop.training());
  net.train();
  CHECK(net.drop.training());
}

TEST_CASE("a state comes back, into the same tensors") {
  TwoLayers a, b;
  init_normal(a, 1, 1), init_normal(b, 1, 2);
  const Tensor kept = b.first.weight;
  CHECK(a.first.weight.to_vector() != b.first.weight.to_vector());
  b.load_state_dict(a.state_dict());
  CHECK(kept.to_vector() == a.first.weight.to_vector());
  CHECK(kept.requires_grad());
  b.load_state_dict(b.state_dict());
  CHECK(kept.to_vector() == a.first.weight.to_vector());
}

TEST_CASE("a state that does not fit is refused whole, with every fault named") {
  TwoLayers net;
  init_normal(net, 1, 1);
  StateDict state;
  for (const auto& [key, x] : net.state_dict()) state[key] = full_like(x, x.shape(), 7);
  state.erase("scale");
  state["first.bias"] = full({4}, 7);
  state["second.bias"] = full({1}, 7, kFloat64);
  state["third.weight"] = full({1}, 7);
  const auto before = net.second.weight.to_vector();
  CHECK(message_of([&] { net.load_state_dict(state); }) ==
        "load_state_dict: the state does not fit, nothing was loaded; first.bias: wanted (3) "
        "float32, got (4) float32; missing: scale; second.bias: wanted (1) float32, got (1) "
        "float64; unexpected: third.weight");
  CHECK(net.second.weight.to_vector() == before);
}

TEST_CASE("initial numbers depend on seed and name only") {
  TwoLayers a, b;
  init_normal(a, 1, 5);
  init_normal("second.weight", b.second.weight, 1, 5);  // alone, and first
  CHECK(a.second.weight.to_vector() == b.second.weight.to_vector());
  init_normal("second.weight", b.second.weight, 1, 6);
  CHECK(a.second.weight.to_vector() != b.second.weight.to_vector());
  init_normal("first.weight", b.second.weight, 1, 5);
  CHECK(a.second.weight.to_vector() != b.second.weight.to_vector());
  CHECK(a.first.bias.to_vector() == std::vector<double>(3, 0.0));
  CHECK(stream_of("a") == 0xaf63dc4c8601ec8c);  // FNV-1a's published value
}
