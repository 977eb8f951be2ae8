// A layered drawing of a graph: boxes in rows, each below what it reads; as SVG.
//
//   row of a box: the longest path to it; an edge over several rows bends around what lies between
//   order in a row: the mean place of the neighbours (barycentre), swept down and up; the order
//   with the fewest crossings stays
//   place in a row: as near to the neighbours' mean as the order and the widths allow
//
// Sugiyama, Tagawa and Toda 1981.
#pragma once
#include <string>
#include <vector>

namespace pellucid {

struct Box {
  std::string title = {}, note = {};  // two lines of text; note may be empty
  std::string kind = {};              // its CSS class: "op", "leaf", "module", "outside"
  std::string target = {};            // "#h.0": where a click leads; may be empty
  std::string below = {};             // beside the arrows that leave it: the shape that flows
  double x = 0, y = 0, w = 0, h = 0;
};
struct Arrow {
  std::size_t from, to;
  std::string label = {};  // where another shape flows than the box says
};

// Boxes are given in an order in which arrows lead forward; one that leads back is drawn dashed.
std::string to_svg(std::vector<Box> boxes, const std::vector<Arrow>& arrows);

}  // namespace pellucid
