#include "tutorials/draw/graph_page.h"

#include <algorithm>
#include <map>
#include <set>
#include <sstream>

#include "tutorials/draw/layered.h"
#include "tutorials/draw/text.h"

namespace pellucid {
namespace {

using Nodes = std::vector<GraphNode>;

// The first `depth` parts of a name; fewer if it has no more.
std::string cut(const std::string& scope, int depth) {
  std::size_t at = 0;
  for (int part = 0; part < depth; ++part) {
    at = scope.find('.', at + (part > 0));
    if (at == std::string::npos) return scope;
  }
  return scope.substr(0, at);
}

bool lies_in(const std::string& scope, const std::string& module) {
  return scope == module || scope.starts_with(module + ".");
}

// The module that a node is folded into, or "": what stands between modules, as a residual sum
// does, is drawn on its own.
std::string module_of(const GraphNode& node, const std::set<std::string>& scopes, int depth) {
  const std::string module = cut(node.scope, depth);
  if (module != node.scope) return module;
  const bool holds_others =
      std::any_of(scopes.begin(), scopes.end(), [&](const std::string& scope) {
        return scope != module && lies_in(scope, module) && cut(scope, depth) != module;
      });
  return holds_others ? "" : module;
}

template <class T>
std::string text_of(const T& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

struct Counts {
  int64_t ops = 0, parameters = 0;
  std::string text() const {
    return (ops ? counted(ops, "op") : "") + (ops && parameters ? ", " : "") +
           (parameters ? counted(parameters, "parameter") : "");
  }
};

struct Page {
  Nodes nodes;
  std::vector<std::string> modules = {};      // of each node
  std::map<std::string, Counts> counts = {};  // of each module
  std::vector<std::vector<std::size_t>> readers = {};
};

Page page_of(const Tensor& y, const NamedLeaves& names, int depth) {
  Page page{.nodes = list_graph(y, names)};
  page.readers.resize(page.nodes.size());
  std::set<std::string> scopes;
  for (const GraphNode& node : page.nodes) scopes.insert(node.scope);
  for (std::size_t i = 0; i < page.nodes.size(); ++i) {
    const GraphNode& node = page.nodes[i];
    page.modules.push_back(module_of(node, scopes, depth));
    for (const std::size_t from : node.inputs) page.readers[from].push_back(i);
    if (page.modules[i].empty()) continue;
    Counts& counts = page.counts[page.modules[i]];
    (node.leaf ? counts.parameters : counts.ops) += node.leaf ? node.shape.numel() : 1;
  }
  return page;
}

// ---- The drawings. `place` says which box stands for a node; boxes come in the order of nodes.

struct Drawing {
  std::vector<Box> boxes;
  std::vector<Arrow> arrows;
  std::set<std::pair<std::size_t, std::size_t>> drawn;
  void connect(std::size_t from, std::size_t to, const std::string& shape) {
    if (from == to || !drawn.emplace(from, to).second) return;
    Box& source = boxes[from];
    if (source.kind != "leaf" && source.below.empty()) source.below = shape;
    const bool said = source.kind == "leaf" || source.below == shape;
    arrows.push_back({from, to, said ? "" : shape});
  }
};

Box box_of(const GraphNode& node, const std::string& module) {
  std::string inside = node.leaf ? node.name : node.scope;
  if (!module.empty() && lies_in(inside, module))
    inside = inside.substr(std::min(inside.size(), module.size() + 1));
  const std::string shape = text_of(node.shape);
  if (node.leaf) return {.title = inside, .note = shape, .kind = "leaf"};
  return {.title = node.name, .note = inside, .kind = "op", .below = shape};
}

// One box a module, and one a node outside of modules. What has leaves alone comes first: arrows
// then lead forward, but for a module that is entered twice.
std::string folded(const Page& page) {
  Drawing d;
  std::map<std::pair<std::string, std::size_t>, std::size_t> place_of;  // of a module, or a node
  std::vector<std::size_t> place(page.nodes.size());
  const auto visit = [&](bool sources) {
    for (std::size_t i = 0; i < page.nodes.size(); ++i) {
      const std::string& module = page.modules[i];
      const bool has_ops = !module.empty() && page.counts.at(module).ops > 0;
      if ((page.nodes[i].leaf && !has_ops) != sources) continue;
      const auto [at, first] =
          place_of.emplace(std::pair(module, module.empty() ? i : 0), d.boxes.size());
      if (first)
        d.boxes.push_back(module.empty() ? box_of(page.nodes[i], "")
                                         : Box{.title = module,
                                               .note = page.counts.at(module).text(),
                                               .kind = "module",
                                               .target = "#" + module});
      place[i] = at->second;
    }
  };
  visit(true);
  visit(false);
  for (std::size_t i = 0; i < page.nodes.size(); ++i)
    for (const std::size_t from : page.nodes[i].inputs)
      d.connect(place[from], place[i], text_of(page.nodes[from].shape));
  return to_svg(d.boxes, d.arrows);
}

// One box a node of the module, and one for each neighbour: what it reads, and what reads it.
std::string opened(const Page& page, const std::string& module) {
  Drawing d;
  std::map<std::pair<std::string, bool>, std::size_t> outside;  // an op may be called as a module
  std::map<std::size_t, std::size_t> place;
  const auto neighbour = [&](std::size_t i, const std::string& word) {
    const bool alone = page.modules[i].empty();
    const std::string name = alone ? page.nodes[i].name : page.modules[i];
    const auto [at, first] = outside.emplace(std::pair(word + " " + name, alone), d.boxes.size());
    if (first)
      d.boxes.push_back(
          {.title = at->first.first, .kind = "outside", .target = alone ? "" : "#" + name});
    return at->second;
  };
  const auto is_inside = [&](std::size_t i) { return page.modules[i] == module; };
  for (std::size_t i = 0; i < page.nodes.size(); ++i)
    if (is_inside(i))
      for (const std::size_t from : page.nodes[i].inputs)
        if (!is_inside(from)) place[from] = neighbour(from, "from");
  for (std::size_t i = 0; i < page.nodes.size(); ++i) {
    if (!is_inside(i)) continue;
    place[i] = d.boxes.size();
    d.boxes.push_back(box_of(page.nodes[i], module));
    for (const std::size_t from : page.nodes[i].inputs)
      d.connect(place[from], place[i], text_of(page.nodes[from].shape));
  }
  for (std::size_t i = 0; i < page.nodes.size(); ++i)
    for (const std::size_t to : page.readers[i])
      if (is_inside(i) && !is_inside(to))
        d.connect(place[i], neighbour(to, "to"), text_of(page.nodes[i].shape));
  return to_svg(d.boxes, d.arrows);
}

const char* const kStyle = R"(
:root { color-scheme: light dark; --ink: #1d2430; --paper: #fff; --soft: #5d6778; --line: #8b95a5;
  --op: #eef2f8; --leaf: #fdf3dc; --module: #dcecff; --outside: transparent; }
@media (prefers-color-scheme: dark) { :root { --ink: #e8ecf3; --paper: #14181f; --soft: #a3adbd;
  --line: #6b7585; --op: #252c38; --leaf: #43391f; --module: #1f3a5c; } }
body { margin: 2em; background: var(--paper); color: var(--ink); font: 15px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.4em; } figure { margin: 0 0 1.5em; overflow-x: auto; }
summary { cursor: pointer; padding: .3em 0; } summary small { color: var(--soft); }
svg { display: block; } svg text { font: 12px ui-monospace, monospace; fill: var(--ink);
  text-anchor: middle; }
svg .note { fill: var(--soft); } svg rect { stroke: var(--line); }
.op rect { fill: var(--op); } .leaf rect { fill: var(--leaf); } .module rect { fill: var(--module); }
.outside rect { fill: var(--outside); stroke-dasharray: 4 3; } a text { text-decoration: underline; }
svg .shape { fill: var(--soft); text-anchor: start; font-size: 11px; stroke: var(--paper);
  stroke-width: 4px; paint-order: stroke; }
.edge { fill: none; stroke: var(--line); stroke-width: 1.2; } .back { stroke-dasharray: 4 3; }
.head { fill: var(--line); }
)";

}  // namespace

std::string to_html(const Tensor& y, const NamedLeaves& names, int depth,
                    const std::string& title) {
  CHECK_ARG(depth >= 1, "to_html: depth must be at least 1; got ", depth);
  const Page page = page_of(y, names, depth);
  Counts all;
  for (const GraphNode& node : page.nodes)
    (node.leaf ? all.parameters : all.ops) += node.leaf ? node.shape.numel() : 1;

  std::ostringstream out;
  out << "<!doctype html>\n<html lang='en'>\n<meta charset='utf-8'>\n"
      << "<meta name='viewport' content='width=device-width'>\n<title>" << escaped(title)
      << "</title>\n<style>" << kStyle << "</style>\n<h1>" << escaped(title) << "</h1>\n<p>"
      << all.text()
      << ". Data flow from top to bottom; gradients flow back. A box is a module or an "
      << "op, a rounded one a parameter; beside an arrow stands the shape of what flows.</p>\n"
      << "<figure>" << folded(page) << "</figure>\n";
  std::set<std::string> done;
  for (const bool leaf : {false, true})  // in the order of their first ops, as they are drawn
    for (std::size_t i = 0; i < page.nodes.size(); ++i) {
      const std::string& module = page.modules[i];
      if (page.nodes[i].leaf != leaf || module.empty() || !done.insert(module).second) continue;
      // The anchor lies inside: going to it opens what it lies in.
      out << "<details><summary>" << escaped(module) << " <small>" << page.counts.at(module).text()
          << "</small></summary>\n<figure id='" << escaped(module) << "'>" << opened(page, module)
          << "</figure></details>\n";
    }
  out << "</html>\n";
  return out.str();
}

}  // namespace pellucid
