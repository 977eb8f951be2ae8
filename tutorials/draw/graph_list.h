// The tape as a list, and as text for Graphviz.
//
//   std::ofstream("graph.dot") << to_dot(loss, model.named_parameters());    // dot -Tsvg graph.dot
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "autograd/node.h"

namespace pellucid {

using NamedLeaves = std::vector<std::pair<std::string, Tensor>>;

struct GraphNode {
  std::string name;   // the op, or a leaf's name: "linear", "h.0.mlp.c_fc.weight"
  std::string scope;  // "h.0.mlp.c_fc"; of a leaf without a name that of its first reader
  Shape shape;        // of the result
  bool leaf = false;
  std::vector<std::size_t> inputs;  // where in the list; those without a gradient are left out
};

// All nodes that lead to y, each after its inputs. Leaves have the names that `names` gives them,
// the first one of several, else "leaf".
std::vector<GraphNode> list_graph(const Tensor& y, const NamedLeaves& names = {});

// A box an op, grouped by scope, an ellipse a leaf, an arrow an edge with the shape that flows.
std::string to_dot(const Tensor& y, const NamedLeaves& names = {});

}  // namespace pellucid
