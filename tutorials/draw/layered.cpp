#include "tutorials/draw/layered.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <sstream>

#include "tutorials/draw/text.h"

namespace pellucid {
namespace {

constexpr double kCharacter = 7.25, kSmall = 6.7;               // widths of 12 and 11 px monospace
constexpr double kLine = 17, kGap = 22, kRow = 44, kEdge = 16;  // px

struct Item {  // a box, or a bend of an arrow
  std::size_t row = 0;
  double w = 0, centre = 0;
  std::vector<std::size_t> up = {}, down = {};
};
using Row = std::vector<std::size_t>;

struct Layout {
  std::size_t boxes = 0;
  std::vector<Item> items = {};  // the boxes first, then bends
  std::vector<Row> rows = {};
  std::vector<std::vector<std::size_t>> paths = {};  // of each arrow: from, bends, to
};

// The main line of the flow stays straight: bends count little, and boxes that read nothing, as
// parameters do, next to nothing.
double weight_of(const Layout& l, std::size_t i) {
  return l.items[i].up.empty() ? 1e-4 : i < l.boxes ? 1 : 0.25;
}
double mean_centre(const Layout& l, const std::vector<std::size_t>& of, double otherwise) {
  double total = 0, weights = 0;
  for (const std::size_t i : of)
    total += weight_of(l, i) * l.items[i].centre, weights += weight_of(l, i);
  return of.empty() ? otherwise : total / weights;
}

// The width that a text beside a line from the centre needs, on both sides alike.
double width_beside(const std::string& text) {
  return 2 * (6 + static_cast<double>(text.size()) * kSmall);
}

// The row of each box: below all that it reads; what reads nothing stands just above its reader.
void assign_rows(Layout& l, std::size_t boxes, const std::vector<Arrow>& arrows) {
  std::vector<bool> reads(boxes), read(boxes);
  std::vector<std::vector<std::size_t>> inputs(boxes);
  for (const Arrow& a : arrows)
    if (a.from < a.to) inputs[a.to].push_back(a.from), reads[a.to] = true;
  for (std::size_t i = 0; i < boxes; ++i)
    for (const std::size_t from : inputs[i])
      l.items[i].row = std::max(l.items[i].row, l.items[from].row + 1);
  std::vector<std::size_t> first(boxes, SIZE_MAX);
  for (const Arrow& a : arrows)
    if (a.from < a.to) first[a.from] = std::min(first[a.from], l.items[a.to].row);
  for (std::size_t i = 0; i < boxes; ++i)
    if (!reads[i] && first[i] != SIZE_MAX) l.items[i].row = first[i] - 1;
}

void add_bends(Layout& l, const std::vector<Arrow>& arrows) {
  for (const Arrow& a : arrows) {
    std::vector<std::size_t> path{a.from};
    if (a.from < a.to) {
      for (std::size_t row = l.items[a.from].row + 1; row < l.items[a.to].row; ++row) {
        path.push_back(l.items.size());
        const bool first = row == l.items[a.from].row + 1;
        l.items.push_back({.row = row, .w = first ? width_beside(a.label) : 8});
      }
    }
    path.push_back(a.to);
    for (std::size_t k = 1; k < path.size() && a.from < a.to; ++k) {
      l.items[path[k]].up.push_back(path[k - 1]);
      l.items[path[k - 1]].down.push_back(path[k]);
    }
    l.paths.push_back(path);
  }
  for (std::size_t i = 0; i < l.items.size(); ++i) {
    if (l.rows.size() <= l.items[i].row) l.rows.resize(l.items[i].row + 1);
    l.rows[l.items[i].row].push_back(i);
  }
}

// ---- The order in each row. While it is sought, `centre` is the place in the row.

void number(Layout& l, const Row& row) {
  for (std::size_t k = 0; k < row.size(); ++k) l.items[row[k]].centre = static_cast<double>(k);
}

int crossings(const Layout& l) {
  int count = 0;
  for (const Row& row : l.rows) {
    std::vector<std::pair<double, double>> edges;
    for (const std::size_t i : row)
      for (const std::size_t to : l.items[i].down)
        edges.emplace_back(l.items[i].centre, l.items[to].centre);
    for (std::size_t a = 0; a < edges.size(); ++a)
      for (std::size_t b = 0; b < a; ++b)
        count += (edges[a].first - edges[b].first) * (edges[a].second - edges[b].second) < 0;
  }
  return count;
}

void order(Layout& l) {
  for (const Row& row : l.rows) number(l, row);
  std::vector<Row> best = l.rows;
  int fewest = crossings(l);
  for (int sweep = 0; sweep < 24 && fewest > 0; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (std::size_t k = 0; k < l.rows.size(); ++k) {
      Row& row = l.rows[down ? k : l.rows.size() - 1 - k];
      std::vector<std::pair<double, std::size_t>> keys;
      for (const std::size_t i : row)
        keys.emplace_back(mean_centre(l, down ? l.items[i].up : l.items[i].down, l.items[i].centre),
                          i);
      std::stable_sort(keys.begin(), keys.end(),
                       [](const auto& a, const auto& b) { return a.first < b.first; });
      for (std::size_t n = 0; n < keys.size(); ++n) row[n] = keys[n].second;
      number(l, row);
    }
    const int now = crossings(l);
    if (now < fewest) fewest = now, best = l.rows;
  }
  l.rows = best;
}

// ---- The place in each row.

// The places nearest to the wishes, in weighted squares, that keep order and distances. Less the
// distances, that is a fit by numbers that do not fall: where they would, neighbours are pooled.
void settle(Layout& l, const Row& row, const std::vector<double>& wish) {
  struct Pool {
    double total, weight;
    std::size_t first;
  };
  std::vector<Pool> pools;
  std::vector<double> least{0};  // the distance from the first item on
  for (std::size_t k = 0; k < row.size(); ++k) {
    if (k > 0)
      least.push_back(least.back() + (l.items[row[k - 1]].w + l.items[row[k]].w) / 2 + kGap);
    const double weight = weight_of(l, row[k]);
    Pool now{weight * (wish[k] - least[k]), weight, k};
    while (!pools.empty() && pools.back().total / pools.back().weight > now.total / now.weight) {
      now = {now.total + pools.back().total, now.weight + pools.back().weight, pools.back().first};
      pools.pop_back();
    }
    pools.push_back(now);
  }
  for (std::size_t p = 0; p < pools.size(); ++p)
    for (std::size_t k = pools[p].first;
         k < (p + 1 < pools.size() ? pools[p + 1].first : row.size()); ++k)
      l.items[row[k]].centre = pools[p].total / pools[p].weight + least[k];
}

void place(Layout& l) {
  for (const Row& row : l.rows) settle(l, row, std::vector<double>(row.size(), 0));
  for (int sweep = 0; sweep < 40; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (std::size_t k = 0; k < l.rows.size(); ++k) {
      const Row& row = l.rows[down ? k : l.rows.size() - 1 - k];
      std::vector<double> wish;
      for (const std::size_t i : row) {
        const Item& item = l.items[i];
        const auto &first = down ? item.up : item.down, &second = down ? item.down : item.up;
        wish.push_back(mean_centre(l, first, mean_centre(l, second, item.centre)));
      }
      settle(l, row, wish);
    }
  }
}

Layout laid_out(std::vector<Box>& boxes, const std::vector<Arrow>& arrows) {
  Layout l{.boxes = boxes.size()};
  for (Box& box : boxes) {
    const auto longest = static_cast<double>(std::max(box.title.size(), box.note.size()));
    box.w = std::max(44.0, longest * kCharacter + 18);
    box.h = (box.note.empty() ? 1 : 2) * kLine + 8;
    l.items.push_back({.w = std::max(box.w, width_beside(box.below))});
  }
  assign_rows(l, boxes.size(), arrows);
  add_bends(l, arrows);
  order(l);
  place(l);
  return l;
}

// ---- The text.

struct Point {
  double x, y;
};

// Smooth from point to point, upright at each.
std::string curve(const std::vector<Point>& points) {
  std::ostringstream d;
  d << "M" << points[0].x << " " << points[0].y;
  for (std::size_t k = 1; k < points.size(); ++k) {
    const Point a = points[k - 1], b = points[k];
    const double half = (b.y - a.y) / 2;
    d << " C" << a.x << " " << a.y + half << " " << b.x << " " << b.y - half << " " << b.x << " "
      << b.y;
  }
  return d.str();
}

void draw_box(std::ostream& out, const Box& box) {
  if (!box.target.empty()) out << "<a href='" << escaped(box.target) << "'>";
  out << "<g class='" << box.kind << "'><rect x='" << box.x << "' y='" << box.y << "' width='"
      << box.w << "' height='" << box.h << "' rx='" << (box.kind == "leaf" ? box.h / 2 : 4)
      << "'/><text x='" << box.x + box.w / 2 << "' y='" << box.y + kLine << "'>"
      << escaped(box.title) << "</text>";
  if (!box.note.empty())
    out << "<text class='note' x='" << box.x + box.w / 2 << "' y='" << box.y + 2 * kLine << "'>"
        << escaped(box.note) << "</text>";
  out << "</g>" << (box.target.empty() ? "" : "</a>") << "\n";
}

// Beside a line that leaves `from` downwards.
void draw_shape(std::ostream& out, Point from, const std::string& shape) {
  if (!shape.empty())
    out << "<text class='shape' x='" << from.x + 5 << "' y='" << from.y + 13 << "'>"
        << escaped(shape) << "</text>\n";
}

}  // namespace

std::string to_svg(std::vector<Box> boxes, const std::vector<Arrow>& arrows) {
  const Layout l = laid_out(boxes, arrows);

  // From places to coordinates.
  double left = HUGE_VAL, right = -HUGE_VAL, y = kEdge;
  for (const Item& item : l.items) {
    left = std::min(left, item.centre - item.w / 2);
    right = std::max(right, item.centre + item.w / 2);
  }
  const auto centre = [&](std::size_t i) { return l.items[i].centre - left + kEdge; };
  std::vector<double> top, bottom;
  for (const Row& row : l.rows) {
    double height = 0;
    for (const std::size_t i : row)
      if (i < boxes.size()) height = std::max(height, boxes[i].h);
    for (const std::size_t i : row)
      if (i < boxes.size())
        boxes[i].x = centre(i) - boxes[i].w / 2, boxes[i].y = y + (height - boxes[i].h) / 2;
    top.push_back(y), bottom.push_back(y + height);
    y += height + kRow;
  }

  // Arrows, each to a point of its own on the box that reads, from left to right as they come.
  std::ostringstream out, labels;
  const double width = right - left + 2 * kEdge, height = y - kRow + kEdge + kLine;
  out << "<svg xmlns='http://www.w3.org/2000/svg' width='" << width << "' height='" << height
      << "' viewBox='0 0 " << width << " " << height << "'>\n";
  for (std::size_t k = 0; k < arrows.size(); ++k) {
    const auto& path = l.paths[k];
    const Box &from = boxes[arrows[k].from], &to = boxes[arrows[k].to];
    int before = 0, all = 0;
    for (std::size_t other = 0; other < arrows.size(); ++other) {
      if (arrows[other].to != arrows[k].to) continue;
      const auto& way = l.paths[other];
      const double at = centre(way[way.size() - 2]), mine = centre(path[path.size() - 2]);
      ++all, before += at < mine || (at == mine && other < k);
    }
    std::vector<Point> points{{from.x + from.w / 2, from.y + from.h}};
    for (std::size_t n = 1; n + 1 < path.size(); ++n) {
      const std::size_t row = l.items[path[n]].row;
      points.push_back({centre(path[n]), top[row]});
      points.push_back({centre(path[n]), bottom[row]});
    }
    if (points.size() > 1) draw_shape(labels, {points[1].x, points[1].y}, arrows[k].label);
    const Point end{to.x + to.w * (before + 1) / (all + 1), to.y};
    points.push_back({end.x, end.y - 6});
    out << "<path class='edge" << (arrows[k].from < arrows[k].to ? "" : " back") << "' d='"
        << curve(points) << "'/><path class='head' d='M" << end.x - 3.5 << " " << end.y - 7
        << "h7l-3.5 7z'/>\n";
  }
  for (const Box& box : boxes) {
    draw_box(out, box);
    draw_shape(out, {box.x + box.w / 2, box.y + box.h}, box.below);
  }
  out << labels.str() << "</svg>\n";
  return out.str();
}

}  // namespace pellucid
