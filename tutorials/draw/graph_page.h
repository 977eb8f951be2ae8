// The tape of a result as a page to look at: one HTML file, its drawings SVG inside, no script, no
// network; light or dark as the reader's system is.
//
// The first drawing has one box a module, cut at `depth` parts of the name ("h.0" is two), with its
// counts of ops and parameters; below it each module opens to a drawing of its own ops.
#pragma once
#include <string>

#include "tutorials/draw/graph_list.h"

namespace pellucid {

std::string to_html(const Tensor& y, const NamedLeaves& names = {}, int depth = 2,
                    const std::string& title = "The tape");

}  // namespace pellucid
