// The tape drawn: the list, the text for Graphviz, and the page. PELLUCID_DRAW=FOLDER keeps what
// the last case draws there, to be looked at.
#include "tutorials/draw/graph_page.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <regex>

#include "autograd/ops.h"
#include "nn/gpt.h"
#include "tutorials/draw/layered.h"

using namespace pellucid;
namespace fs = std::filesystem;

namespace {

int count(const std::string& text, const std::string& word) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

nn::GPT small_gpt() {
  nn::GPTConfig config;
  config.vocab_size = 65;
  config.block_size = 32;
  config.n_layer = 2;
  config.n_head = 4;
  config.n_embd = 64;
  config.dropout = 0.1;
  return nn::GPT(config, 1);
}
Tensor loss_of(nn::GPT& model) {
  const Tensor ids = zeros({2, 16}, kInt64);
  return model.loss(ids, ids);
}

// Starts with '<', every element is closed in order, no script and nothing from elsewhere.
bool is_clean(const std::string& html) {
  std::vector<std::string> open;
  const std::regex element("<(/?)([a-z0-9]+)[^>]*?(/?)>");
  for (std::sregex_iterator at(html.begin(), html.end(), element), end; at != end; ++at) {
    const std::string name = (*at)[2];
    if (name == "meta" || (*at)[3] == "/") continue;
    if ((*at)[1] != "/") {
      open.push_back(name);
    } else {
      if (open.empty() || open.back() != name) return false;
      open.pop_back();
    }
  }
  return open.empty() && html.find("<script") == std::string::npos &&
         html.find("src=") == std::string::npos && html.find("url(") == std::string::npos;
}

}  // namespace

TEST_CASE("the page: a module may be called as a number is, or as an op") {
  const Tensor x = ones({2}).set_requires_grad(true), a = x * 1.0;
  const auto boxes = [&](const char* module) {
    Tensor y;
    {
      const NameScope scope(module);
      y = exp(a);
    }
    const std::string html = to_html(y * 3.0);
    return count(html.substr(0, html.find("<details")), "<rect");
  };
  CHECK(boxes("m") == 4);  // x, mul, m, mul
  CHECK(boxes("0") == 4);
  CHECK(boxes("3") == 4);
}

TEST_CASE("the list: each node after its inputs, with shapes, names and scopes") {
  const Tensor w = ones({3, 4}).set_requires_grad(true), free = ones({4}).set_requires_grad(true);
  Tensor y;
  {
    const NameScope scope("a.b");
    y = sum(w * free + ones({4}));
  }
  const std::vector<GraphNode> list = list_graph(y, {{"a.b.w", w}, {"tied", w}});
  REQUIRE(list.size() == 5);
  std::vector<std::string> names, shapes;
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(list[i].scope == "a.b");
    for (const std::size_t from : list[i].inputs) CHECK(from < i);
    names.push_back(list[i].name);
    std::ostringstream shape;
    shape << list[i].shape;
    shapes.push_back(shape.str());
  }
  CHECK(names == std::vector<std::string>{"a.b.w", "leaf", "mul", "add", "sum"});
  CHECK(shapes == std::vector<std::string>{"(3, 4)", "(4)", "(3, 4)", "(3, 4)", "()"});
  CHECK(list[2].inputs == std::vector<std::size_t>{0, 1});
  CHECK(list[3].inputs == std::vector<std::size_t>{2});  // the constant is no node
  CHECK_THROWS_WITH(list_graph(ones({2})),
                    "list_graph: this tensor of shape (2) has no history to draw: nothing it was "
                    "computed from requires a gradient");
}

TEST_CASE("dot text names each node and each edge's shape") {
  const Tensor x = ones({2, 3}).set_requires_grad(true);
  CHECK(to_dot(exp(x) * x, {{"say \"x\"", x}}) ==
        "digraph tape {\n"
        "  node [shape=box];\n"
        "  n0 [label=\"say \\\"x\\\"\", shape=ellipse];\n"
        "  n1 [label=\"exp\"];\n"
        "  n2 [label=\"mul\"];\n"
        "  n0 -> n1 [label=\"(2, 3)\"];\n"
        "  n1 -> n2 [label=\"(2, 3)\"];\n"
        "  n0 -> n2 [label=\"(2, 3)\"];\n"
        "}\n");
}

TEST_CASE("Graphviz takes the text" *
          doctest::skip(std::system("command -v dot >/dev/null 2>&1") != 0) *
          doctest::description("needs graphviz")) {
  nn::GPT model = small_gpt();
  const fs::path file =
      fs::temp_directory_path() / ("pellucid-" + std::to_string(getpid()) + ".dot");
  std::ofstream(file) << to_dot(loss_of(model), model.named_parameters());
  const std::string command = "dot -Tsvg '" + file.string() + "' -o '" + file.string() + ".svg'";
  CHECK(std::system(command.c_str()) == 0);
  std::ifstream in(file.string() + ".svg");
  const std::string svg((std::istreambuf_iterator<char>(in)), {});
  CHECK(count(svg, "class=\"node\"") ==
        static_cast<int>(list_graph(loss_of(model), model.named_parameters()).size()));
  CHECK(svg.find(">h.1.attn.c_attn<") != std::string::npos);
  fs::remove(file);
  fs::remove(file.string() + ".svg");
}

TEST_CASE("the page: one box a module, what stands between them alone, each opens to its ops") {
  nn::GPT model = small_gpt();
  const Tensor loss = loss_of(model);
  const std::string html = to_html(loss, model.named_parameters());
  CHECK(is_clean(html));
  CHECK(html.find("47") != std::string::npos);
  for (const char* module : {"wte", "wpe", "drop", "h.0", "h.1", "ln_f", "lm_head"}) {
    INFO(module);
    CHECK(count(html, "<summary>" + std::string(module) + " ") == 1);
    CHECK(count(html, "<figure id='" + std::string(module) + "'>") == 1);
  }
  // 12 C^2 + 13 C parameters a block.
  CHECK(count(html, "49,984 parameters") == 4);  // in the box and in the summary of h.0 and h.1
  const std::string first = html.substr(0, html.find("</figure>"));
  CHECK(count(first, "class='module'") == 7);
  CHECK(count(first, "class='op'") == 1);  // cross_entropy
  CHECK(count(first, "class='leaf'") == 0);
  CHECK(count(first, "edge back") == 0);
  CHECK(count(first, "class='edge'") == 8);  // eight boxes in a row, and the tied weight

  const std::string deeper = to_html(loss, model.named_parameters(), 3);
  CHECK(deeper.find("<summary>h.0.attn ") != std::string::npos);
  const std::string top = deeper.substr(0, deeper.find("</figure>"));
  CHECK(count(top, "class='op'") == 5);  // two residual sums a block
  CHECK(count(top, "edge back") == 0);
  CHECK_THROWS_WITH(to_html(loss, {}, 0), "to_html: depth must be at least 1; got 0");
}

TEST_CASE("without names everything is drawn, and what a user writes cannot break the page") {
  const Tensor x = ones({2}).set_requires_grad(true);
  const std::string plain = to_html(exp(x) * x);
  CHECK(is_clean(plain));
  CHECK((count(plain, "class='op'") == 2 && count(plain, "class='leaf'") == 1));
  const NameScope scope("<b>&'x'");
  const std::string html = to_html(exp(x), {{"<i>.w", x}}, 2, "<script>");
  CHECK(is_clean(html));
  CHECK(html.find("&lt;b&gt;&amp;&#39;x&#39;") != std::string::npos);
}

TEST_CASE("a module that is entered twice is one box; the arrow that leads back is dashed") {
  const Tensor x = ones({2}).set_requires_grad(true);
  const auto in = [](const char* name, const Tensor& y) {
    const NameScope scope(name);
    return exp(y);
  };
  const std::string html = to_html(in("a", in("b", in("a", x))), {{"x", x}}, 1);
  CHECK(is_clean(html));
  CHECK(count(html.substr(0, html.find("</figure>")), "edge back") == 1);
}

TEST_CASE("no two boxes of a drawing overlap, and every arrow leads down") {
  nn::GPT model = small_gpt();
  const std::string html = to_html(loss_of(model), model.named_parameters(), 3);
  const std::regex rect(
      "<rect x='([-.0-9e]+)' y='([-.0-9e]+)' width='([.0-9e]+)' height='([.0-9]+)'");
  int boxes = 0;
  for (std::size_t at = 0; (at = html.find("<svg", at)) != std::string::npos; ++at) {
    const std::string svg = html.substr(at, html.find("</svg>", at) - at);
    std::vector<std::array<double, 4>> seen;
    for (std::sregex_iterator r(svg.begin(), svg.end(), rect), end; r != end; ++r) {
      const std::array<double, 4> box{std::stod((*r)[1]), std::stod((*r)[2]), std::stod((*r)[3]),
                                      std::stod((*r)[4])};
      for (const auto& other : seen)
        CHECK_FALSE((box[0] < other[0] + other[2] && other[0] < box[0] + box[2] &&
                     box[1] < other[1] + other[3] && other[1] < box[1] + box[3]));
      CHECK((box[0] >= 0 && box[1] >= 0));
      seen.push_back(box);
      ++boxes;
    }
  }
  CHECK(boxes > 60);
  if (const char* folder = std::getenv("PELLUCID_DRAW")) {
    std::ofstream(fs::path(folder) / "gpt.html")
        << to_html(loss_of(model), model.named_parameters(), 2, "A GPT of two layers");
    std::ofstream(fs::path(folder) / "gpt3.html") << html;
    std::ofstream(fs::path(folder) / "gpt.dot") << to_dot(loss_of(model), model.named_parameters());
  }
}
