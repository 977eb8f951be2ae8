#include "tutorials/draw/graph_list.h"

#include <algorithm>
#include <iomanip>
#include <map>
#include <sstream>
#include <unordered_map>

namespace pellucid {

std::vector<GraphNode> list_graph(const Tensor& y, const NamedLeaves& names) {
  CHECK_ARG(y.requires_grad(), "list_graph: this tensor of shape ", y.shape(),
            " has no history to draw: nothing it was computed from requires a gradient");

  // Everything below y, then in the order of recording.
  const Edge start = gradient_edge(y);
  std::vector<const Node*> nodes{start.get()};
  std::unordered_map<const Node*, std::size_t> place{{nodes[0], 0}};
  for (std::size_t i = 0; i < nodes.size(); ++i)
    for (const Edge& edge : nodes[i]->next_edges)
      if (edge && place.emplace(edge.get(), 0).second) nodes.push_back(edge.get());
  std::sort(nodes.begin(), nodes.end(),
            [](const Node* a, const Node* b) { return a->sequence_nr < b->sequence_nr; });
  for (std::size_t i = 0; i < nodes.size(); ++i) place[nodes[i]] = i;

  std::vector<GraphNode> list(nodes.size());
  list.back().shape = y.shape();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    GraphNode& node = list[i];
    node = {nodes[i]->name, *nodes[i]->scope, node.shape, nodes[i]->next_edges.empty(), {}};
    for (std::size_t k = 0; k < nodes[i]->next_edges.size(); ++k) {
      if (!nodes[i]->next_edges[k]) continue;
      node.inputs.push_back(place[nodes[i]->next_edges[k].get()]);
      GraphNode& input = list[node.inputs.back()];
      input.shape = nodes[i]->input_shapes[k];
      if (input.leaf && input.name == "leaf" && input.scope.empty()) input.scope = node.scope;
    }
    if (!node.leaf) continue;
    const auto named = std::find_if(names.begin(), names.end(), [&](const auto& x) {
      return x.second.impl().get() == nodes[i]->output;
    });
    node.name = named == names.end() ? "leaf" : named->first;
    const std::size_t dot = node.name.rfind('.');
    node.scope = dot == std::string::npos ? "" : node.name.substr(0, dot);
  }
  return list;
}

std::string to_dot(const Tensor& y, const NamedLeaves& names) {
  const std::vector<GraphNode> list = list_graph(y, names);
  std::map<std::string, std::ostringstream> scopes;
  std::ostringstream edges;
  for (std::size_t i = 0; i < list.size(); ++i) {
    const GraphNode& node = list[i];
    scopes[node.scope] << "  n" << i << " [label=" << std::quoted(node.name)
                       << (node.leaf ? ", shape=ellipse" : "") << "];\n";
    for (const std::size_t from : node.inputs) {
      std::ostringstream shape;
      shape << list[from].shape;
      edges << "  n" << from << " -> n" << i << " [label=" << std::quoted(shape.str()) << "];\n";
    }
  }
  std::ostringstream out;
  out << "digraph tape {\n  node [shape=box];\n";
  for (const auto& [scope, text] : scopes)  // Graphviz frames what is named "cluster..."
    if (!scope.empty())
      out << "  subgraph " << std::quoted("cluster " + scope)
          << " {\n  label=" << std::quoted(scope) << ";\n"
          << text.str() << "  }\n";
    else
      out << text.str();
  out << edges.str() << "}\n";
  return out.str();
}

}  // namespace pellucid
