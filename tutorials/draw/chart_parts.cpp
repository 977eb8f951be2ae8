#include "tutorials/draw/chart_parts.h"

#include <algorithm>
#include <cmath>

#include "tutorials/draw/text.h"

namespace pellucid {

// Colours that differ in lightness too, at least 4.5 : 1 on their paper, for text as for lines.
std::string chart_style() {
  return R"(:root { color-scheme: light dark; --paper: #fff; --ink: #1b2230; --soft: #566072;
  --line: #c9d0da; --s0: #1558b0; --s1: #b04a00; --s2: #00705f; --s3: #8a3399; --s4: #6b5d00; }
@media (prefers-color-scheme: dark) { :root { --paper: #12161d; --ink: #e7ebf2; --soft: #a2adbe;
  --line: #3a4454; --s0: #79b4ff; --s1: #ffa95c; --s2: #4fd0b8; --s3: #dc9bef; --s4: #d9cb63; } }
.chart { display: block; max-width: 100%; height: auto; }
.chart text { font: 12px system-ui, sans-serif; fill: var(--ink); }
.chart .soft { fill: var(--soft); } .chart .end { text-anchor: end; }
.chart .middle { text-anchor: middle; } .chart .title { font-size: 14px; font-weight: 600; }
.chart .paper { fill: var(--paper); } .chart .on-dark { fill: var(--paper); }
.chart .grid { stroke: var(--line); stroke-width: 1; } .chart .axis { stroke: var(--soft); }
.chart .curve { fill: none; stroke-width: 2; stroke-linejoin: round; }
.chart .faint { stroke-width: 1; opacity: .6; } .chart .level { stroke-width: 1.5; }
.chart .s0 { stroke: var(--s0); } .chart .s1 { stroke: var(--s1); } .chart .s2 { stroke: var(--s2); }
.chart .s3 { stroke: var(--s3); } .chart .s4 { stroke: var(--s4); }
.chart .d0 { stroke-dasharray: 6 4; } .chart .d1 { stroke-dasharray: 2 3; }
.chart .d2 { stroke-dasharray: 10 3 2 3; }
.chart .b0 { fill: var(--s0); } .chart .b1 { fill: var(--s1); } .chart .b2 { fill: var(--s2); }
.chart .b3 { fill: var(--s3); } .chart .b4 { fill: var(--s4); }
.chart circle { fill: var(--paper); stroke-width: 2; }
.chart .plus { fill: var(--s0); } .chart .minus { fill: var(--s1); }
.chart .cells { fill: none; stroke: var(--line); }
)";
}

namespace parts {

double open(std::ostream& out, const std::string& title, const std::string& description,
            double width, double height, SvgUse use, const std::string& attributes) {
  const std::string w = compact(width), h = compact(height);
  out << "<svg xmlns='http://www.w3.org/2000/svg' class='chart' role='img' viewBox='0 0 " << w
      << " " << h << "' width='" << w << "' height='" << h << "'" << attributes << ">\n<title>"
      << escaped(title) << "</title>\n<desc>" << escaped(description) << "</desc>\n";
  if (use == SvgUse::kPage) return 0;
  out << "<style>" << chart_style() << "</style>\n<rect class='paper' width='" << w << "' height='"
      << h << "'/>\n";
  draw_text(out, kEdge, 22, title, "title");
  return 30;
}

void close(std::ostream& out) { out << "</svg>\n"; }

void draw_text(std::ostream& out, double x, double y, const std::string& text,
               const std::string& kind, const std::string& anchor) {
  const std::string classes = kind + (kind.empty() || anchor.empty() ? "" : " ") + anchor;
  out << "<text x='" << compact(x) << "' y='" << compact(y) << "'"
      << (classes.empty() ? "" : " class='" + classes + "'") << ">" << escaped(text) << "</text>\n";
}

void Range::add(double x) {
  if (!drawable(x)) return;
  low = std::min(low, x), high = std::max(high, x);
}

std::vector<double> ticks(Range& range, int count, bool grow, bool whole) {
  if (range.empty()) range = {0, 1};
  // Around a single value, or some too close for double, a range is made.
  const double size = std::max(std::abs(range.low), std::abs(range.high));
  if (range.high - range.low <= 1e-12 * size || size == 0) {
    const double half = size == 0 ? 0.5 : 0.1 * size;
    range = {range.low - half, range.high + half};
  }
  const double rough = (range.high - range.low) / count;
  const double power = std::pow(10, std::floor(std::log10(rough)));
  const double digit = rough / power;
  double step = power * (digit <= 1 ? 1 : digit <= 2 ? 2 : digit <= 5 ? 5 : 10);
  if (whole) step = std::max(step, 1.0);
  const double first = grow ? std::floor(range.low / step + 1e-9) : std::ceil(range.low / step);
  const double last = grow ? std::ceil(range.high / step - 1e-9) : std::floor(range.high / step);
  std::vector<double> at;
  for (double k = first; k <= last && at.size() < 100; ++k) at.push_back(k * step);
  if (grow)
    range.low = std::min(range.low, at.front()), range.high = std::max(range.high, at.back());
  return at;
}

double Frame::at_x(double value) const {
  return left + (value - x.low) / (x.high - x.low) * (right - left);
}
double Frame::at_y(double value) const {
  return bottom - (value - y.low) / (y.high - y.low) * (bottom - top);
}

void draw_y_axis(std::ostream& out, const Frame& f, const std::vector<double>& at,
                 const std::string& label) {
  for (const double value : at) {
    const std::string y = compact(f.at_y(value));
    out << "<line class='grid' x1='" << compact(f.left) << "' x2='" << compact(f.right) << "' y1='"
        << y << "' y2='" << y << "'/>\n";
    draw_text(out, f.left - 6, f.at_y(value) + 4, rounded(value), "soft", "end");
  }
  if (!label.empty()) draw_text(out, kEdge, f.top - 10, label, "soft");
}

static double key_width(const Key& key) {
  return 28 + kLetter * static_cast<double>(key.name.size()) + 14;
}

// Calls place(key, x, line) for each.
template <class Place>
static int64_t lay_out(const std::vector<Key>& keys, double width, const Place& place) {
  double x = kEdge;
  int64_t line = 0;
  for (const Key& key : keys) {
    if (x > kEdge && x + key_width(key) > width) x = kEdge, ++line;
    place(key, x, line);
    x += key_width(key);
  }
  return keys.empty() ? 0 : line + 1;
}

double legend_height(const std::vector<Key>& keys, double width) {
  return kLineHeight *
         static_cast<double>(lay_out(keys, width, [](const Key&, double, int64_t) {}));
}

void draw_legend(std::ostream& out, const std::vector<Key>& keys, double top, double width) {
  lay_out(keys, width, [&](const Key& key, double x, int64_t line) {
    const double y = top + kLineHeight * (static_cast<double>(line) + 0.5);
    if (key.line)
      out << "<line class='" << key.kind << "' x1='" << compact(x) << "' x2='" << compact(x + 22)
          << "' y1='" << compact(y) << "' y2='" << compact(y) << "'/>\n";
    else
      out << "<rect class='" << key.kind << "' x='" << compact(x + 8) << "' y='" << compact(y - 6)
          << "' width='12' height='12'/>\n";
    draw_text(out, x + 28, y + 4, key.name);
  });
}

}  // namespace parts
}  // namespace pellucid
