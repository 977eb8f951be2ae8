// The nodes of a model have the names of its modules; anomaly mode shows nn's lines on the way.
#include <doctest/doctest.h>

#include <set>

#include "autograd/anomaly.h"
#include "tiny_gpt.h"

using namespace pellucid;
using namespace pellucid::nn;

namespace {

// All nodes that y leads to.
std::vector<const Node*> nodes_of(const Tensor& y) {
  std::vector<const Node*> nodes{gradient_edge(y).get()};
  std::set<const Node*> seen{nodes[0]};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const Edge& edge : nodes[i]->next_edges)
      if (edge && seen.insert(edge.get()).second) nodes.push_back(edge.get());
  return nodes;
}

}  // namespace

TEST_CASE("NameScope joins nested names, ends with its block, and rests without grad mode") {
  const Tensor x = ones({1}).set_requires_grad(true);
  const auto scope = [&] { return *gradient_edge(x * 2.0)->scope; };
  CHECK(scope() == "");
  {
    const NameScope outer("h.0");
    CHECK(scope() == "h.0");
    {
      const NameScope inner("attn");
      CHECK(scope() == "h.0.attn");
      CHECK(gradient_edge(x * 2.0)->scope == gradient_edge(x * 3.0)->scope);  // one text for all
    }
    const NoGradGuard no_grad;
    const NameScope unseen("mlp");
    const GradModeGuard on(true);
    CHECK(scope() == "h.0");
  }
  CHECK(scope() == "");
}

TEST_CASE("a parameter is read in the scope that its name says") {
  for (const auto& [key, config] : tiny_configs()) {
    INFO(key);
    GPTConfig with_dropout = config;
    with_dropout.dropout = 0.1;
    GPT model = tiny_gpt(with_dropout);
    const Tensor ids = zeros({2, 5}, kInt64), y = model.loss(ids, ids);
    std::set<std::pair<std::string, const Node*>> read;  // the scopes that read a leaf
    std::set<std::string> scopes;
    const std::vector<const Node*> nodes = nodes_of(y);
    for (const Node* node : nodes) {
      if (node->next_edges.empty()) continue;
      scopes.insert(*node->scope);
      for (const Edge& edge : node->next_edges) read.emplace(*node->scope, edge.get());
    }
    for (const auto& [name, x] : model.named_parameters()) {
      INFO(name);
      CHECK(read.contains({name.substr(0, name.rfind('.')), gradient_edge(x).get()}));
    }
    for (const char* scope : {"h.0", "h.1.attn", "h.1.attn.dropout", "h.1.mlp", "drop", "lm_head"})
      CHECK(scopes.contains(scope));
  }
}

TEST_CASE("anomaly mode names nn's lines, then the program's") {
  GPT model = tiny_gpt(tiny_configs().at("sa"));
  {
    const NoGradGuard no_grad;
    copy_(model.h[1].mlp.c_fc.weight, full({}, 1e308, kFloat64));
  }
  const AnomalyGuard guard;
  std::string text;
  const int line = __LINE__ + 2;
  try {
    const Tensor logits = model.forward(zeros({1, 3}, kInt64));
    CHECK(logits.defined());
  } catch (const std::invalid_argument& error) {
    text = error.what();
  }
  INFO(text);
  CHECK(text.rfind("linear made ", 0) == 0);
  if (std::system("command -v addr2line >/dev/null 2>&1") != 0) return;
  const std::size_t inside = text.find("/nn/layers.cpp:"), block = text.find("/nn/gpt.cpp:"),
                    program = text.find("scopes_test.cpp:" + std::to_string(line));
  CHECK((inside < block && block < program && program != std::string::npos));
  CHECK(text.find('\n', program) == std::string::npos);  // and nothing after it
}
